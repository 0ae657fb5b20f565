"""``--release X.Y`` means the rules of that very release, where they differ from those of its like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.runs import rows, run
from tests.conftest import NEVER, BulkFrom

OLDER = (("kafka-2.8", "2.2"), ("kafka-4.4-modern-groups", "4.0"))
"""Recordings, and a release that cannot load some of their partitions."""


@pytest.fixture(params=[0, NEVER], ids=["bulk", "small"])
def engine(request: pytest.FixtureRequest, bulk_from: BulkFrom) -> None:
    bulk_from(request.param)


@pytest.mark.parametrize(("name", "release"), OLDER)
@pytest.mark.usefixtures("engine")
def test_what_a_release_does_not_load_it_does_not_serve(
    name: str, release: str, recording: Callable[[str], Path]
) -> None:
    log = recording(name) / "log"
    judged = [row for row in rows("check", log, "--release", release, status=3) if row["kind"] == "load"]
    failing = {row["offsets_partition"] for row in judged if not row["ok"]}
    assert failing
    served = rows("compact", log, "--as-broker", "--release", release, status=3)
    nothing = {row["offsets_partition"] for row in judged if row["served"] == "nothing"}
    assert not nothing & {row["offsets_partition"] for row in served}
    told = run("compact", log, "--as-broker", "--release", release).stderr
    assert all(
        f"offsets partition {number}: a coordinator of Kafka {release} would not load it" in told for number in failing
    )
    loads = json.loads(run("rebuild", log, "--release", release).stdout)["loads"]
    assert {int(number) for number, load in loads.items() if not load["ok"]} == failing
