"""Every rule of the coordinators is cited by a test, or it is said why none can."""

from tests.rule_ids import NOT_OFFLINE, RULES, uncited


def test_every_rule_is_cited_or_explained() -> None:
    assert uncited() == []


def test_explanations_are_of_rules_that_there_are() -> None:
    assert set(NOT_OFFLINE) <= set(RULES)
