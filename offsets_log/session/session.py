"""A run over opened logs: its inputs, the account of what is wrong with them, and the engine that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from offsets_log.disk.folders import refuse_inside_inputs
from offsets_log.disk.reader import Choosing, open_logs
from offsets_log.disk.replicas import choose_replica
from offsets_log.disk.writer import atomic_directory
from offsets_log.session.account import Account
from offsets_log.session.engine import Engine
from offsets_log.session.inputs import Inputs
from offsets_log.session.listener import Listener
from offsets_log.session.scope import Scope


@dataclass(frozen=True)
class Session:
    """The inputs, engine and account of a run; use `opened_session`."""

    inputs: Inputs
    account: Account
    engine: Engine

    @contextmanager
    def new_directory(self, to: str) -> Iterator[Path]:
        """Make a directory outside of the inputs, as `atomic_directory`."""
        refuse_inside_inputs(to, self.inputs.scope.paths, self.inputs.files)
        with atomic_directory(to) as directory:
            yield directory

    def bounded(self, until_offset: tuple[tuple[int | None, int], ...] = (), until_time: int | None = None) -> Session:
        """Return a session over the same logs with other bounds, whose reports and counts are not this run's."""
        inputs = self.inputs.bounded(until_offset, until_time)
        account = self.account.aside(inputs)
        return Session(inputs, account, Engine(inputs, account))


@contextmanager
def opened_session(
    scope: Scope,
    listener: Listener,
    *,
    needs: Set[str] = frozenset(),
    columns: Set[str] | None = None,
    internal_topic: str | None = None,
    choosing: Choosing = choose_replica,
) -> Iterator[Session]:
    """Open the inputs, and tell the listener what is remarkable about them before anything is read.

    Args:
        needs: columns without which the answer would be guessed; a dump that does not tell them is refused.
        columns: those of the answer; notes on what a dump does not tell name no others. None to name all.
        internal_topic: a topic of `state_topics` to read instead of ``__consumer_offsets``.
        choosing: makes one log of several copies of a partition.

    Raises:
        OffsetsLogError: nothing can be read there, or it cannot answer.
    """
    with ExitStack() as stack:
        yield begun_session(
            opened_inputs(scope, listener, stack, internal_topic, columns, choosing), listener, stack, needs
        )


def begun_session(
    inputs: Inputs,
    listener: Listener,
    stack: ExitStack,
    needs: Set[str] = frozenset(),
    accounting: Callable[[Inputs, ExitStack, Listener], Account] = Account,
) -> Session:
    """Return a session over opened inputs, as `opened_session`; what it opens is closed with the stack.

    Args:
        accounting: makes its account.
    """
    account = accounting(inputs, stack, listener)
    inputs.check(needs)
    for words in inputs.notes:
        account.say(words)
    account.is_wrong = inputs.lacks_some_in_time
    for found in account.below_start:
        account.say(found.in_words())
    for damage in inputs.damages:
        account.on_damage(damage)
    for absent in inputs.absent:
        account.tell(absent)
    return Session(inputs, account, Engine(inputs, account))


def opened_inputs(
    scope: Scope,
    listener: Listener,
    stack: ExitStack,
    internal_topic: str | None = None,
    columns: Set[str] | None = None,
    choosing: Choosing = choose_replica,
) -> Inputs:
    """Return the opened inputs, which are closed with the stack; arguments as of `opened_session`."""
    if internal_topic is not None:
        from offsets_log.disk.state_topics import open_topic

        opened = open_topic(scope.paths, internal_topic, scope.offsets_partition)
    else:
        opened = open_logs(
            scope.paths,
            as_partition=scope.as_partition,
            partitions=scope.offsets_partition,
            input_format=scope.input_format,
            columns=columns,
            comparing=partial(listener.progress, done="compared"),
            choosing=choosing,
        )
    return Inputs(scope, stack.enter_context(opened))
