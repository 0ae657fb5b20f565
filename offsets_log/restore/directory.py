"""List all files of a rescue: path below the directory, and the text in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.restore import share_groups
from offsets_log.restore.doubtful import NAME as DOUBTFUL
from offsets_log.restore.plan import encode_plan
from offsets_log.restore.readme import DETAILS, README, details, readme
from offsets_log.restore.rows import Files
from offsets_log.restore.tools import TOOLS, accepted_by, left_out, refused_by_some
from offsets_log.rows.tables import Row, to_json


def rescue_files(plan: Row, judged: Sequence[Row] | None = None) -> Files:
    """Yield the files that `rescue` writes for a plan.

    Args:
        judged: rows of offsets that will not do on the target; None if none was judged.
    """
    yield "plan.json", encode_plan(plan)
    refused = refused_by_some(plan["offsets"])
    yield README, readme(plan, refused)
    yield DETAILS, details(plan, refused)
    for tool in TOOLS:
        yield from tool.files(accepted_by(tool, plan["offsets"], refused))
    if "share_offsets" in plan:
        yield from share_groups.files(plan["share_offsets"])
    if judged is not None:
        yield "target.jsonl", (f"{to_json(row)}\n" for row in judged)
    if DOUBTFUL in plan:
        yield f"{DOUBTFUL}.jsonl", (f"{to_json(row)}\n" for row in plan[DOUBTFUL])
    if "translation" in plan:
        yield "translation.jsonl", (f"{to_json(row)}\n" for row in plan["translation"])
    yield "left-out.jsonl", (f"{to_json(row)}\n" for row in [*plan.get("left_out", ()), *left_out(refused)])
