"""The table of `make mutants`: a module that moved, or a test that did, would be judged by nothing."""

from __future__ import annotations

import pytest

from tools.mutants.subjects import ROOT, Subject, subjects


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_a_subject_has_modules_and_tests(subject: Subject) -> None:
    assert subject.modules
    assert all((ROOT / name.partition("::")[0]).exists() for name in subject.tests if name.startswith("tests/"))
