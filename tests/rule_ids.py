"""Which rules of the coordinators no test cites: ``python -m tests.rule_ids``.

The rules are those of Kafka's loaders (L Scala, J Java), of expiry (E), assignors (A) and groups' votes (G), and what
real brokers corrected (B); docstrings cite them. A rule that no offline replay can hold is explained here instead.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TESTS = Path(__file__).parent
LAST = {"L": 44, "J": 24, "E": 22, "B": 17, "A": 22, "G": 11}
RULES = [f"{part}-{i}" for part, last in LAST.items() for i in range(1, last + 1)]

NOT_OFFLINE = {
    "L-1": "which thread loads, and when",
    "L-2": "a segment copy begins where it begins; `info` shows its first offset",
    "L-3": "the end of a file is its end; --until-offset gives another",
    "L-4": "a broker that spins over a compacted tail",
    "L-5": "how a broker reads its own log",
    "L-7": "a checksum no load verifies: `iter_batches(verify_crc=False)` is tested as records:B4",
    "L-10": "names of the maps of 0.10",
    "L-28": "protocols a member could vote for: nothing of them is in an answer",
    "L-37": "where 0.8.2 to 0.10.0 keep offsets; what they serve is the same",
    "L-38": "a cache that already has the group: an offline load begins empty",
    "L-41": "timers that a load starts",
    "J-1": "as L-2 to L-6",
    "J-23": "timers that a load starts",
    "J-24": "what a client sees before the high watermark",
    "E-21": "a deleted topic: the broker's own act; its tombstones are read like any others",
    "A-22": "the broker's own assignors: what they gave is in the log, how is not told",
    "B-14": "every answer after a restart is one: the recordings are compared with them",
}
"""Rule → why no test of files cites it."""


def uncited() -> list[str]:
    """Rules without a citation in any test and without an explanation."""
    texts = "\n".join(path.read_text() for path in TESTS.rglob("*.py") if path != Path(__file__))
    cited = set(re.findall(r"\b[LJEBAG]-\d+", texts)) | _ranges(texts)
    return [rule for rule in RULES if rule not in cited and rule not in NOT_OFFLINE]


def _ranges(texts: str) -> set[str]:
    """``L-24``–``L-31`` and ``E-4 … E-9`` cite all between."""
    found = set()
    for part, first, last in re.findall(r"\b([LJEBAG])-(\d+)`*\s*(?:–|…|to)\s*`*\1-(\d+)", texts):
        found |= {f"{part}-{i}" for i in range(int(first), int(last) + 1)}
    return found


if __name__ == "__main__":
    missing = uncited()
    sys.stdout.write("\n".join(missing) + "\n" if missing else "every rule is cited or explained\n")
    sys.exit(1 if missing else 0)
