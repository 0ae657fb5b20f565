"""Folders that are named inside archives, and archives inside packed files."""

import gzip

import pytest

from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from tests.disk.logs import numbers
from tests.disk.test_archives import FILES, make_tar, make_zip


@pytest.fixture(params=[make_tar, make_zip], ids=["tar", "zip"])
def archive(request, tmp_path):
    path = tmp_path / "a.archive"
    path.write_bytes(request.param(FILES))
    return path


@pytest.mark.parametrize("inner", ["*-delete", "data/*-delete", "__consumer_offsets-9.0a1b-delete", "d*/*-9.*"])
def test_open_logs_folder_in_an_archive_is_named_from_its_root_or_from_any_folder(archive, inner):
    with open_logs([f"{archive}!{inner}"]) as disk:
        assert numbers(disk.logs) == [9]


@pytest.mark.parametrize("inner", [make_zip, lambda files: gzip.compress(make_tar(files))], ids=["zip", "tgz"])
def test_an_archive_that_is_packed_again_is_refused(inner, tmp_path):
    path = tmp_path / "a.zip.gz"
    path.write_bytes(gzip.compress(inner(FILES)))
    with pytest.raises(InputError, match="an archive is packed in it: unpack it"):
        open_logs([str(path)])
