"""The fixture of these tests."""

from tests.data_directories.copies import recorded

__all__ = ["recorded"]
