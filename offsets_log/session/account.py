"""The account of a run: it counts, keeps and reports what is damaged, missing or wrong, and sets the exit status."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import ExitStack
from copy import copy
from typing import BinaryIO

from offsets_log.disk.folders import refuse_inside_inputs
from offsets_log.disk.writer import atomic_output, output_errors
from offsets_log.errors import Damage, MissingLogError
from offsets_log.events import BatchEnd, Event, LogEvent, TailFound
from offsets_log.log_format.completeness import Missing, below_start
from offsets_log.log_format.partition_log import POSITION, PartitionLog
from offsets_log.release_names import rules_in_words
from offsets_log.replay.problem import Problem
from offsets_log.rows.problems import kind_of
from offsets_log.rows.survey import Survey, describe_tail
from offsets_log.rows.tables import Row, damage_row, partition_name, problem_row, to_json
from offsets_log.session.inputs import WHAT_TO_GIVE, Inputs
from offsets_log.session.listener import Listener, Remarks
from offsets_log.words import counted

EXIT_DAMAGED = 3
EXIT_ALERT = 4
DAMAGE_SHOWN = 5
MAX_DAMAGES_KEPT = 100_000


class Account:
    """The account of a run's inputs: damage, missing log and remarks, and with them the exit status.

    Attributes:
        inputs: the inputs that it is about.
        listener: hears all of it.
        advance: call it with a number of bytes read, from any thread.
        pieces: the first pieces that could not be read: what they are in a word, and as rows.
        corrupt: how many pieces Kafka cannot have written.
        lacking: how many of these are logs of other topics that are missing, or their ends.
        unsupported: how many pieces Kafka may have written in a form that is not known here.
        left_out_bytes: how many bytes of the logs belong to no batch that was read.
        damaged_logs: ``id`` of each log that holds something other than whole batches and records.
        torn_logs: of these, those that are sound but for an end that a killed broker cuts off as it starts.
        tails: what follows the last whole batch of a file, and of which log.
        lost: missing log that nothing explains, including absent partitions.
        has_alerted: whether something came true that the user wanted to be alerted of.
        is_wrong: whether a command found something wrong other than damage; it decides the exit status too.
        tells_brokers: whether the command itself says what brokers make of damage.
        unloaded: offsets partition → why a coordinator would not load it, of those that are else sound.
        below_start: what lies below the log start offsets.
        leaves_out_below_start: whether the answer is without it, as a broker's.
        tells_homes: whether the command itself says which groups belong to offsets partitions that were not read.
        keeps_pieces: what is said of a way to get the pieces.
        sums_up: whether the command itself counts what is damaged or missing: no piece of it is named, but with -v.
    """

    keeps_pieces = "; --quarantine FILE keeps the pieces"

    def __init__(self, inputs: Inputs, stack: ExitStack, listener: Listener) -> None:
        self.damaged_logs: set[int] = set()
        self.torn_logs: set[int] = set()
        self.pieces: list[tuple[str, Row]] = []
        self.tails: list[tuple[PartitionLog, TailFound]] = []
        self.lost: list[Missing] = []
        self.corrupt = 0
        self.lacking = 0
        self.unsupported = 0
        self.left_out_bytes = 0
        self.has_alerted = False
        self.is_wrong = False
        self.tells_brokers = False
        self._said: set[str] = set()
        self.tells_homes = False
        self.sums_up = False
        self.unloaded: dict[int | None, Problem] = {}
        self.inputs = inputs
        self.listener = listener
        self._scope = scope = inputs.scope
        self._quarantine: BinaryIO | None = None
        if scope.quarantine is not None:
            self.open_quarantine(scope.quarantine, stack)
        self.below_start = [*filter(None, map(below_start, inputs.logs))]
        self.leaves_out_below_start = False
        self._bytes_to_read = sum(log.bytes_to_read for log in inputs.logs)
        self.advance = stack.enter_context(listener.progress(self._bytes_to_read))

    def open_quarantine(self, file: str, stack: ExitStack) -> None:
        """Begin what gets the pieces that cannot be read."""
        refuse_inside_inputs(file, (), self.inputs.files)
        self._quarantine = stack.enter_context(atomic_output(file, inputs=self.inputs.files))

    def aside(self, inputs: Inputs) -> Account:
        """Return an account of other inputs: what it reports and counts is not reported and counted by this run."""
        other = copy(self)
        other.inputs, other._scope, other.listener = inputs, inputs.scope, Remarks()
        other.pieces, other.tails, other.lost, other._quarantine = [], [], [], None
        other.advance = lambda size_bytes: None
        return other

    def say(self, words: str) -> None:
        """Remark something about the data."""
        self.listener.say(words)

    def say_once(self, words: str) -> None:
        """Remark something that may hold for several partitions."""
        if words not in self._said:
            self._said.add(words)
            self.say(words)

    def tell(self, seen: TailFound | Missing) -> None:
        """Report something other than damage; under --strict, raise an error for log that is lost."""
        if isinstance(seen, TailFound):
            self._name(f"{seen.segment.file}: {describe_tail(seen)}")
        elif seen.is_lost:
            if self._scope.strict:
                raise MissingLogError(seen.in_words())
            self.lost.append(seen)
            self._name(f"missing: {seen.in_words()}")

    def _name(self, words: str) -> None:
        """Report a piece, unless the command sums them up."""
        if self._scope.verbose or not self.sums_up:
            self.say(words)

    def has_read_all_of(self, log: PartitionLog) -> bool:
        """Return whether nothing of a log, or of the text that tells it, is missing or damaged but a torn end."""
        file = log.segments[0].file if POSITION in log.missing_columns else ""
        if any(damage.error.file and file.startswith(damage.error.file) for damage in self.inputs.damages):
            return False
        is_lost = any(missing.offsets_partition == log.offsets_partition for missing in self.lost)
        return not is_lost and id(log) not in self.damaged_logs - self.torn_logs

    def _harm(self, log: PartitionLog) -> None:
        self.damaged_logs.add(id(log))
        self.torn_logs.discard(id(log))

    def tell_tail(self, log: PartitionLog, seen: TailFound) -> None:
        """Report a tail; zeros that an orderly stop would have cut off count as damage (``D-8``)."""
        self.tails.append((log, seen))
        is_cut = log.checkpoints.stopped_cleanly is False and not seen.lost and not seen.segment.is_of_broken
        if is_cut and id(log) not in self.damaged_logs:
            self.torn_logs.add(id(log))
        self.damaged_logs.add(id(log))
        if seen.tail.kind != "zeros" or not log.checkpoints.stopped_cleanly:
            self.tell(seen)
            return
        self.is_wrong = True
        self.say(
            f"{seen.segment.file}: {seen.tail.size_bytes} bytes from position {seen.tail.position} on are zeros: after "
            "a clean stop, as here, no broker starts over such zeros"
        )

    def watch(
        self, log: PartitionLog, events: Iterable[LogEvent], advance: Callable[[int], None]
    ) -> Iterator[LogEvent]:
        """Pass on the events of a log; report tails and missing log on the way."""
        for event in events:
            match event:
                case BatchEnd(batch=batch):
                    advance(batch.size_bytes)
                case Damage():
                    self._harm(log)
                case TailFound():
                    self.tell_tail(log, event)
                case Missing():
                    self.tell(event)
            yield event

    def drain(self, events: Iterable[LogEvent]) -> None:
        """Read events to their end for what others note on the way; damage is reported."""
        for event in events:
            damage = event.damage if isinstance(event, Event) else event
            if isinstance(damage, Damage):
                self.on_damage(damage)

    def noting(self, log: PartitionLog, found: Survey | None = None) -> Callable[[Damage | TailFound | Missing], None]:
        """Return a function that takes what was seen in a log in bulk."""

        def note(seen: Damage | TailFound | Missing) -> None:
            if isinstance(seen, Damage):
                if not seen.is_of_content:
                    self._harm(log)
                self.on_damage(seen)
                return
            if isinstance(seen, TailFound):
                self.tell_tail(log, seen)
            else:
                self.tell(seen)
            if found is not None:
                found.saw(seen)

        return note

    def on_damage(self, damage: Damage) -> None:
        """Count, keep and report a piece that could not be read; under --strict, raise its error."""
        self.inputs.locate(damage)
        if self._scope.strict:
            raise damage.error
        if damage.is_unsupported:
            self.unsupported += 1
        else:
            self.corrupt += 1
            self.lacking += isinstance(damage.error, MissingLogError)
        self.keep(damage)
        self.left_out_bytes += 0 if damage.is_of_content else len(damage.raw)
        if len(self.pieces) < MAX_DAMAGES_KEPT:
            self.pieces.append((kind_of(damage), problem_row(damage)))
        count = self.corrupt + self.unsupported
        if self._scope.verbose or count <= DAMAGE_SHOWN:
            self._name(f"{kind_of(damage)}: {damage.error}")
        elif count == DAMAGE_SHOWN + 1:
            self._name("more pieces could not be read; -v names them all")

    @property
    def damages(self) -> list[Row]:
        """The first pieces that could not be read, as rows."""
        return [row for _, row in self.pieces]

    def keep(self, damage: Damage) -> None:
        """Write a piece that could not be read to the quarantine, if there is one."""
        if self._quarantine is not None:
            with output_errors(str(self._scope.quarantine)):
                self._quarantine.write(to_json(damage_row(damage)).encode() + b"\n")

    def note_load(self, log: PartitionLog, failure: Problem | None) -> None:
        """Note what ended the load of a log, if anything did; of a damaged one that depends on its broker's start."""
        if failure is not None and not failure.is_served and self.has_read_all_of(log):
            self.unloaded[log.offsets_partition] = failure

    def tell_loads(self, profile_name: str, shown: Set[int | None]) -> dict[int | None, Problem]:
        """Report and return what a coordinator would not load; `compact` in bulk does not notice all.

        Args:
            shown: those that the answer is of; others are of no interest where filters chose it.
        """
        found = {number: why for number, why in self.unloaded.items() if number in shown or not self._scope.filters}
        if not found:
            return found
        number, why = next(iter(found.items()))
        named = f"offsets partition {partition_name(number)} (record offset {why.record_offset}, {why.rule})"
        and_others, whose, says = ("", "its", "says why") if len(found) == 1 else (" and others", "their", "names all")
        self.say(
            f"a coordinator of {rules_in_words(profile_name)} would not load {named}{and_others}, and serve none of "
            f"{whose} groups: offsets-log check {says}"
        )
        return found

    def finish(self, words: str, found: int | None = None, names: Iterable[str] = ()) -> None:
        """Report the result, and what it lacks; before that, what of the cluster's metadata was looked at.

        Args:
            found: how many rows the answer has; of none it is told which filters and bounds left nothing.
            names: what was asked for by name, without an option.
        """
        for note in self.inputs.clusters.notes:
            self.say(note)
        self.say(words)
        self._tell_idle(found, names)
        if self.lost and not self.sums_up:
            count = sum(missing.count for missing in self.lost)
            self.say(
                f"not all of the log is there: {counted(count, 'offset is', 'offsets are')} missing"
                + ("" if all(missing.told for missing in self.lost) else ", and nothing explains it")
            )
        if self.lacking:
            logs = counted(self.lacking, "log beside the offsets topic is", "logs beside the offsets topic are")
            self.say(f"{logs} missing or cut off")
        if (self.corrupt > self.lacking or self.unsupported) and not self.sums_up:
            self.say(
                f"not everything could be read: {self.corrupt - self.lacking} corrupt, {self.unsupported} unsupported"
                + ("" if self._scope.quarantine else self.keeps_pieces)
            )
        if self.inputs.logs and not self._bytes_to_read:
            self.say("nothing was read: no file of these logs holds a byte of one; a copy may have been cut off")
        if 0 < self._bytes_to_read <= self.left_out_bytes and not found:
            self.say(f"no batch was found: this may be no log of Kafka. {WHAT_TO_GIVE}")
        elif not self.tells_brokers and (starts := list(self.inputs.iter_starts())):
            for words in starts:
                self.say_once(words)
        elif self.damaged_logs - self.torn_logs and not self.tells_brokers:
            self.say("a broker started on these files may know less than this, or fail to start: ask offsets-log check")

    def _tell_idle(self, found: int | None, names: Iterable[str]) -> None:
        """Report the filters that leave nothing, or that fit nothing; arguments as of `finish`."""
        why = self._why_nothing(names) if found == 0 else []
        others = [*self.inputs.idle_filters, *self._partition_filters] if found and self.inputs.idle_filters else []
        if (why or others) and not self.tells_homes:
            for sentence in self.inputs.iter_elsewhere(self.inputs.shows_group.idle_names):
                self.say(sentence)
        for sentence in self.inputs.iter_of_names():
            self.say(sentence)
        if why:
            self.say(f"nothing here fits {' '.join(why)}: offsets-log groups and offsets-log info show what is here")
        elif others:
            self.say(f"nothing here fits {' '.join(others)}, what is shown fits the others")

    def _why_nothing(self, names: Iterable[str]) -> list[str]:
        """Return what leaves nothing, as it may be given: of the filters those that nothing fits, or all."""
        scope = self._scope
        asked = [*map(shlex.quote, names), *self.inputs.idle_filters, *scope.bounds] or scope.filters
        return [*asked, *self._partition_filters] if asked else []

    @property
    def _partition_filters(self) -> list[str]:
        return [f"-p {number}" for number in self._scope.offsets_partition]

    @property
    def exit_status(self) -> int:
        """0, or 3 if something was damaged, unsupported, lost, wrong, deleted or of several clusters; 4 after an alert.

        Copies of a partition that disagree are wrong, whichever is read.
        Damage is that of files beside the logs too, whether this command asks what they say or not.
        """
        if self.has_alerted:
            return EXIT_ALERT
        is_incomplete = self.corrupt or self.unsupported or self.lost or self.inputs.has_broken_files
        clusters = self.inputs.clusters
        is_untold = clusters.are_mixed or clusters.is_damaged or self.inputs.copies_in_doubt
        reads_deleted = not self.leaves_out_below_start and any(found.records for found in self.below_start)
        return EXIT_DAMAGED if is_incomplete or self.is_wrong or is_untold or reads_deleted else 0
