"""Headers that tell a record's offset in the source."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning.reading import Headers, RowReader
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.translation.answers import AT_LEAST, EXACT, Answer, Later, Untold
from offsets_log.translation.by_headers import ByHeaders, by_headers, in_partition
from offsets_log.translation.unread import Gaps
from tests.translation.logs import Said, log_of

OFFSET, PARTITION = "x-original-offset", "x-source-partition"


def little(number: int, size: int = 8) -> bytes:
    return number.to_bytes(size, "little")


def said(*headers: tuple[str, bytes]) -> Said:
    return Said(1, b"k", b"v", headers)


def told(
    logs: dict[int, list[Said]], committed: dict[int, list[int]], headers: Headers | None = None
) -> dict[int, ByHeaders]:
    with ExitStack() as stack:
        reader = RowReader(stack.enter_context(Scanner()), 7, headers or Headers())
        chunks = {n: reader.chunks(log_of(enumerate(some, 100), codec="lz4")) for n, some in logs.items()}
        return by_headers([in_partition(n, some, committed, Gaps()) for n, some in chunks.items()], committed)


def test_offsets_as_bytes_or_digits() -> None:
    records = [said((OFFSET, little(5))), said((OFFSET, b"7")), said((OFFSET, b"12"))]
    found = told({0: records}, {0: [5, 6, 7, 8, 12, 13]})[0]
    assert found.target_partition == 0
    assert found.told == {
        5: Answer(100, EXACT, 0),
        6: Answer(101, EXACT, 0),
        7: Answer(101, EXACT, 0),
        8: Answer(102, EXACT, 0),
        12: Answer(102, EXACT, 0),
        13: Answer(103, EXACT, 0),
    }


@pytest.mark.parametrize(
    ("form", "value"), [(r.LITTLE_ENDIAN, little(9)), (r.BIG_ENDIAN, (9).to_bytes(8)), (r.TEXT, b"9")]
)
def test_another_header(form: int, value: bytes) -> None:
    headers = Headers(((b"from", form), (b"x-source-partition", r.ANY_FORM)))
    assert told({0: [said(("from", value))]}, {0: [9]}, headers)[0].told == {9: Answer(100, EXACT, 0)}


def test_a_partition_with_another_number() -> None:
    records = [said((OFFSET, little(5)), (PARTITION, little(3, 4)))]
    found = told({0: [said((OFFSET, little(9)))], 1: records}, {3: [5], 0: [9], 2: [1]})
    assert found[3] == ByHeaders(1, {5: Answer(100, EXACT, 0)})
    assert found[0] == ByHeaders(0, {9: Answer(100, EXACT, 0)})
    assert found[2] == ByHeaders(None)


def test_a_partition_in_several() -> None:
    record = said((OFFSET, little(5)), (PARTITION, little(3, 4)))
    found = told({0: [record], 1: [record]}, {3: [5]})[3].told[5]
    assert found == Untold("its records are in several partitions of the target: 0, 1")


def test_records_of_the_targets_own_are_read_too() -> None:
    records = [said((OFFSET, little(5))), said(), said((OFFSET, little(6)))]
    assert told({0: records}, {0: [6]})[0].told == {6: Answer(101, AT_LEAST, 1)}
    copied_again = [*records, said((OFFSET, little(5))), said((OFFSET, little(5)))]
    answer = told({0: copied_again}, {0: [6]})[0].told[6]
    assert answer == Answer(101, AT_LEAST, 3)
    assert answer.later == Later(102, 2, 1)


def test_what_was_read_may_follow_at_the_end() -> None:
    """The copy may lack its end: nothing is counted there."""
    found = told({0: [said((OFFSET, little(5))), said()]}, {0: [6, 8]})[0].told
    assert found == {6: Answer(101, AT_LEAST, 1), 8: Answer(101, AT_LEAST, None)}


def test_what_is_no_offset_is_none() -> None:
    values = [b"", b"abc", little(1, 3), little(1 << 63, 8), b"9" * 19]
    assert told({0: [said((OFFSET, value)) for value in values]}, {0: [1]})[0] == ByHeaders(None)
