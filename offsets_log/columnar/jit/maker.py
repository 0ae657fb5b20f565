"""A process that compiles what it is asked for, line by line on standard input, and ends when that does."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from offsets_log.columnar.jit.keeping import leave, packed
from offsets_log.columnar.jit.making import SIZE_BYTES, made_here


def main() -> None:
    """Answer each line, a kernel's module, name and file, with its code after the length of it."""
    gc.disable()  # numba makes a million objects for a kernel, and hardly any cycles
    asked: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_hear, args=(asked,), daemon=True).start()
    while True:
        module, name, file = json.loads(asked.get())
        made = packed(*made_here(module, name, Path(file)))
        sys.stdout.buffer.write(len(made).to_bytes(SIZE_BYTES) + made)
        sys.stdout.buffer.flush()


def _hear(asked: SimpleQueue[bytes]) -> None:
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as lines:  # without a lock that an exit waits for
        for line in lines:
            asked.put(line)
    leave()


if __name__ == "__main__":
    main()
