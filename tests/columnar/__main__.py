"""Compare both engines on many hostile segments: ``python -m tests.columnar --inputs 1000000``."""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import islice
from pathlib import Path
from typing import Any

from offsets_log.columnar.events import export, tables
from offsets_log.columnar.folds import replay
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.replay.profile import PROFILES
from tests.columnar.engines import columnar_answer, columnar_rows, construct_answer, construct_rows
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of

CRASHERS = Path(__file__).parent.parent / "fuzz" / "crashers"
CHUNK = 2_000


class _AtOnce(Executor):
    """In place of threads, whose beginning takes longer than an input."""

    def __init__(self, max_workers: int) -> None:
        pass

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **named))
        return future


def _compare(job: tuple[int, int]) -> int:
    """So many inputs of a seed, each replayed under one of the profiles and decoded; how many differ."""
    seed, inputs = job
    differing = 0
    for number, data in enumerate(islice(hostile_segments(SEEDS, seed), inputs)):
        profile = list(PROFILES.values())[number % len(PROFILES)]
        log = PartitionLog(0, (Segment("fuzz.log", 0, data),))
        is_equal = columnar_answer(log, profile) == construct_answer(log, profile)
        if not is_equal or columnar_rows(log) != construct_rows(log):
            differing += 1
            CRASHERS.mkdir(exist_ok=True)
            name = CRASHERS / f"{hashlib.sha256(data).hexdigest()[:16]}.log"
            name.write_bytes(data)
            sys.stderr.write(f"{profile.name}: {name}\n")
    return differing


SEEDS = seeds_of(recorded_segments())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    vars(replay)["ThreadPoolExecutor"] = vars(export)["ThreadPoolExecutor"] = _AtOnce
    vars(tables).update(ROWS_IN_TABLE=512, LEAST_ENTRIES=64)  # quicker made, and outgrown sooner
    jobs = [(options.seed + i, min(CHUNK, options.inputs - i * CHUNK)) for i in range(-(-options.inputs // CHUNK))]
    differing = done = 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for job, found in zip(jobs, pool.imap(_compare, jobs), strict=True):
            differing, done = differing + found, done + job[1]
            sys.stdout.write(f"\r{done} inputs, {differing} differ ")
            sys.stdout.flush()
    sys.stdout.write(f"\nseed {options.seed}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
