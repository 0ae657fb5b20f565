"""The view of brokers on a run's partitions: for `--as-broker`, and where something is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from offsets_log.broker.home import at_home
from offsets_log.broker.outcome import Outcome, start_error
from offsets_log.broker.shutdowns import in_words, outcomes_by_shutdown
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.profile import Profile
from offsets_log.rows.asked_names import AskedNames
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import partition_name
from offsets_log.session.engine import Loaded
from offsets_log.session.homes import Places, all_groups
from offsets_log.session.scope import BrokerOptions
from offsets_log.session.session import Session

Part = tuple[PartitionLog, CoordinatorState, Survey, dict[str, Outcome]]
"""A log, the state it leads to, the survey of it, and the outcome of each stop before."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """Brokers of one release that start over what a run reads.

    Attributes:
        asked: whether the answer is what their coordinators hold after the start, in place of what can be read; if both
            kinds of stop before it are possible, after a clean one.
    """

    session: Session
    profile: Profile
    asked: BrokerOptions

    def load(self, *, all_topics: bool = False) -> Iterator[Part]:
        """Yield every partition as brokers load it, as far as filters show it.

        Whole groups are read, whoever asks: their members decide too whether a load fails.

        Args:
            all_topics: whether to include topics that filters leave out.
        """
        session = self.session
        session.account.tells_brokers = True
        session.account.leaves_out_below_start |= self.asked.as_broker
        shows_topic = AskedNames(()) if all_topics else session.inputs.shows_topic
        read = session.engine.load_whole(self.profile, whole_groups=True)
        for log, state, found, outcomes in self._answers(read) if self.asked.as_broker else self._with_outcomes(read):
            yield log, state.showing(session.inputs.shows_group, shows_topic), found, outcomes

    def _with_outcomes(self, read: Iterable[Loaded]) -> Iterator[Part]:
        for log, state, found in read:
            is_told = id(log) in self.session.account.damaged_logs or start_error(log, self.profile) is not None
            yield log, state, found, self._outcomes(log, state) if is_told else {}

    def _answers(self, read: Iterable[Loaded]) -> Iterator[Part]:
        parts = [(log, state, found, self._outcomes(log, state)) for log, state, found in read]
        answered = [next((it.state for it in outcomes.values()), state.as_broker()) for _, state, _, outcomes in parts]
        states = {log.offsets_partition: state for (log, *_), state in zip(parts, answered, strict=True)}
        places = Places(self.session, self.profile)
        for (log, *_), state in zip(parts, answered, strict=True):
            places.add(log, all_groups(state))
        at_homes = at_home(states, places.homes.count)
        places.tell_of_unanswered()
        for log, state, found, outcomes in parts:
            yield log, replace(at_homes[log.offsets_partition], problems=state.problems), found, outcomes

    def _outcomes(self, log: PartitionLog, state: CoordinatorState) -> dict[str, Outcome]:
        """Return the outcome for each kind of stop before; none if brokers load what was read."""
        found = outcomes_by_shutdown(
            log,
            (self.profile,),
            is_damaged=id(log) in self.session.account.damaged_logs,
            shutdown=self.asked.shutdown,
            until=self.session.inputs.until(log),
            release=self.session.inputs.scope.kafka,
            in_bulk=self.session.engine.replay_loads,
        )
        outcomes = {stop: by_profile[self.profile] for stop, by_profile in found.items()}
        if self.asked.as_broker:
            self.session.account.is_wrong |= any(outcome.at_start is not None for outcome in outcomes.values())
            self.session.account.is_wrong |= state.failure is not None and not state.failure.is_served
        return {} if all(outcome.holds(state) for outcome in outcomes.values()) else outcomes

    def say(self, part: Part) -> None:
        """Report what brokers make of a partition if it differs from what was read, or why they would not load it."""
        log, state, _, outcomes = part
        name = partition_name(log.offsets_partition)
        if outcomes:
            for words in in_words(outcomes, self.profile.name, name):
                self.session.account.say_once(words)
        elif state.failure is not None:
            self.session.account.say(state.failure.in_words(self.profile.name, name))
