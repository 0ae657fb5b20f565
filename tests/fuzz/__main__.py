"""Fuzz the reading of segments, or their repair: ``python -m tests.fuzz --inputs 1000000 [--what repair]``.

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
from pathlib import Path
from types import FrameType

from tests.fuzz.mutation import check_segment, hostile_segments, recorded_segments, seeds_of
from tests.repairing.repaired import check_repaired

CRASHERS = Path(__file__).parent / "crashers"
MEMORY_LIMIT = 1 << 30
SECONDS_PER_INPUT = 5


def _too_slow(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"an input took more than {SECONDS_PER_INPUT} s")


def _work(job: tuple[int, int, str]) -> tuple[int, int, int, int]:
    """Check so many inputs; (inputs, events, damaged pieces, findings)."""
    seed, inputs, what = job
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    signal.signal(signal.SIGALRM, _too_slow)
    events = damages = findings = 0
    for _, data in zip(range(inputs), hostile_segments(SEEDS, seed), strict=False):
        signal.alarm(SECONDS_PER_INPUT)
        try:
            found = CHECKS[what](data)
            events, damages = events + found[0], damages + found[1]
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            findings += 1
            CRASHERS.mkdir(exist_ok=True)
            name = CRASHERS / f"{hashlib.sha256(data).hexdigest()[:16]}.log"
            name.write_bytes(data)
            sys.stderr.write(f"{name}\n{traceback.format_exc()}\n")
        finally:
            signal.alarm(0)
    return inputs, events, damages, findings


CHECKS = {"read": check_segment, "repair": check_repaired}
SEEDS = seeds_of(recorded_segments())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--what", choices=CHECKS, default="read")
    options = parser.parse_args()
    chunk = 5_000
    jobs = [
        (options.seed + i, min(chunk, options.inputs - i * chunk), options.what)
        for i in range(-(-options.inputs // chunk))
    ]
    started = time.monotonic()
    totals = [0, 0, 0, 0]
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for result in pool.imap_unordered(_work, jobs):
            totals = [total + part for total, part in zip(totals, result, strict=True)]
            sys.stdout.write(f"\r{totals[0]} inputs, {totals[1]} events, {totals[2]} damaged, {totals[3]} findings ")
            sys.stdout.flush()
    sys.stdout.write(
        f"\n{len(SEEDS)} seeds, {totals[0]} inputs in {time.monotonic() - started:.0f} s, memory limit "
        f"{MEMORY_LIMIT >> 20} MiB, seed {options.seed}: {totals[3]} findings\n"
    )
    return 1 if totals[3] else 0


if __name__ == "__main__":
    sys.exit(main())
