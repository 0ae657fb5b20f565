"""Faults that cosmic-ray has no operator for: something left out, the other edge of a comparison, the other bound."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

Change = tuple[ast.AST, ast.AST]
"""A node, and what stands in its place."""

EDGES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
BOUNDS = {"min": "max", "max": "min", "all": "any", "any": "all"}


def changed(text: str, kind: str, dice: random.Random) -> str | None:
    """Return a module's text with one change of a kind; None if it has nothing of that kind.

    As many lines as before: behind the change each stands where it stood.
    """
    found = [change for node in _nodes(ast.parse(text)) for change in OMISSIONS[kind](node)]
    if not found:
        return None
    return _replaced(text, *dice.choice(found))


def _statements(node: ast.AST) -> Iterator[Change]:
    """What is done, raised, or done under a condition; not what binds a name, for the next line misses it."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Delete() | ast.If(orelse=[]):
            yield node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, ast.Pass()


def _conditions(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = node.values[:i] + node.values[i + 1 :]
            yield node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _choices(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.IfExp):
        yield node, node.body
        yield node, node.orelse


def _filters(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for i, part in enumerate(node.generators):
            for j in range(len(part.ifs)):
                other = deepcopy(node)
                del other.generators[i].ifs[j]
                yield node, other


def _keywords(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg != "strict":  # of zip: an assertion
                yield node, ast.Call(node.func, node.args, [other for other in node.keywords if other is not keyword])


def _ends(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper, step=step)):
            if lower is not None:
                yield node, ast.Subscript(node.value, ast.Slice(None, upper, step), node.ctx)
            if upper is not None:
                yield node, ast.Subscript(node.value, ast.Slice(lower, None, step), node.ctx)


def _edges(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            if other := EDGES.get(type(operator)):
                yield node, ast.Compare(node.left, [*node.ops[:i], other(), *node.ops[i + 1 :]], node.comparators)


def _bounds(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in BOUNDS:
            yield node.func, ast.Name(BOUNDS[name])


OMISSIONS: Mapping[str, Callable[[ast.AST], Iterator[Change]]] = {
    "LeaveOutStatement": _statements,
    "LeaveOutCondition": _conditions,
    "LeaveOutChoice": _choices,
    "LeaveOutFilter": _filters,
    "LeaveOutKeyword": _keywords,
    "LeaveOutEnd": _ends,
    "OtherEdge": _edges,
    "OtherBound": _bounds,
}


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in strings, whose places Python 3.11 does not tell."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _replaced(text: str, was: ast.AST, became: ast.AST) -> str:
    assert isinstance(was, ast.expr | ast.stmt)
    assert was.end_lineno is not None
    assert was.end_col_offset is not None
    lines = text.encode().split(b"\n")
    before = [*lines[: was.lineno - 1], lines[was.lineno - 1][: was.col_offset]]
    after = [lines[was.end_lineno - 1][was.end_col_offset :], *lines[was.end_lineno :]]
    code = ast.unparse(ast.fix_missing_locations(deepcopy(became)))
    more = "\n" * (was.end_lineno - was.lineno - code.count("\n"))
    inserted = f"({code}{more})" if isinstance(became, ast.expr) else code + more
    return b"\n".join(before).decode() + inserted + b"\n".join(after).decode()
