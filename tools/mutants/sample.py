"""Mutants of modules: what they are, and a sample of them drawn by a seed.

The operators are cosmic-ray's and those of `omissions`.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tools.mutants.omissions import OMISSIONS, changed

LEFT_OUT = ("RemoveDecorator", "NoOp")
"""Kinds that say nothing: kernels are plain functions without their decorators, and nothing is as before."""
OFTEN = {
    "ReplaceComparisonOperator": 4,
    "NumberReplacer": 3,
    "AddNot": 2,
    "ReplaceBinaryOperator": 2,
    "LeaveOutStatement": 4,
    "LeaveOutCondition": 3,
    "OtherEdge": 3,
}
"""Kinds that are drawn more often than once, for there is more of them."""
MOST_DRAWS = 50
"""For one mutant: most changes of types in annotations, which are never evaluated, are drawn again."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one small change.

    Attributes:
        module: its path.
        kind: name of the operator.
        line: where it differs, from 1.
        was, became: that line.
        code: the whole module as it became.
    """

    module: Path
    kind: str
    line: int
    was: str
    became: str
    code: str


def kinds() -> dict[str, list[str]]:
    """What is done → operators that do it: of ``<`` to ``>=`` and the like one kind."""
    found: dict[str, list[str]] = defaultdict(list, {kind: [kind] for kind in OMISSIONS})
    for name in operator_names():
        kind = name.rpartition("/")[2].partition("_")[0]
        if kind not in LEFT_OUT and not get_operator(name).arguments():
            found[kind].append(name)
    return dict(found)


def draw(root: Path, modules: Sequence[Path], count: int, dice: random.Random) -> list[Mutant]:
    """So many different mutants: of a module as often as it is long, of a kind as `OFTEN` says."""
    texts = {module: (root / module).read_text() for module in modules}
    weights = [text.count("\n") for text in texts.values()]
    by_kind = kinds()
    found: dict[tuple[Path, str], Mutant] = {}
    for _ in range(count * MOST_DRAWS):
        if len(found) == count:
            break
        (module,) = dice.choices(list(texts), weights)
        mutant = _one(module, texts[module], by_kind, dice)
        if mutant is not None:
            found[module, mutant.code] = mutant
    return list(found.values())


def _one(module: Path, text: str, by_kind: Mapping[str, Sequence[str]], dice: random.Random) -> Mutant | None:
    """A mutant of a module; None where the drawn kind finds nothing to change, or nothing that is evaluated."""
    (kind,) = dice.choices(list(by_kind), [OFTEN.get(kind, 1) for kind in by_kind])
    name = dice.choice(by_kind[kind])
    code = changed(text, name, dice) if name in OMISSIONS else _mutated(text, name, dice)
    if code is None or _evaluated(code) in (None, _evaluated(text)):
        return None
    line, was, became = next(_differing(text, code))
    return Mutant(module, name.rpartition("/")[2], line, was.strip(), became.strip(), code)


def _mutated(text: str, name: str, dice: random.Random) -> str | None:
    operator = get_operator(name)()
    places = sum(1 for node in ast_nodes(get_ast(text)) for _ in operator.mutation_positions(node))
    return mutate_code(text, operator, dice.randrange(places)) if places else None


def _differing(text: str, code: str) -> Iterator[tuple[int, str, str]]:
    lines = zip(text.split("\n"), code.split("\n"), strict=False)
    return ((number, was, became) for number, (was, became) in enumerate(lines, 1) if was != became)


class _Evaluated(ast.NodeTransformer):
    """Leaves out what no test could see.

    Annotations, which are never evaluated; whether a dataclass is frozen and has slots; that `zip` insists on equal
    lengths; identity in place of equality, which is the same of small numbers and of None.
    """

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg == "strict":
            node.value = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Is(self, _: ast.Is) -> ast.AST:
        return ast.Eq()

    def visit_IsNot(self, _: ast.IsNot) -> ast.AST:
        return ast.NotEq()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _evaluated(code: str) -> str | None:
    """What of a module is evaluated; None of one that does not parse, which no test needs to notice."""
    try:
        return ast.dump(_Evaluated().visit(ast.parse(code)))
    except SyntaxError:
        return None
