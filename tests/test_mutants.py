"""The tables of `make mutants`: a module that moved, or a test that did, would be judged by nothing."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.equivalent import Equivalent, equivalents
from tools.mutants.subjects import ROOT, Subject, subjects
from tools.mutants.swap import put_in, swaps


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_a_subject_has_modules_and_tests(subject: Subject) -> None:
    assert subject.modules
    for name in subject.tests:
        path, _, test = name.partition("::")
        if path.startswith("tests/"):
            assert (ROOT / path).exists()
            assert not test or f"\ndef {test}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("fault", equivalents(), ids=lambda fault: f"{fault.module.stem}-{fault.was}")
def test_a_fault_that_nobody_can_see_is_of_a_line_that_is_still_there(fault: Equivalent) -> None:
    """The reason was given for that line: once it has changed, somebody must look again."""
    lines = [line.strip() for line in (ROOT / fault.module).read_text().splitlines()]
    assert fault.was in lines
    assert fault.became
    assert fault.was not in fault.became
    assert fault.why


def test_a_function_that_was_frozen_gets_its_new_code_too() -> None:
    """As all are that were there when tests had been collected."""
    text, path = "def one():\n    return 1\n", Path("/nowhere/one.py")
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    gc.freeze()
    try:
        put_in(swaps(text, text.replace("1", "2"), path))
    finally:
        gc.freeze()
    assert names["one"]() == 2
