"""The records that a replay's kernels take: programs of keys and values, by the rules of a profile."""

from __future__ import annotations

import secrets
from functools import cache

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.state import State
from offsets_log.columnar.wire.programs import (
    IS_DISTINCT,
    IS_SUBSCRIPTION,
    OTHER,
    Program,
    compile_program,
    scan_state_of,
)
from offsets_log.log_format.record import Record
from offsets_log.messages.group_metadata import GROUP_METADATA_VALUE
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from offsets_log.messages.schema import Message
from offsets_log.replay.groups import BRANCHES
from offsets_log.replay.profile import Profile
from offsets_log.replay.refusal import Verdict, verdict_on

CHECKED = {GROUP_METADATA_VALUE.name: {"group_instance_id": IS_DISTINCT, "subscription": IS_SUBSCRIPTION}}
"""Message → fields that may end a load: where one text stands twice (``L-31``), or a length cannot be (``B-18``)."""


def rules_of(profile: Profile) -> int:
    """Return the profile as the bits that `offsets` tests."""
    return (
        fold.LATEST_BY_MARKER * (profile.latest_by == "marker")
        | fold.ENDS_BY_RECORD * (profile.cancels_pending == "all")
        | fold.TOMBSTONE_SPARES_COMMITTED * profile.tombstone_spares_committed
        | fold.CANCELS_OWN * (profile.cancels_pending == "own")
    )


NOTED: dict[int, tuple[str, ...]] = {2: ("topic_id", "generation", "members")}
TOPIC_ID_NOTE, GENERATION_NOTE, MEMBERS_NOTE = range(3)
"""Record type → fields of its values whose places are noted, and their numbers; of the others the first."""


Release = tuple[int, int]


@cache
def plain_programs(profile: Profile) -> dict[tuple[int, int | None], Program]:
    """Return (record type, value version; None for the key) → program, for records replayed whatever they hold.

    Whether they are is asked of `replay.refusal` with a value of zeros.
    """
    programs: dict[tuple[int, int | None], Program] = {}
    for number in range(a.KEY_TYPES):
        programs[number, None] = key_program(number)
        for version in range(a.VERSIONS):
            layouts = list(RECORD_TYPES[number].layouts(version))
            if len(layouts) == 1 and _is_plain(number, version, layouts[0], profile):
                checked = CHECKED.get(layouts[0].name, {})
                programs[number, version] = compile_program(
                    layouts[0], version, noted=NOTED.get(number, ("topic_id",)), checked=checked
                )
    return programs


def key_program(number: int) -> Program:
    """Return the program of a record type's key, which notes its first two fields: the group and what it has."""
    key = RECORD_TYPES[number].key
    return compile_program(key, 0, noted=[field.name for field in key.fields[:2]])


@cache
def newer_layouts(profile: Profile, release: Release | None) -> dict[int, Message]:
    """Record type → layout, of those of the newer kinds that `newer` can replay.

    Args:
        release: what it is in `messages.registry.decode_value`.
    """
    if profile.tombstones_need_their_target or profile.offsets_make_groups:
        return {}
    layouts = {}
    for number in profile.known_types & BRANCHES.keys():
        found = list(RECORD_TYPES[number].layouts(0))
        if release is not None:
            found.sort(key=lambda layout: not layout.is_written_by(release))
        if found[0].is_written_by(profile.release) and (number != newer.OWNING_TYPE or newer.can_own(found[0])):
            layouts[number] = found[0]
    return layouts


@cache
def newer_programs(profile: Profile, release: Release | None) -> dict[tuple[int, int | None], Program]:
    """Return the programs of the newer kinds, as `plain_programs`, and those of layouts they do not have."""
    programs: dict[tuple[int, int | None], Program] = {}
    for number, layout in newer_layouts(profile, release).items():
        programs[number, None] = key_program(number)
        programs[number, 0] = compile_program(layout, 0, noted=newer.OWNED_NOTES)
        for other in RECORD_TYPES[number].layouts(0):
            if other is not layout:
                programs[number, OTHER] = compile_program(other, 0)
    return programs


def _is_plain(number: int, version: int, layout: Message, profile: Profile) -> bool:
    sample = CoordinatorRecord(
        record_type=number,
        key=RECORD_TYPES[number].key.zeros(0),
        value_version=version,
        value=layout.zeros(version),
        layout=layout,
    )
    raw_key, raw_value = encode_coordinator_record(sample)
    decoded = decode_coordinator_record(raw_key, raw_value)
    return verdict_on(Record(offset=0, key=raw_key, value=raw_value), decoded, None, profile) is Verdict.REPLAY


def new_state(profile: Profile, release: Release | None = None, *, with_newer: bool) -> State:
    """Return arrays with the profile's programs and its rules, in which nothing is replayed.

    Args:
        with_newer: with the programs of `newer_programs` too.
    """
    scan_state = _scan_state(profile, release, with_newer=with_newer).copy()
    scan_state.seed = secrets.randbits(62)
    return State(scan_state)


@cache
def _scan_state(profile: Profile, release: Release | None, *, with_newer: bool) -> a.ScanState:
    programs = plain_programs(profile) | (newer_programs(profile, release) if with_newer else {})
    scan_state = scan_state_of(programs, seed=0)
    for number in range(a.RECORD_TYPES):
        for version in range(a.VERSIONS):
            program = programs.get((number, version))
            shape = None if program is None or number >= a.KEY_TYPES else program.one_string
            # The version stands in two bytes before, the string's length in two behind them.
            scan_state.one_string[number, version] = a.NOTHING if shape is None else shape[0] + 2
            scan_state.around_string[number, version] = 0 if shape is None else sum(shape) + 4
    scan_state.rules = rules_of(profile)
    scan_state.by_bit = profile.transactions_by_bit
    return scan_state
