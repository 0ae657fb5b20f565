"""Recordings of whole data directories, as `tests.data_directories` have them."""

from tests.data_directories.copies import recorded

__all__ = ["recorded"]
