"""What people paste with a console formatter's text changes none of its records, and is told."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.dumps.formats import build_segments, guess_format
from offsets_log.log_format.batch import UNTOLD_PRODUCER_ID, RecordBatch
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import iter_batches
from offsets_log.messages.registry import decode_coordinator_record
from tests.cli.runs import run
from tests.dumps.runs import rows
from tests.sizes import examples

Told = list[tuple[Any, ...]]


def modern(partition: int, offset: int, metadata: str = "") -> str:
    return (
        f"[g1,t,{partition}]::OffsetAndMetadata(offset={offset}, leaderEpoch=Optional[4], metadata={metadata}, "
        "commitTimestamp=1547146285084, expireTimestamp=None)"
    )


def older(partition: int, offset: int, metadata: str = "NO_METADATA") -> str:
    times = "CommitTime 1547146285084,ExpirationTime 1547232685084"
    return f"[g1,t,{partition}]::[OffsetMetadata[{offset},{metadata}],{times}]"


def oldest(partition: int, offset: int, metadata: str = "NO_METADATA") -> str:
    return f"[g1,t,{partition}]::OffsetAndMetadata[{offset},{metadata},1547146285084]"


def group(generation: int) -> str:
    return (
        f"g1::GroupMetadata(groupId=g1, generation={generation}, protocolType=Some(consumer), currentState=Stable, "
        "members=Map(a-1 -> MemberMetadata(memberId=a-1, clientId=a, clientHost=/10.0.0.1, sessionTimeoutMs=10000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range), )))"
    )


def in_json(partition: int, offset: int | None) -> str:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 5}
    key = {"type": 1, "data": {"group": "g1", "topic": "t", "partition": partition}}
    shown = {"key": key, "value": None if offset is None else {"version": 3, "data": value}}
    return json.dumps(shown, separators=(",", ":"))


FORMS: dict[str, list[str]] = {
    "2.1 and on": [modern(0, 5), modern(0, 6, "m"), "[g1,t,0]::NULL", modern(1, 7, "of\ntwo lines"), modern(1, 8)],
    "0.9": [older(0, 5), older(0, 6, "m"), "[g1,t,0]::NULL", older(1, 7, "of\ntwo lines"), older(1, 8)],
    "0.8.2": [oldest(0, 5), oldest(0, 6, "[1,2]"), "[g1,t,0]::NULL", oldest(1, 8)],
    "groups": [group(1), group(2), "g1::NULL", group(3), "g1::NULL"],
    "groups up to 0.10": [
        "g1::[g1,Some(consumer),Stable,Map(a-1 -> [a-1,a,/10.0.0.1,10000])]", "g1::NULL",
        "g1::[g1,Some(consumer),Empty,Map()]",
    ],
    "3.9 and on": [in_json(0, 5), in_json(0, 6), in_json(0, None), in_json(1, 8)],
}  # fmt: skip
HARMLESS = (
    "...",
    "^CProcessed a total of 2 messages",
    "kafka@k-0:/$ Processed a total of 2 messages",
    "root@k:/#",
    "[root@k-0 ~]#",
    "$ ",
    "> ",
    "--",
    "```",
    "{noformat}",
    "# ...",
    "   ",
    "[2019-01-10 18:51:27,259] WARN [Consumer clientId=c-1] it has no leader (org.apache.kafka.clients)",
    "command terminated with exit code 130",
    "$ kafka-console-consumer.sh --formatter 'kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter'",
    '{"level":"WARN","message":"no leader"}',
)
"""Lines that are no part of a record."""
BEFORE = (
    "root@k:/# ",
    "[pod/kafka-0/kafka] ",
    "[root@k-0 ~]# ",
    "$ ",
    "  ",
    "\t",
    "[2019-01-10 18:51:27,259] WARN x (org.apache.kafka) ",
)
"""What stands before an entry on its line."""


def read(text: str) -> tuple[Told, list[str], list[str]]:
    """Return records (key, value, whether their fate is unknown), damage and remarks but the first."""
    assert guess_format(text.encode()) == "formatter"
    built = build_segments("x", text.encode(), "formatter")
    found: Told = []
    for batch in (item for log in built.logs() for one in log.segments for item in iter_batches(one.buffer)):
        assert isinstance(batch, RecordBatch)
        for record in iter_records(batch):
            assert isinstance(record, Record)
            told = decode_coordinator_record(record.key, record.value)
            found.append((told.key, told.value, batch.producer_id == UNTOLD_PRODUCER_ID))
    return found, [str(damage.error) for damage in built.damages], built.remarks[1:]


def pasted(*entries: str) -> str:
    return "".join(f"{entry}\n" for entry in entries)


@pytest.mark.parametrize("form", FORMS)
def test_a_foreign_line_at_any_place_changes_no_record(form: str) -> None:
    entries = FORMS[form]
    expected = read(pasted(*entries))
    assert len(expected[0]) == len(entries)
    assert not any(row[-1] for row in expected[0])
    assert expected[1:] == ([], [])
    for line, at in itertools.product(HARMLESS, range(len(entries) + 1)):
        found, damages, remarks = read(pasted(*entries[:at], line, *entries[at:]))
        assert (found, damages) == (expected[0], []), (line, at)
        is_silent = not line.strip() or line.startswith("^C")
        number = pasted(*entries[:at]).count("\n") + 1
        shown = f"what no formatter prints is left out: line {number} {line.strip()[:40]!r}"
        assert remarks == ([] if is_silent else [shown]), line


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", BEFORE)
def test_nor_does_one_at_the_beginning_of_a_line(form: str, before: str) -> None:
    entries = FORMS[form]
    expected, *_ = read(pasted(*entries))
    for at in range(len(entries)):
        lines = [before * (i == at) + entry for i, entry in enumerate(entries)]
        assert read(pasted(*lines))[:2] == (expected, [])
    assert read(pasted(*(before + entry for entry in entries)))[:2] == (expected, [])


@examples(60)
@given(st.sampled_from(sorted(FORMS)), st.data())
def test_nor_do_many(form: str, data: st.DataObject) -> None:
    entries = FORMS[form]
    strange = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
    lines = st.lists(st.sampled_from(HARMLESS) | strange.map("x ".__add__), max_size=3)
    text = "".join(pasted(*data.draw(lines), entry) for entry in entries) + pasted(*data.draw(lines))
    assert read(text)[0] == read(pasted(*entries))[0]


@pytest.mark.parametrize(
    ("line", "of"),
    [
        ("t,0]::" + modern(0, 9).partition("::")[2], ""),
        (modern(0, 9)[:60], '; it may be of group "g1", topic "t", partition 0, whose offset may be a later one'),
        ("[g1,t,x]::NULL", ""),
        ("expireTimestamp=None)", ""),
        ("[2019-01-10 18:51:27,259] WARN of OffsetMetadata[1,", ""),
    ],
)
def test_a_line_that_may_have_been_a_record_is_damage(line: str, of: str) -> None:
    entries = FORMS["2.1 and on"]
    for at in range(len(entries) + 1):
        found, damages, _ = read(pasted(*entries[:at], line, *entries[at:]))
        assert [row[0] for row in found] == [row[0] for row in read(pasted(*entries))[0]]
        number = pasted(*entries[:at]).count("\n") + 1
        assert damages[0].startswith(f"x: position {number}: it is no formatter's line{of}")


@pytest.mark.parametrize("size", [3, 8, 12, 40, 80, len(modern(0, 1)) - 1])
def test_the_ends_of_a_text_that_was_cut_are_damage(size: int) -> None:
    whole = pasted(modern(0, 5), modern(1, 6))
    ends, begins = read(whole + modern(0, 9)[:size]), read(modern(0, 9)[-size:] + "\n" + whole)
    assert ends[0] == begins[0] == read(whole)[0]
    assert (len(ends[1]), len(begins[1])) == (1, 1)


def test_a_tombstone_that_was_cut_is_damage() -> None:
    for size in range(1, len("[g1,t,0]::NULL")):
        found, damages, _ = read("[g1,t,0]::NULL"[-size:] + "\n" + pasted(modern(0, 5)))
        assert ([row[0]["partition"] for row in found], len(damages)) == ([0], 1), size


def test_metadata_that_may_be_another_entry_is_doubted(tmp_path: Path) -> None:
    text = pasted(modern(0, 5), modern(0, 6, modern(1, 9)), modern(2, 3))
    found = rows("compact", "-", stdin=text.encode(), status=3)
    assert [(row["partition"], row["committed_offset"]) for row in found] == [(0, None), (2, 3)]
    result = run("rescue", "-", "--to", tmp_path / "plan", stdin=text.encode())
    assert result.exit_code == 3
    assert "position 2: the metadata holds what another entry looks like" in result.stderr
    plan = json.loads((tmp_path / "plan" / "plan.json").read_bytes())
    assert [(row["partition"], row["committed_offset"]) for row in plan["offsets"]] == [(2, 3)]
    later = rows("compact", "-", stdin=(text + pasted(modern(0, 8))).encode(), status=3)
    assert [(row["partition"], row["committed_offset"]) for row in later] == [(0, 8), (2, 3)]


def test_entries_that_share_a_line_are_read_and_told() -> None:
    found, damages, _ = read(pasted(modern(0, 5) + " " + modern(1, 6), modern(2, 7) + "$ "))
    assert [(key["partition"], value["offset"]) for key, value, _ in found] == [(0, 5), (1, 6), (2, 7)]
    assert len(damages) == 1
    assert "two entries are on one line" in damages[0]


def test_long_lines_take_no_longer_than_their_length() -> None:
    """All that was pasted into one line, and what nobody would write."""
    many = [modern(number, number) for number in range(1500)]
    found, damages, _ = read(" ".join(many))
    assert [value["offset"] for _, value, _ in found] == list(range(1500))
    assert len(damages) == 1499
    for hostile in (",t,0]::NULL", "[g,t,0]::NULLx", "::[", "::NULL", "[", "{", '{"key":', many[0][:-1]):
        few, more = (seconds_of(modern(0, 5) + "\n" + hostile * count) for count in (1500, 6000))
        assert more < 9 * few + 0.1, hostile


def seconds_of(text: str) -> float:
    begun = process_time()
    assert read(text)[0][0][0] == {"group": "g1", "topic": "t", "partition": 0}
    return process_time() - begun


def test_names_with_brackets_are_those_of_groups() -> None:
    names = ["job[1]", "a[b", "a]b", "[x]", "> a", "{a}"]
    found, damages, remarks = read(pasted(*(modern(0, 5).replace("g1", name) for name in names)))
    assert ([key["group"] for key, *_ in found], damages, remarks) == (names, [], [])


def test_a_key_that_may_begin_at_two_brackets_is_told() -> None:
    found, damages, _ = read(pasted("[x] " + modern(0, 5)))
    assert [key["group"] for key, *_ in found] == ["g1"]
    assert (
        "'[x]' before it may be part of the group's name; it is read as group 'g1', topic 't', partition 0"
        in damages[0]
    )


def test_compact_tells_whose_a_lost_record_may_be() -> None:
    for lost in (modern(0, 9)[:50], in_json(0, 9)[:-9]):
        result = run("compact", "-", stdin=(pasted(in_json(1, 5)) + lost).encode())
        assert result.exit_code == 3
        assert 'it may be of group "g1", topic "t", partition 0, whose offset may be a later one' in result.stderr


def test_a_text_of_which_nothing_can_be_read_is_told() -> None:
    result = run("check", "-", stdin=modern(0, 5)[:40].encode())
    assert result.exit_code == 3
    assert "nothing could be read here, so no load was tried" in result.stderr
    assert "0 loads fail" not in result.stderr
