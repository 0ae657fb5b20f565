"""What is compared, in the order in which it is done: what is cheap and sure first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.release_drift.classes import class_drift
from tools.release_drift.damages import damage_drift
from tools.release_drift.facts import enum_drift, feature_drift, setting_drift
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.messages import message_drift
from tools.release_drift.recordings import recording_drift
from tools.release_drift.rounds import cleaner_drift
from tools.release_drift.under_brokers import BROKERS, TOOLS, failing
from tools.release_drift.vectors import vector_drift


@dataclass(frozen=True, slots=True)
class Step:
    """One comparison.

    Attributes:
        name: as it is asked for.
        what: what is compared.
        takes: how long that takes, in words.
        run: given the release's jars and those of the last one that is known, what differs.
    """

    name: str
    what: str
    takes: str
    run: Callable[[Jars, Jars], Iterator[Finding]]


STEPS = {
    step.name: step
    for step in (
        Step("messages", "descriptions of messages against schema tables", "a second", message_drift),
        Step("errors", "error codes, control records, transaction states", "two seconds", enum_drift),
        Step("settings", "names and defaults of settings", "two seconds", setting_drift),
        Step("features", "feature levels", "two seconds", feature_drift),
        Step("vectors", "messages that its own classes write", "ten seconds", vector_drift),
        Step("classes", "code that rules were read in", "ten seconds", class_drift),
        Step("cleaner", "rounds of its own log cleaner", "a minute or two", cleaner_drift),
        Step("recordings", "its broker and clients at work", "three minutes", recording_drift),
        Step("damage", "its broker over the recorded damages", "twenty minutes", damage_drift),
        Step("tools", "its own tools and clients against `serve`", "two minutes", failing(TOOLS)),
        Step("brokers", "its broker over logs that were made here", "ten minutes", failing(BROKERS)),
    )
}
"""Name → step."""
