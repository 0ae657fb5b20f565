"""One text of kafka-dump-log in which names of files stand again: of other logs, of the same records, of later ones."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.columnar import large
from tests.cli.runs import run
from tests.dumps.runs import Row, rows

FIRST = f"Dumping {0:020}.log\nLog starting offset: 0\n"
Texts = dict[str, str]


@pytest.fixture(params=[0, 1 << 60], ids=["bulk", "small"])
def texts(request: pytest.FixtureRequest, recording: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Texts:
    """The text of partitions 0, 1 and 2 without their folders, and its parts.

    `0a` and `0b` are the first half of partition 0's batches and the rest, each with the file's name; `0s` has the
    rest as a segment of its own; `0h` is the first half and a quarter.
    """
    monkeypatch.setattr(large, "BULK_FROM_BYTES", request.param)
    found = {}
    for number in "012":
        text = gzip.decompress((recording("kafka-4.3-mixed") / f"answers/dump-log/{number}.txt.gz").read_bytes())
        found[number] = FIRST + text[text.index(b"baseOffset:") :].decode()
        batches = re.split(r"(?m)^(?=baseOffset:)", found[number])[1:]
        half = len(batches) // 2
        found[f"{number}a"] = FIRST + "".join(batches[:half])
        found[f"{number}b"] = FIRST + "".join(batches[half:])
        found[f"{number}h"] = FIRST + "".join(batches[: half * 3 // 2])
        facts = re.match(r"baseOffset: (\d+) .* position: (\d+) ", batches[half])
        assert facts is not None
        begin = int(facts[2])
        rest = "".join(
            re.sub(r"(?<= position: )\d+", str(int(one.split(" position: ")[1].split()[0]) - begin), one, count=1)
            for one in batches[half:]
        )
        found[f"{number}s"] = f"Dumping {int(facts[1]):020}.log\nLog starting offset: {facts[1]}\n{rest}"
    return found


def answer(found: list[Row]) -> list[tuple[object, ...]]:
    names = ("group", "topic", "partition", "committed_offset", "record_offset")
    return sorted(tuple(row[name] for name in names) for row in found)


@pytest.mark.parametrize(
    ("order", "logs", "times"),
    [
        ("0 1", "01", []),
        ("0 1 2", "012", []),
        ("0 0", "0", [2]),
        ("0 1 0 1", "01", [2, 2]),
        ("0 0 0 1", "01", [3]),
        ("0a 0", "0", [2]),
        ("0 0a", "0", [2]),
        ("0a 0h 0", "0", [3]),
        ("0a 0s 1a 1s", "01", []),
        ("0a 0s 1", "01", []),
        ("0a 0s 1a 1s 0a 0s", "01", [2, 2]),
    ],
)
def test_a_name_that_stands_again_begins_another_log(
    order: str, logs: str, times: list[int], texts: Texts, tmp_path: Path
) -> None:
    expected = answer([row for number in logs for row in rows("compact", "-", stdin=texts[number].encode())])
    (tmp_path / "text").write_text("".join(texts[name] for name in order.split()))
    result = run("compact", tmp_path / "text")
    assert (result.exit_code, answer(rows("compact", tmp_path / "text"))) == (0, expected), result.stderr
    told = re.findall(r"is in it (\d) times, and is read once", result.stderr)
    assert sorted(map(int, told)) == times
    assert f"{len(logs)} partition" in result.stderr


def test_later_batches_of_the_same_name_go_on(texts: Texts, tmp_path: Path) -> None:
    """What the second header says of batches before it is told all the same."""
    (tmp_path / "text").write_text(texts["0a"] + texts["0b"])
    found = rows("compact", tmp_path / "text", status=3)
    assert answer(found) == answer(rows("compact", "-", stdin=texts["0"].encode()))


@pytest.mark.parametrize("order", ["0 1", "0a 0s 1a 1s"])
def test_several_texts_are_read_as_one(order: str, texts: Texts, tmp_path: Path) -> None:
    """Each log in a text of its own, or all in one."""
    one_by_one: dict[str, str] = {}
    for name in order.split():
        one_by_one[name[0]] = one_by_one.get(name[0], "") + texts[name]
    for number, text in one_by_one.items():
        (tmp_path / number).write_text(text)
    (tmp_path / "all").write_text("".join(one_by_one.values()))
    apart = rows("compact", *(tmp_path / number for number in one_by_one))
    assert answer(apart) == answer(rows("compact", tmp_path / "all"))


def test_other_records_of_a_named_partition_are_another_copy_of_it(texts: Texts, tmp_path: Path) -> None:
    header = f"Dumping __consumer_offsets-7/{0:020}.log\n"
    both = [texts[number].replace(FIRST, header) for number in "01"]
    (tmp_path / "text").write_text("".join(both))
    for number, text in enumerate(both):
        (tmp_path / str(number)).write_text(text)
    found = run("compact", tmp_path / "text")
    apart = run("compact", tmp_path / "0", tmp_path / "1")
    assert (found.exit_code, found.stdout) == (apart.exit_code, apart.stdout)
