"""Fuzz with hostile segments: ``python -m tests.fuzz --what engines --inputs 1000000``.

segments   what reads them never fails otherwise than it may (`mutation.check_segment`)
engines    the kernels make of them what the construct path makes
lines      the same of their text in every format
repair     what is repaired is whole, and loads (`tests.repairing`)
clean      by hand, in bulk and in threads the same is left, in which `check` finds nothing new (`tests.fuzz.cleaned`)
data-directory   commands over a whole data directory in which one file is another (`tests.fuzz.data_directory`)
requests   requests to ``serve`` are answered or refused, never with another's answer (`tests.fuzz.requests`)

Each process has a memory limit and each input a time limit. A finding is written to the folder ``crashers`` beside
this file, where the tests pick it up.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from types import FrameType
from typing import Any

from offsets_log.cleaner import bulk_threads
from offsets_log.columnar.folds import replay
from tests.fuzz.cleaned import check_cleaned, hostile_logs
from tests.fuzz.data_directory import check_data_directory, hostile_directories
from tests.fuzz.engines import check_engines, check_lines
from tests.fuzz.mutation import check_segment, hostile_segments, recorded_segments, seeds_of
from tests.fuzz.requests import check_request, hostile_requests
from tests.repairing.repaired import check_repaired

CRASHERS = Path(__file__).parent / "crashers"
MEMORY_LIMIT = 1 << 31
SECONDS_PER_INPUT = 5
"""Of the processor."""
SECONDS_AT_FIRST = 300
"""For the first input of a process, which may have to wait for kernels."""
INPUTS_A_JOB = 5_000

CHECKS: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "segments": check_segment,
    "engines": check_engines,
    "lines": check_lines,
    "repair": check_repaired,
    "clean": check_cleaned,
    "data-directory": check_data_directory,
    "requests": check_request,
}
"""What is asked → what checks an input: (events, damaged pieces) of it; whatever it raises is a finding."""
SUFFIXES = {"data-directory": ".json", "requests": ".request"}
"""Of findings."""
SEEDS = seeds_of(recorded_segments())


def _inputs(what: str, seed: int) -> Iterator[bytes]:
    match what:
        case "data-directory":
            return hostile_directories(seed)
        case "requests":
            return hostile_requests(seed)
        case "clean":
            return hostile_logs(SEEDS, seed)
        case "repair":
            return chain.from_iterable(zip(hostile_segments(SEEDS, seed), hostile_logs(SEEDS, seed), strict=True))
    return hostile_segments(SEEDS, seed)


class InThisThread(ThreadPoolExecutor):
    """A pool that works when it is given something: to wait for threads takes longer than small logs do."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Do it, or keep what it raises."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*given, **named))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)
        return future


def in_this_thread() -> None:
    """Let kernels' pools start no threads."""
    for module in (bulk_threads, replay):
        module.ThreadPoolExecutor = InThisThread  # type: ignore[attr-defined]


def _too_slow(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("an input took too long")


def _work(job: tuple[int, int, str]) -> tuple[int, int, int, int]:
    """Check so many inputs; (inputs, events, damaged pieces, findings)."""
    seed, inputs, what = job
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    signal.signal(signal.SIGPROF, _too_slow)
    in_this_thread()
    events = damages = findings = 0
    for number, data in enumerate(islice(_inputs(what, seed), inputs)):
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT if number else SECONDS_AT_FIRST)
        try:
            found = CHECKS[what](data)
            events, damages = events + found[0], damages + found[1]
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            findings += 1
            _keep(data, SUFFIXES.get(what, ".log"))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return inputs, events, damages, findings


def _keep(data: bytes, suffix: str) -> None:
    CRASHERS.mkdir(exist_ok=True)
    name = CRASHERS / f"{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
    name.write_bytes(data)
    sys.stderr.write(f"{name}\n{traceback.format_exc()}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=CHECKS, default="segments")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    jobs = [
        (options.seed + i, min(INPUTS_A_JOB, options.inputs - i * INPUTS_A_JOB), options.what)
        for i in range(-(-options.inputs // INPUTS_A_JOB))
    ]
    started = time.monotonic()
    totals = [0, 0, 0, 0]
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for result in pool.imap_unordered(_work, jobs):
            totals = [total + part for total, part in zip(totals, result, strict=True)]
            sys.stdout.write(f"\r{totals[0]} inputs, {totals[1]} events, {totals[2]} damaged, {totals[3]} findings ")
            sys.stdout.flush()
        pool.close()
        pool.join()
    sys.stdout.write(
        f"\n{len(SEEDS)} seeds, {totals[0]} inputs in {time.monotonic() - started:.0f} s, memory limit "
        f"{MEMORY_LIMIT >> 20} MiB, seed {options.seed}: {totals[3]} findings\n"
    )
    return 1 if totals[3] else 0


if __name__ == "__main__":
    sys.exit(main())
