"""What topics and groups are called in the target."""

from __future__ import annotations

import pytest

from offsets_log.errors import InputError
from offsets_log.translation.names import by_policy, by_rules


def test_policies() -> None:
    assert by_policy("identity")("orders") == "orders"
    assert by_policy("default:us")("orders") == "us.orders"


def test_the_first_rule_that_fits() -> None:
    rename = by_rules(["orders=o2", "s/^(a|b)-/x-/", "s|-|/|"], "--rename", by_policy("default:us"))
    assert [rename(name) for name in ("orders", "a-1-2", "c-1-2", "other")] == ["o2", "x-1-2", "c/1-2", "us.other"]


@pytest.mark.parametrize("rule", ["", "=", "a=", "=b", "orders", "s/a/b", "s/(/b/", r"s/a/\2/", "s/a/b/g"])
def test_what_is_no_rule(rule: str) -> None:
    with pytest.raises(InputError):
        by_rules([rule], "--rename")


@pytest.mark.parametrize("policy", ["", "default", "default:", "identity:us", "other"])
def test_what_is_no_policy(policy: str) -> None:
    with pytest.raises(InputError):
        by_policy(policy)
