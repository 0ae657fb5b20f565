"""What becomes of open transactions, by the coordinator's log beside them, and what ``--decide`` makes of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.data_directory import transactions as t
from offsets_log.data_directory.decisions import Outcomes, PendingTransaction, first_offsets, pending_transactions
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.profile import PROFILES
from offsets_log_cli.main import main
from tests.conftest import NEVER, BulkFrom
from tests.data_directories.copies import Recorded, data_directories

EXPECTED = {
    "g-tx-hanging-empty": ("tx-hanging-empty", "hanging"),
    "g-tx-hanging-late": ("tx-hanging-late", "hanging"),
    "g-tx-open": ("tx-open", "undecided"),
    "g-tx-twice": ("tx-twice", "undecided"),
}
"""Group → transactional id and outcome of what it has pending where no transaction is prepared."""
RUNNING = {"g-tx-hanging-late": ("tx-hanging-late", "undecided")}
"""The same where the broker ran, and its coordinator wrote nothing behind it in that partition."""
PREPARED = {
    "g-tx-prepared-abort": ("tx-prepared-abort", "aborted"),
    "g-tx-prepared-commit": ("tx-prepared-commit", "committed"),
}


def run(*arguments: str, status: int = 0) -> Result:
    """A run of the command line that must end with this status."""
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return result


def rows(*arguments: str) -> list[dict[str, Any]]:
    """The rows that a run prints."""
    return [json.loads(line) for line in run(*arguments, "-o", "jsonl").stdout.splitlines()]


def pending(*arguments: str) -> dict[str, dict[str, Any]]:
    """Group → its row of ``rebuild --table pending``."""
    return {row["group"]: row for row in rows("rebuild", *arguments, "--table", "pending")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("kafka-4.3-one", EXPECTED), ("kafka-4.3-blocked", EXPECTED), ("kafka-3.9-blocked", EXPECTED | PREPARED)],
)
def test_pending_offsets_have_the_outcome_that_their_transactions_had(
    name: str, expected: dict[str, tuple[str, str]], recorded: Recorded, tmp_path: Path
) -> None:
    """``DD-5``: ids and states are those of ``kafka-transactions list``; the recorder made each as its name says.

    Of a broker that ran when it was copied, the coordinator's log may have been copied before the offsets were pending.
    """
    folder = recorded(name)
    listed = (folder / "words" / "running" / "transactions-list.txt").read_text()
    states = {match[1]: match[2] for match in re.finditer(r"^(\S+)\s+\d+\s+\d+\s+(\w+)\s*$", listed, re.MULTILINE)}
    ran = pending(str(folder / "copies" / "running"))
    assert {group: (row["transactional_id"], row["outcome"]) for group, row in ran.items()} == expected | RUNNING
    found = pending(str(still(folder, tmp_path)))
    assert {group: (row["transactional_id"], row["outcome"]) for group, row in found.items()} == expected
    for row in found.values():
        assert row["transaction_state"] == states[row["transactional_id"]]
        assert row["transaction_timeout_ms"] == 900_000
        assert (row["abort_command"] is not None) == (row["outcome"] == "hanging")
    assert found["g-tx-hanging-late"]["abort_command"].endswith(
        "abort --topic __consumer_offsets --partition 2 --start-offset 4"
    )


def test_the_same_is_told_of_open_transactions_by_info(recorded: Recorded, tmp_path: Path) -> None:
    copy = str(still(recorded("kafka-3.9-blocked"), tmp_path))
    found = [one for row in rows("info", copy) for one in row["open_transactions"]]
    by_producer = {row["producer_id"]: row for row in pending(copy).values()}
    names = [column.name for column in t.OUTCOME_COLUMNS]
    assert len(found) == len(by_producer) == 6
    for one in found:
        assert {name: one[name] for name in names} == {name: by_producer[one["producer_id"]][name] for name in names}
    page = run("info", copy, "-o", "table", "--now", "2036-01-01").stdout
    assert page.count(": timed out, ") == 2
    assert "hanging, 'tx-hanging-empty' is Empty: kafka-transactions.sh" in page


@pytest.mark.parametrize("from_bytes", [0, NEVER])
def test_check_says_what_info_says_and_calls_what_hangs_a_doubt(
    from_bytes: int, recorded: Recorded, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``C-1``: others are a note, whatever is known of them."""
    bulk_from(from_bytes)
    copy = str(still(recorded("kafka-3.9-blocked"), tmp_path))
    result = run("check", copy, "--loads-on", "3.9.1-java", "-o", "jsonl", status=3)
    found = [row for row in map(json.loads, result.stdout.splitlines()) if row["rule"] == "C-1"]
    told = pending(copy)
    names = [column.name for column in t.OUTCOME_COLUMNS]
    assert {row["group"] for row in found} == told.keys()
    for row in found:
        of_group = told[row["group"]]
        assert {name: row["detail"][name] for name in names} == {name: of_group[name] for name in names}
        assert row["severity"] == ("doubt" if of_group["outcome"] == "hanging" else "note")
        assert row["problem"].endswith(t.outcome_in_words(of_group))
        assert (of_group["abort_command"] or "to end it") in f"{result.stderr}to end it"
    (late,) = [row for row in found if row["group"] == "g-tx-hanging-late"]
    assert "; hanging, 'tx-hanging-late' is CompleteCommit: kafka-transactions.sh" in late["problem"]
    bounded = run("check", copy, "--until-offset", "1000", "-o", "jsonl", status=3)
    assert "; hanging" not in bounded.stdout
    assert "what ends" not in bounded.stderr


@pytest.mark.parametrize("from_bytes", [0, NEVER])
@pytest.mark.parametrize(
    "command", [["compact"], ["compact", "-o", "parquet"], ["groups"], ["groups", "--stale", "1d"]]
)
def test_offsets_that_hanging_transactions_hide_are_told(
    from_bytes: int, command: list[str], recorded: Recorded, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    bulk_from(from_bytes)
    copy = str(still(recorded("kafka-4.3-one"), tmp_path))
    arguments = [*command, copy, *(["--to", str(tmp_path / "out")] if "parquet" in command else [])]
    said = run(*arguments).stderr
    assert (
        '2 open transactions are hanging, with 2 offsets of "g-tx-hanging-empty", "g-tx-hanging-late": nobody will '
        "ever end them: offsets-log transactions prints what does, and the runbook"
    ) in said
    late = '1 open transaction is hanging, with 1 offset of "g-tx-hanging-late": nobody will ever end it: '
    assert late in run(*arguments, "-g", "*late").stderr
    for others in (["-g", "g-tx-open"], *([["-t", "no such"]] if "--stale" not in command else [])):
        assert "hanging" not in CliRunner().invoke(main, [*arguments, *others]).stderr
    assert "hanging" not in CliRunner().invoke(main, [*arguments, "--until-offset", "1000"]).stderr


def test_without_the_coordinators_log_nothing_is_told(recorded: Recorded, tmp_path: Path) -> None:
    """The rows are as ever, and ``--decide`` says what is missing."""
    data = copied(recorded("kafka-3.9-blocked"), tmp_path, without="__transaction_state-*")
    (data / "replication-offset-checkpoint").unlink()  # else it is missing, which is told
    assert "outcome" not in pending(str(data))["g-tx-open"]
    result = run("rebuild", str(data), "--decide", "--table", "pending", "-o", "jsonl", status=3)
    assert (len(result.stdout.splitlines()), result.exit_code) == (6, 3)
    assert "no __transaction_state lies beside" in result.stderr


def still(folder: Path, to: Path, without: str = "*.index") -> Path:
    """A copy as if the broker had stopped in order."""
    data = copied(folder, to, without=without)
    (data / ".kafka_cleanshutdown").touch()
    return data


def copied(folder: Path, to: Path, *, without: str) -> Path:
    """A copy of a broker's data directory that lacks some of it."""
    (data,) = data_directories(folder, "running")
    return Path(shutil.copytree(data, to / "data", ignore=shutil.ignore_patterns(without)))


def test_what_is_certain_is_decided(recorded: Recorded, tmp_path: Path) -> None:
    """As if the markers stood at the log's end."""
    copy = str(still(recorded("kafka-3.9-blocked"), tmp_path))
    before, after = rows("compact", copy), rows("compact", copy, "--decide")
    new = [row for row in after if row not in before]
    assert [(row["group"], row["committed_offset"]) for row in new] == [("g-tx-prepared-commit", 61)]
    assert [row for row in before if row not in after] == []
    result = run("rebuild", copy, "--decide", "--table", "pending", "-o", "jsonl", "--now", "2036-01-01")
    found = {json.loads(line)["group"]: json.loads(line)["outcome"] for line in result.stdout.splitlines()}
    timed_out = {"g-tx-open": "timed out", "g-tx-twice": "timed out"}
    assert found == {group: outcome for group, (_, outcome) in EXPECTED.items()} | timed_out
    assert "1 aborted (1 offset), 1 committed (1 offset), 2 hanging (2 offsets), 2 timed out" in result.stderr
    run("rescue", copy, "--decide", "--to", str(tmp_path / "rescued"))
    plan = json.loads((tmp_path / "rescued" / "plan.json").read_text())
    assert {row["group"] for row in plan["offsets"]} == {row["group"] for row in after}
    assert {row["group"] for row in plan["pending"]} == set(EXPECTED)


def test_rescue_says_what_becomes_of_open_transactions(recorded: Recorded, tmp_path: Path) -> None:
    """Outcome by outcome with the groups, and the command for what hangs, in README.txt as in plan.json."""
    run("rescue", str(recorded("kafka-3.9-blocked") / "copies" / "running"), "--to", str(tmp_path / "rescued"))
    doubts = json.loads((tmp_path / "rescued" / "plan.json").read_text())["doubts"]
    told = [words for words in doubts if "transactions" in words and "whose end is not known" not in words]
    assert told == [
        'of these, 1 of "g-tx-prepared-abort" in transactions that are aborted by __transaction_state, which --decide ends',  # noqa: E501
        'of these, 1 of "g-tx-prepared-commit" in transactions that are committed by __transaction_state, which --decide ends',  # noqa: E501
        'of these, 1 of "g-tx-hanging-empty" in transactions that are hanging by __transaction_state',
        'of these, 3 of "g-tx-hanging-late", "g-tx-open", "g-tx-twice" in transactions that are undecided by __transaction_state',  # noqa: E501
        "what ends the hanging transactions, on the cluster that they are of: kafka-transactions.sh --bootstrap-server "
        "HOST:PORT abort --topic __consumer_offsets --partition 5 --start-offset 0",
    ]  # fmt: skip
    readme = (tmp_path / "rescued" / "README.txt").read_text()
    assert all(f"- {words}\n" in readme for words in told)


def test_two_copies_are_both_decided_and_of_two_moments_the_later(recorded: Recorded) -> None:
    copy = str(recorded("kafka-3.9-blocked") / "copies" / "running")
    assert rows("diff", copy, copy, "--decide") == []
    changes = rows("diff", copy, "--from-time", "2036-01-01", "--decide")
    assert [(row["group"], row["change"]) for row in changes] == [("g-tx-prepared-commit", "new")]


@pytest.mark.parametrize("output", ["jsonl", "parquet"])
def test_both_engines_decide_alike(output: str, recorded: Recorded, tmp_path: Path, bulk_from: BulkFrom) -> None:
    import pyarrow.parquet as pq

    copy = str(recorded("kafka-3.9-blocked") / "copies" / "running")
    answers = []
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        to = tmp_path / f"{least_bytes}.{output}"
        result = run("compact", copy, "--decide", "--unstable", "-o", output, "--to", str(to))
        table = pq.read_table(to).to_pylist() if output == "parquet" else to.read_text()
        answers.append((table, result.stderr.splitlines()[-2:], pending(copy, "--decide"), rows("info", copy)))
    assert answers[0] == answers[1]


def test_markers_above_the_high_watermark_say_what_the_coordinators_log_says(
    recorded: Recorded, tmp_path: Path
) -> None:
    """A coordinator loads its log to the end, so they count; without them ``--decide`` comes to the same offsets."""
    data = still(recorded("kafka-4.3-blocked"), tmp_path)
    whole = rows("compact", str(data), "-g", "g-tx-*", "--decide", "--no-lag")
    assert whole == rows("compact", str(data), "-g", "g-tx-*", "--no-lag")
    marks = (data / "replication-offset-checkpoint").read_text()
    for partition, high_watermark in re.findall(r"^__consumer_offsets (\d+) (\d+)$", marks, re.MULTILINE):
        cut(data / f"__consumer_offsets-{partition}" / "00000000000000000000.log", int(high_watermark))
    below = pending(str(data))
    assert {group: (row["transactional_id"], row["outcome"]) for group, row in below.items()} == EXPECTED | PREPARED
    assert rows("compact", str(data), "-g", "g-tx-*", "--decide", "--no-lag") == whole


def cut(file: Path, offset: int) -> None:
    """Take the batches from an offset on away from a segment."""
    from offsets_log.log_format.batch import RecordBatch
    from offsets_log.log_format.segment import iter_batches

    for batch in iter_batches(file.read_bytes()):
        if isinstance(batch, RecordBatch) and batch.base_offset >= offset:
            with file.open("r+b") as stream:
                stream.truncate(batch.position)
            return


@pytest.mark.parametrize("arguments", [("--until-time", "2h"), ("--until-offset", "3"), ("--as-broker",)])
def test_what_cannot_be_decided_is_refused(arguments: tuple[str, ...], recorded: Recorded) -> None:
    copy = str(recorded("kafka-3.9-blocked") / "copies" / "running")
    result = CliRunner().invoke(main, ["rebuild", copy, "--decide", *arguments])
    assert result.exit_code == 2
    assert "--decide" in result.stderr


def test_of_a_time_before_the_logs_end_no_outcome_is_told(recorded: Recorded) -> None:
    copy = str(recorded("kafka-3.9-blocked") / "copies" / "running")
    assert "outcome" not in pending(copy, "--until-time", "2036-01-01")["g-tx-open"]


def test_an_older_copy_of_another_broker_calls_nothing_hanging(recorded: Recorded, tmp_path: Path) -> None:
    """The third broker was killed before one of the transactions began."""
    folder = recorded("kafka-4.3-three")
    paths = []
    for directory in data_directories(folder, "broker-1"):
        to = tmp_path / directory.name
        shutil.copytree(directory, to, ignore=shutil.ignore_patterns("__transaction_state-*"))
        paths.append(str(to))
    (old,) = data_directories(folder, "broker-3")
    shutil.copytree(old, tmp_path / "old", ignore=shutil.ignore_patterns("__consumer_offsets-*"))
    shutil.copytree(old / "__consumer_offsets-0", tmp_path / "old" / "__consumer_offsets-0")
    found = pending(*paths, str(tmp_path / "old"))
    assert found["g-tx-later"]["outcome"] == "undecided"
    assert found["g-tx-later"]["transactional_id"] is None


def test_filters_do_not_change_outcomes(recorded: Recorded) -> None:
    copy = str(recorded("kafka-3.9-blocked") / "copies" / "running")
    assert pending(copy, "-g", "*late") == {"g-tx-hanging-late": pending(copy)["g-tx-hanging-late"]}


def state(status: str, **changes: Any) -> t.TransactionState:
    """A transaction over partition 3 of the offsets topic."""
    told: dict[str, Any] = {
        "transactional_id": "id",
        "producer_id": 7,
        "producer_epoch": 1,
        "other_producer_ids": frozenset(),
        "status": status,
        "timeout_ms": 1000,
        "started_ms": 5000,
        "updated_ms": 5500,
        "partitions": {OFFSETS_TOPIC: frozenset({3})},
    }
    return t.TransactionState(**{**told, **changes})


@pytest.mark.parametrize("status", ["PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Ongoing"])
def test_a_state_of_a_later_transaction_decides_nothing_of_an_earlier_one(status: str) -> None:
    """The pending offset is older than the transaction that the coordinator's last record speaks of."""
    states = t.TransactionStates(by_id={"id": state(status)}, is_whole=True)
    found = states.outcome(7, 3, 5200, 9000, oldest_pending_ms=4999)
    assert (found.outcome, found.is_marker_missing) == (t.UNDECIDED, True)


DAY_MS = t.LONGEST_COPY_MS


@pytest.mark.parametrize(
    ("newest", "still_homes", "outcome"),
    [
        ({0: ("a", 5600), 1: ("a", 1)}, {"a"}, (t.HANGING, t.HANGING)),  # all of one moment
        ({0: ("a", 5600), 1: ("a", 1)}, {}, (t.UNDECIDED, t.UNDECIDED)),
        ({0: ("a", 5601), 1: ("a", 1)}, {}, (t.HANGING, t.UNDECIDED)),  # the other may be in partition 1
        ({0: ("a", 5601), 1: ("a", 5601)}, {}, (t.HANGING, t.HANGING)),
        ({0: ("a", 1), 1: ("a", 5601 + DAY_MS)}, {}, (t.HANGING, t.HANGING)),
        ({0: ("b", 5599), 1: ("b", 5599)}, {"a", "b"}, (t.UNDECIDED, t.UNDECIDED)),
        ({0: ("b", 1), 1: ("b", 5600)}, {"a", "b"}, (t.HANGING, t.HANGING)),
    ],
)
def test_only_a_copy_that_is_as_new_calls_a_transaction_hanging(
    newest: dict[int, tuple[str, int]], still_homes: set[str], outcome: tuple[str, str]
) -> None:
    """``DD-5``: of a producer that is known in partition 0, and of one that is in none."""
    states = t.TransactionStates(
        by_id={"id": state("Empty")}, is_whole=True, newest=newest, still_homes=frozenset(still_homes)
    )
    found = tuple(states.outcome(producer_id, 3, 5600, None, home="a").outcome for producer_id in (7, 8))
    assert found == outcome


@pytest.mark.parametrize(
    ("changes", "newest_in_log", "outcome"),
    [
        ({"status": "Ongoing"}, 4999, t.UNDECIDED),
        ({"status": "Ongoing"}, 5000, t.HANGING),
        ({"status": "Empty", "started_ms": -1, "partitions": {}}, 5499, t.UNDECIDED),
        ({"status": "Empty", "started_ms": -1, "partitions": {}}, 5500, t.HANGING),
    ],
)
def test_where_the_marker_may_still_come_nothing_hangs(
    changes: dict[str, Any], newest_in_log: int, outcome: str
) -> None:
    """``DD-5``: the copy of the offsets partition may be older than the end of the pending transaction."""
    told = {"partitions": {"orders": frozenset({1})}} | changes
    states = t.TransactionStates(by_id={"id": state(**told)}, is_whole=True, newest={0: ("a", 6000)})
    found = states.outcome(7, 3, 4000, None, home="a", newest_in_log=lambda: newest_in_log)
    assert (found.outcome, found.is_marker_missing) == (outcome, outcome == t.UNDECIDED)


@pytest.mark.parametrize("status", ["PrepareCommit", "PrepareAbort"])
def test_a_prepared_transaction_decides_nothing_of_a_later_one(status: str) -> None:
    """``DD-5``: what is pending was written after the coordinator had decided."""
    states = t.TransactionStates(by_id={"id": state(status)}, is_whole=True)
    assert states.outcome(7, 3, 5600, None, oldest_pending_ms=5501).outcome == t.UNDECIDED
    assert states.outcome(7, 3, 5600, None, oldest_pending_ms=5500).outcome != t.UNDECIDED


def offset(producer_id: int, commit_timestamp_ms: int) -> OffsetAndMetadata:
    """One of an open transaction."""
    return OffsetAndMetadata(
        group="g", topic="t", partition=0, committed_offset=1, leader_epoch=None, metadata="", expire_timestamp_ms=None,
        commit_timestamp_ms=commit_timestamp_ms, topic_id=None, record_offset=1, applied_offset=1,
        producer_id=producer_id, producer_epoch=0,
    )  # fmt: skip


def test_a_transaction_that_is_over_and_has_no_marker_is_told_by_its_id() -> None:
    """One that the coordinator still has to end lacks none, and of one that it does not know there is no id."""
    late, open_one = state("Ongoing"), state("Ongoing", transactional_id="open", producer_id=8)
    states = t.TransactionStates(by_id={"id": late, "open": open_one}, is_whole=True)
    outcomes = Outcomes(states, None, lambda log: "a")
    end = SimpleNamespace(end_offset=9)
    outcomes.decide(PartitionLog(3, ()), end, [offset(7, 4000), offset(8, 5200), offset(9, 5200)])
    assert outcomes.without_marker == [(3, "id")]


def test_transactions_are_decided_in_the_order_in_which_they_last_wrote() -> None:
    values = [offset(1, 30), offset(2, 20), offset(1, 10), offset(3, 20)]
    assert pending_transactions(values) == [
        PendingTransaction(2, 20, 20, 1),
        PendingTransaction(3, 20, 20, 1),
        PendingTransaction(1, 10, 30, 2),
    ]


def test_a_transaction_begins_with_its_first_batch_behind_the_last_marker(recorded: Recorded) -> None:
    """As the survey of the same log counts."""
    with open_logs([str(recorded("kafka-4.3-one") / "copies" / "running")]) as opened:
        for log in opened.logs:
            partial = replay(iter_events(log), PROFILES["modern"], on_damage=lambda damage: None)
            open_ones = {value.producer_id: value.record_offset for value in partial.iter_pending()}
            assert first_offsets(batches_of(log), set(open_ones)) == open_ones
