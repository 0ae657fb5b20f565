"""Signals that come more than once, or before there is anything to end whole."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from offsets_log.pulling import run
from offsets_log_cli import signals
from tests.builders import LogBuilder
from tests.pulling.brokers import Brokers
from tests.pulling.copies import offsets_log, pull
from tests.pulling.test_interrupted import log_of


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_twice_at_once_is_obeyed_once(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the result is told; later on, a signal ends the run as it would without all this."""
    handler = signal.signal(number, signal.default_int_handler)
    try:
        with signals.stopping() as stop:
            signal.raise_signal(number)
            signal.raise_signal(number)
            assert stop.is_set()
        signal.raise_signal(number)
        monkeypatch.setattr(signals, "AGAIN_S", 0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, handler)


def test_an_interrupt_is_obeyed_while_modules_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (signals.MAKING, signals.ASKING):
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signals.end_at_interrupts()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_where_no_signal_came_the_handlers_are_those_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with signals.stopping():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_who_is_interrupted_does_not_blame_the_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that this end closes are no fault of theirs, and nothing is tried again."""

    def interrupted(*_: object, **__: object) -> None:
        time.sleep(0.3)
        raise KeyboardInterrupt

    monkeypatch.setattr(run.Pulling, "_wait", interrupted)
    with Brokers(offsets_log(p0=log_of(LogBuilder().commit(1).batches))).running() as brokers:
        result = pull(brokers, tmp_path, "--follow")
    assert result.exit_code == 130
    assert "tried again" not in result.stderr
    assert "interrupted: what was asked for is not done" in result.stderr
