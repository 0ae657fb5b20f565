"""The command line: thin click commands over `offsets_log`. Start at `cli.main`."""
