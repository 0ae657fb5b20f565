"""What an answer says that lacks share groups, whose offsets are in another topic, or that read no byte at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_nothing_found import DATA, LOG, run
from tests.conftest import NEVER, BulkFrom

SHARE_GROUPS = "share groups, whose offsets --table share-offsets shows: "


@pytest.mark.parametrize("command", ["compact", "history"])
@pytest.mark.parametrize(
    ("names", "share", "idle"),
    [
        ("s-all", "s-all", ""),
        ("s-*", "s-all, s-half", ""),
        ("s-all nosuch", "s-all", "-g nosuch"),
        ("nosuch", "", "-g nosuch"),
        ("g-done", "", ""),
        ("g-done nosuch s-all", "s-all", "-g nosuch, what is shown"),
    ],
)
@pytest.mark.parametrize("bulk", [0, NEVER])
def test_share_groups_are_shown_by_their_table(
    command: str, names: str, share: str, idle: str, bulk: int, bulk_from: BulkFrom
) -> None:
    bulk_from(bulk)
    filters = [word for name in names.split() for word in ("-g", name)]
    told = run(command, DATA, *filters).stderr
    assert (SHARE_GROUPS + share in told) if share else SHARE_GROUPS not in told, told
    assert told.count(f"nothing here fits {idle}") == bool(idle)
    assert ("nothing here fits" in told) is bool(idle)
    if share:
        shown = run("compact", DATA, *filters, "--table", "share-offsets", "-o", "jsonl").stdout
        assert {name for name in share.split(", ") if f'"{name}"' in shown}


@pytest.mark.parametrize("command", ["compact", "groups", "info", "decode"])
@pytest.mark.parametrize("folder", [".", "__consumer_offsets-0"])
@pytest.mark.parametrize("empty", [1, 2])
def test_files_without_a_byte_are_told(command: str, folder: str, empty: int, tmp_path: Path) -> None:
    words = "nothing was read: no file of these logs holds a byte of one"
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    for number in range(empty):
        (place / f"{number * 100:020}.log").touch()
    result = run(command, str(tmp_path))
    assert (result.exit_code in (0, 3), words in result.stderr) == (True, True), result.stderr
    assert words not in run(command, LOG).stderr
