"""`report`: the page's data against brokers' answers, and the page in a real browser, with names that attack it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.report.page import embedded_json
from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder, member
from tests.conftest import NEVER, BulkFrom, read_json
from tests.investigate.test_groups import folder_of
from tests.replay.test_compact_recordings import Recording, answered, profile_of
from tests.report.browser import opened

Json = dict[str, Any]
BLOCK = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def run(folder: Path, page: Path, *arguments: object) -> Result:
    return CliRunner().invoke(
        main, ["report", str(folder), "--to", str(page), *map(str, arguments)], catch_exceptions=False
    )


def made(folder: Path, page: Path, *arguments: object, status: int = 0) -> Json:
    """The data of the page."""
    result = run(folder, page, *arguments)
    assert result.exit_code == status, result.stderr
    (block,) = BLOCK.findall(page.read_text())
    document: Json = json.loads(block)
    return document


def rows(document: Json, table: str) -> list[Json]:
    found = document["tables"][table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


@pytest.mark.parametrize(
    "name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-3.9-classic", "kafka-4.3-expired", "kafka-1.1"]
)
def test_groups_last_offsets_and_open_transactions_are_the_brokers_answers(
    name: str, recording: Recording, tmp_path: Path
) -> None:
    folder = recording(name)
    profile = profile_of(read_json(folder / "recording.json"))
    answer = read_json(folder / "answers" / "restart.json")
    document = made(folder / "log", tmp_path / "page.html", "--profile", profile.name)
    groups = {row["group"]: row for row in rows(document, "groups") if row["type"] is not None}
    if all("type" in group for group in answer["groups"]):
        expected = {group["group"]: group for group in answer["groups"] if group["type"] is not None}
        assert groups.keys() == expected.keys()
        assert {name: row["state"] for name, row in groups.items()} == {
            name: group["state"] for name, group in expected.items()
        }
    served = {row[:3]: row[3] for row in answered(answer)}
    ends = {
        (group, topic, partition): offsets[-1]
        for group, _, lines, _ in document["lines"]
        for topic, partition, _, _, offsets in lines
    }
    assert {line: offset for line, offset in ends.items() if offset is not None} == {
        line: served[line] for line in ends if line in served
    }
    plotted = {group: (count, len(lines)) for group, count, lines, _ in document["lines"]}
    assert all(count == shown or shown == 12 for count, shown in plotted.values())
    assert len(ends.keys() & served.keys()) >= min(len(served), 12)
    if "unstable" in answer:
        pending = {(group, row["producer_id"]) for row in rows(document, "transactions") for group in row["groups"]}
        assert {group for group, _ in pending} == {key[0] for key in answer["unstable"]}


def test_both_engines_make_the_same_page(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bulk_from: BulkFrom
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1.0)
    filtered = ("-g", "tx-*", "-t", "metrics*", "--until-offset", "60")
    for name, arguments, status in (
        ("kafka-4.3-mixed", (), 0),
        ("kafka-4.3-mixed", filtered, 0),
        ("random-java", (), 3),
    ):
        documents = []
        for least_bytes in (NEVER, 0):
            bulk_from(least_bytes)
            documents.append(made(recording(name) / "log", tmp_path / f"{least_bytes}.html", *arguments, status=status))
        assert documents[0] == documents[1]


def test_filters_and_bounds(recording: Recording, tmp_path: Path) -> None:
    document = made(
        recording("kafka-4.3-mixed") / "log", tmp_path / "p.html", "-g", "tx-tomb*", "--until-offset", "1:80"
    )
    assert [row["group"] for row in rows(document, "groups")] == ["tx-tomb-metrics"]
    assert document["about"]["only_groups"] == ["tx-tomb*"]
    assert document["about"]["until_record_offset"] == ["1:80"]
    (line,) = document["lines"]
    assert {(topic, partition): offsets[-1] for topic, partition, _, _, offsets in line[2]} == {
        ("T", 0): 81, ("T", 1): None, ("T", 2): 70,
    }  # fmt: skip


def test_damage_and_loads_that_fail_are_told(tmp_path: Path, recording: Recording) -> None:
    log = LogBuilder().commit(1).add((b"\0\1", b"")).commit(2)
    document = made(folder_of(log, tmp_path / "a"), tmp_path / "p.html", status=3)
    found = rows(document, "problems")
    assert {row["severity"] for row in found} >= {"fails", "damage"}
    assert [row["record_offset"] for row in found if row["severity"] == "damage" and row["file"]] == [1]
    document = made(recording("kafka-4.3-live-copy") / "log-torn", tmp_path / "t.html")
    assert any("not written whole" in row["problem"] for row in rows(document, "problems"))


def test_what_is_said_is_counted_and_stands_on_the_page(recording: Recording, tmp_path: Path) -> None:
    """Remarks about the inputs are on it too, bounds without effect are not; open transactions have a table."""
    log, page = tmp_path / "log", tmp_path / "page.html"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", log)
    assert "0 problems or notes, 3 open transactions; " in run(log, page, "--until-offset", "9:3").stderr
    (log / "__consumer_offsets-2.bak").mkdir()
    (log / "__consumer_offsets-2.bak" / f"{0:020}.log").write_bytes(b"")
    result = run(log, page)
    assert "1 problem or note, 3 open transactions; " in result.stderr
    document = made(log, page)
    (note,) = rows(document, "problems")
    assert note["severity"] == "note"
    assert note["problem"] in result.stderr.splitlines()
    assert len(rows(document, "transactions")) == 3


def test_nothing_there_still_makes_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"")
    document = made(tmp_path, tmp_path / "p.html")
    assert document["lines"] == []
    assert "No commits with a time." in opened(tmp_path / "p.html")


def test_the_page_appears_whole_or_not_at_all(tmp_path: Path, recording: Recording) -> None:
    page = tmp_path / "p.html"
    page.write_text("before")
    result = run(tmp_path / "nowhere", page)
    assert result.exit_code == 1
    assert page.read_text() == "before"


# ------------------------------------------------------------------------------------------- attacks

ATTACKS = [
    '</script><script>document.title="owned"</script>',
    '"><img src=x onerror="document.title=\'owned\'">',
    "'\"`${document.title='owned'}`",
    "<!--<script>",
    "]]>",
    "&lt;b&gt;&amp;",
    "{{DATA}}{{SCRIPT}}",
    "line\u2028and\u2029paragraph",
    "\u202eright to left\u202c",
    "zero\u200bwidth\ufeff",
    "\0\a\x1b[31m",
    "__proto__",
    "constructor",
    "toString",
    "javascript:alert(1)",
    "",
    "%",
    "\\u003c",
    "é😀 שלום",
    "x" * 3000,
]
BROKEN_GROUP = b"\xff<\xc0\xed\xa0\x80"


def attacking_log() -> LogBuilder:
    log = LogBuilder()
    for i, name in enumerate(ATTACKS):
        log.group(member(name[:40]), group=name, generation=i)
        log.commit(10 * i, group=name, topic=name, metadata=name).commit(10 * i + 1, group=name, topic=name)
        log.commit(1, group=name, topic=name, partition=1, producer=7 + i)
    log.commit((1 << 63) - 1, group="huge").commit(-(1 << 63), group="huge", partition=1)
    value = b"\0\3" + (9).to_bytes(8) + b"\xff\xff\xff\xff\0\0" + TIME.to_bytes(8)
    return log.add((b"\0\1" + len(BROKEN_GROUP).to_bytes(2) + BROKEN_GROUP + b"\0\1t\0\0\0\0", value))


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    document = made(folder_of(attacking_log(), tmp_path / "a"), page)
    text = page.read_text()
    broken = "\ufffd<\ufffd\ufffd"  # as Java reads it (B-7)
    assert {row["group"] for row in rows(document, "groups")} == {*ATTACKS, "huge", broken}
    assert len(re.findall(r"<script", text)) == 2
    (block,) = BLOCK.findall(text)
    assert block.isascii()
    assert not set(block) & set("<>&")
    assert base64.b64encode(BROKEN_GROUP).decode() in block
    for fragment in (f"#group={part}" for part in ("%3C!--%3Cscript%3E", "%", "", "huge")):
        shown = opened(page, fragment)
        assert "<title>Consumer offsets: report</title>" in shown
        assert 'data-is-ready="true"' in shown
        assert shown.count("<script") == 2
        assert "<img" not in shown
        body = html.unescape(re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL))
        assert "\u202e" not in body
        assert "\u2028" not in body
        assert "9223372036854775807" in body or fragment != "#group=huge"


def test_policy_allows_the_pages_own_script_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    made(folder_of(LogBuilder().commit(1), tmp_path / "a"), page)
    text = page.read_text()
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]*)"', text)
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"innerHTML|outerHTML|document\.write|eval\(|insertAdjacentHTML", text)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_have_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded_json(value)


def test_integers_beyond_a_double_are_texts() -> None:
    assert json.loads(embedded_json([1 << 53, (1 << 53) - 1, -(1 << 63), True])) == [
        str(1 << 53), (1 << 53) - 1, str(-(1 << 63)), True,
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ in a browser


@pytest.mark.parametrize("scheme", ["0", "1"], ids=["dark", "light"])
def test_a_browser_shows_the_recording(scheme: str, recording: Recording, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    made(recording("kafka-4.3-mixed") / "log", page)
    shown = opened(page, "#group=alive-metrics", f"--blink-settings=preferredColorScheme={scheme}")
    assert 'data-is-ready="true"' in shown
    chosen = shown.partition('id="chosen"')[2].partition("</section>")[0]
    assert 'data-group="alive-metrics"' in chosen
    assert chosen.count("<svg") == 2
    assert len(re.findall(r'<path class="line', chosen)) == 12 + 1
    assert "12 of 15 partitions" in chosen
    assert "pending-metrics" in shown.partition('id="transactions"')[2]
    assert "Everything was read. No damage was found." in shown
    for section in ("commits", "groups", "writers", "rebalances", "partitions"):
        assert len(shown.partition(f'<section id="{section}"')[2].partition("</section>")[0]) > 100, section


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-4.3-expired"])
def test_counts_of_groups_are_one_each(name: str, recording: Recording, tmp_path: Path) -> None:
    """Of all, of those that exist, that wrote, and that rebalanced; each where it says what it counts."""
    page = tmp_path / "p.html"
    document = made(recording(name) / "log", page)
    groups, about = rows(document, "groups"), document["about"]
    assert about["groups"] == sum(row["type"] is not None for row in groups)
    assert about["deleted_groups"] == sum(row["state"] == "deleted" for row in groups)
    shown = opened(page)

    def counted_in(section: str) -> str:
        (found,) = re.findall(
            r"<span>([^<]*)</span>", shown.partition(f'<section id="{section}"')[2].split("</section>")[0]
        )
        return str(found).rpartition(" of ")[2]

    assert counted_in("groups") == str(len({row["group"] for row in groups}))
    assert counted_in("writers") == str(sum(row.get("bytes") is not None for row in groups))
    rebalanced = sum(row.get("rebalances") is not None for row in groups)
    assert counted_in("rebalances") == (str(rebalanced) if rebalanced else "none")


def test_ten_thousand_groups_make_a_page_of_bounded_size_that_opens(tmp_path: Path) -> None:
    log = LogBuilder()
    for i in range(10_000):
        log.commit(i, group=f"group-{i:05}", partition=0).commit(i + 5, group=f"group-{i:05}", partition=0)
    page = tmp_path / "p.html"
    document = made(folder_of(log, tmp_path / "a"), page)
    assert document["about"]["groups"] == 10_000
    assert page.stat().st_size < 8_000_000
    began = time.monotonic()
    shown = opened(page, "#group=group-09999")
    assert time.monotonic() - began < 120
    assert 'data-group="group-09999"' in shown
    assert "1 to 20 of 10,000" in shown
    assert shown.count("<tr") < 200  # rows are made for what is seen
