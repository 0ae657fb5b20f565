"""On a new machine a command first compiles the kernels that it needs: none that most logs need is forgotten, and no
other is among them.

Kernels are worth their start for all partitions together, though each of them is small.
"""

from __future__ import annotations

from pathlib import Path
from threading import current_thread, main_thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from offsets_log.columnar import needs
from offsets_log.columnar.jit.compiled import Kernel
from offsets_log.columnar.jit.sources import place_of
from offsets_log.columnar.scan.reading import Threads
from offsets_log.session.engine import Engine
from tests.cli.runs import SAMPLE, batch_of, commit, run, write_partition
from tests.conftest import BulkFrom

COMMANDS = {
    "compact SAMPLE": "folds.offsets.scan",
    "groups SAMPLE": "folds.offsets.scan",
    "info SAMPLE": "scan.gather.gather",
    "expire SAMPLE": "folds.offsets.scan",
    "check SAMPLE --loads-on 4.3.0": "folds.offsets.scan",
    "rebuild SAMPLE": "folds.offsets.scan",
    "diff SAMPLE SAMPLE": "folds.offsets.scan",
    "rescue SAMPLE --to out": "folds.offsets.scan",
    "top SAMPLE": "ledger.kernels.name_keys",
    "top SAMPLE --per client": "folds.holding.scan",
    "report SAMPLE --to out": "folds.overview.scan",
    "rebalances SAMPLE": "choose.choice.choose",
    "decode SAMPLE -o jsonl": "events.kernels.fill",
    "decode SAMPLE -o parquet --to out": "events.kernels.fill",
    "history SAMPLE -g *": "history.kernels.scan",
    "clean SEGMENTS --to out": "cleaning.sifting.sift",
    "repair SAMPLE --to out": "cleaning.whole.whole",
}
"""What is asked → the largest kernel that it needs."""
NOT_IN_THESE = {
    "folds.inspection.locate",
    "folds.transactions.join",
    "scan.gather.read_columns",
    "scan.interner.fill_slots",
    "scan.reading._step_to",
}
"""Small kernels that logs need which are longer than these, or whose transactions are open where parts meet."""


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    """Return a partition of two segments, in the first of which one of two records gives way, and another partition."""
    folder = write_partition(tmp_path / "segments", [batch_of(commit("g", offset=1), commit("g", offset=2))])
    (folder / "__consumer_offsets-0" / f"{2:020}.log").write_bytes(batch_of(commit("g", offset=3), first=2))
    write_partition(folder, [batch_of(commit("h"))], partition=1)
    return folder


def size_of_logs(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.log"))


@pytest.mark.parametrize("asked", COMMANDS)
def test_kernels_that_go_with_the_largest_are_named(
    asked: str, segments: Path, monkeypatch: pytest.MonkeyPatch, bulk_from: BulkFrom, tmp_path: Path
) -> None:
    largest: list[str] = []
    used: set[str] = set()
    compiled: set[str] = set()
    call = Kernel.__call__
    others = {*enumerate_threads()} - {main_thread()}  # of tests before, which may not have ended

    def noted_first(engine: Engine, of: str, *also: str) -> None:
        largest.append(of)
        compiled.update((of, *needs.WITH[of], *also))

    def noted(of: Kernel[Any], *arguments: Any) -> Any:
        if current_thread() not in others:
            used.add(place_of(of.function))
        return call(of, *arguments)

    monkeypatch.setattr(Engine, "compile_first", noted_first)
    monkeypatch.setattr(Kernel, "__call__", noted)
    monkeypatch.setattr(Engine, "threads", Threads(2, pieces=2))
    places = {"SAMPLE": SAMPLE, "SEGMENTS": str(segments), "out": str(tmp_path / "out")}
    bulk_from(sum(size_of_logs(Path(places[word])) for word in {"SAMPLE", "SEGMENTS"} & {*asked.split()}))
    name, *rest = [places.get(word, word) for word in asked.split()]
    assert run(name, *rest).exit_code == 0
    assert {*largest} == {COMMANDS[asked]}
    assert COMMANDS[asked] in used
    assert compiled - used <= NOT_IN_THESE
    assert not (used - compiled) & needs.SECONDS.keys()
