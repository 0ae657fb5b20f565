"""The library's face: what a program gets that imports `offsets_log`."""
