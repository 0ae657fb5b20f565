"""``make mutants``: small faults put into modules, one at a time, and whether the tests of their subject notice.

Survivors go to standard output with the line that was changed, and at the end the score; the way there to standard
error. A survivor is a missing test, or a line that could be simpler, or a change that nobody can see: those have
a reason in `equivalent.toml`, and the score is told with and without them. With the same seed and the same modules the
mutants are the same.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import click

from tools.mutants.equivalent import equivalents
from tools.mutants.forks import SURVIVED
from tools.mutants.judge import EQUIVALENT, Judge, table
from tools.mutants.sample import draw
from tools.mutants.subjects import subjects


def main() -> None:
    rows = subjects()
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(row.name for row in rows)}")
    parser.add_argument("--mutants", type=int, default=10, help="of each subject (default 10)")
    parser.add_argument("--seed", default="1", help="of the sample (default 1)")
    given = parser.parse_args()
    if unknown := set(given.subjects) - {row.name for row in rows}:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    verdicts: list[tuple[str, str]] = []
    unseen = equivalents()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        judge = Judge(Path(folder))
        for row in rows:
            if given.subjects and row.name not in given.subjects:
                continue
            click.echo(f"{row.name} ...", err=True)
            mutants = draw(judge.folder, row.modules, given.mutants, random.Random(f"{given.seed} {row.name}"))
            for mutant, found in judge.verdicts(row, mutants):
                is_unseen = found.verdict == SURVIVED and any(fault.holds(mutant) for fault in unseen)
                verdict = EQUIVALENT if is_unseen else found.verdict
                verdicts.append((row.name, verdict))
                click.echo(f"{verdict}: {mutant.module}:{mutant.line} {mutant.kind} {found.failed}", err=True)
                if verdict == SURVIVED:
                    click.echo(f"{mutant.module}:{mutant.line} {found.why}\n  - {mutant.was}\n  + {mutant.became}")
    click.echo(table(verdicts))


if __name__ == "__main__":
    main()
