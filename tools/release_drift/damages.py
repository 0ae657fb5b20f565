"""A release's broker started over the recorded damages: is its verdict the one that was recorded?

Partitions that the recorded broker started with lie under one broker, folder by folder. One that it refused, or never
finished, is started with alone, for it would stop the others.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

from offsets_log.log_format.file_names import CLEAN_SHUTDOWN, PARTITION_METADATA
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.replay.partition_for import partition_for
from tests.coordinator.broker import Broker
from tests.repairing.under_broker import put_under, topic_id
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.java import run_java
from tools.release_drift.tables import ROOT

ARCHIVE = ROOT / "tests" / "broker" / "damaged.tar.xz"
RECORDED = "4.3.0"
PARTITIONS = 40
PATIENCE_S = 60
"""After which a partition that does not answer will not be loaded."""

Case = dict[str, Any]


def damage_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield the damages over which the broker starts, loads or answers otherwise than 4.3.0 did.

    Raises:
        NotAvailableError: there is no Java.
    """
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(ARCHIVE) as tar:
            tar.extractall(work, filter="data")
        lines = (Path(work) / "verdicts.jsonl").read_text(encoding="utf-8").split("\n")
        cases = [case for line in lines if line and (case := json.loads(line))["release"] == RECORDED]
        template = _template(jars, Path(work) / "template")
        for number, together in enumerate(_started_together(cases)):
            yield from _trial(jars, template, Path(work), together, number)


def _started_together(cases: Sequence[Case]) -> Iterator[list[Case]]:
    for _, of_folder in groupby(sorted(cases, key=_folder_of), key=_folder_of):
        known = list(of_folder)
        alone = [case for case in known if not case["started"] or case["load"] == "never ends"]
        yield [case for case in known if case not in alone]
        yield from ([case] for case in alone)


def _folder_of(case: Case) -> str:
    name: str = case["data"].removesuffix(".tar.gz")
    return name


def _template(jars: Jars, work: Path) -> Broker:
    """A broker that was stopped in order, with an empty topic."""
    work.mkdir()
    broker = Broker(jars.folder, work, PARTITIONS)
    with broker.running():
        broker.ask({"nobody": []})
    return broker


def _trial(jars: Jars, broker: Broker, work: Path, cases: Sequence[Case], number: int) -> Iterator[Finding]:
    kept = broker.work / "kept"
    if not kept.exists():
        shutil.copytree(broker.data, kept)
    shutil.rmtree(broker.data)
    shutil.copytree(kept, broker.data)
    folder = work / _folder_of(cases[0])
    partitions = [case["partition"] for case in cases]
    for partition in partitions:
        metadata = folder / f"{OFFSETS_TOPIC}-{partition}" / PARTITION_METADATA
        metadata.write_text(f"version: 0\ntopic_id: {topic_id(broker.data)}")
    put_under(broker.data, folder, partitions, work / f"old-{number}", is_recovered=False)
    if not (folder / CLEAN_SHUTDOWN).exists():
        (broker.data / CLEAN_SHUTDOWN).unlink(missing_ok=True)
    answers = _answers(jars, broker, cases)
    for case in cases:
        differing = tuple(_differing(case, answers.get(str(case["partition"]))))
        if differing:
            yield Finding(f"damage {case['case']} ends otherwise", differing)


def _answers(jars: Jars, broker: Broker, cases: Sequence[Case]) -> dict[str, Any]:
    """What it answers of each partition; nothing if it does not start."""
    asked, told = broker.work / "questions.json", broker.work / "answers.json"
    asked.write_text(json.dumps({str(case["partition"]): _groups(case) for case in cases}))
    try:
        with broker.running():
            run_java(jars, "AskLoads", str(broker.port), str(PATIENCE_S), str(asked), str(told))
    except AssertionError:
        return {}
    answers: dict[str, Any] = json.loads(told.read_bytes())
    return answers


def _groups(case: Case) -> list[str]:
    """Those whose offsets were answered, and one that the partition has never held."""
    names = (f"nobody {number}" for number in count())
    unknown = next(name for name in names if partition_for(name, PARTITIONS) == case["partition"])
    return sorted({row[0] for row in case["offsets"]} | {unknown})


def _differing(case: Case, answer: dict[str, Any] | None) -> Iterator[str]:
    if answer is None or not case["started"]:
        if (answer is not None) != case["started"]:
            yield f"{RECORDED} started: {case['started']}, it started: {answer is not None}"
        return
    was_answered = case["load"] == "ok" and not case["errors"]
    if answer["ok"] != was_answered:
        yield f"{RECORDED}: load {case['load']} {case['errors']}; it: {answer.get('error', 'ok')}"
    elif answer["ok"]:
        recorded = sorted((row for row in case["offsets"] if len(row) == 6), key=repr)
        if sorted(answer["offsets"], key=repr) != recorded:
            yield f"{RECORDED} served {recorded}, it serves {answer['offsets']}"
    if answer["log_end_offset"] != case["log_end_offset"]:
        yield f"{RECORDED}: log end {case['log_end_offset']}, it: {answer['log_end_offset']}"
