"""Which rules are cited where, and whether a test holds one: read from the sources alone, nothing is run.

A test holds a rule if pytest collects it and runs it always, if it asserts something (itself, or a helper it calls),
and if it cites the rule: in its docstring, a comment, a string, or in the parameters that its decorators name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path

from offsets_log.rules import ID, rules

ROOT = Path(__file__).parent.parent
PACKAGES = ("offsets_log", "cli", "spark_jobs")
OTHERS = ("tests", "tools", "benchmarks", "docs")
REGISTER = "offsets_log/rules/"
ABOUT_RULES = (
    REGISTER,
    "cli/offsets_log_cli/explain.py",
    "tests/rule_register.py",
    "tests/test_rule_register.py",
    "tests/cli/test_explain.py",
)
"""Files in which an id is an example."""

HELPERS_DEEP = 3
"""So many calls away from the test an assertion may stand."""

CITED = re.compile(rf"(?<![\w-])(?:{ID.pattern})(?!\d)")
BARE = re.compile(r"(?<=``)[BCDEHKLMPRTWXY]\d+(?=``)")
"""``Y4``: an id of ``records:`` without it."""
RANGE = re.compile(
    r"(?P<records>records:|(?<=``))?(?<![\w-])(?P<part>[A-Z]+-?)(?P<first>\d+)`*\s*(?:–|…|to)\s*`*(?P=part)(?P<last>\d+)"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def cited_ids(text: str) -> set[str]:
    """All ids in a text; ``L-24``–``L-31`` and ``E-4 … E-9`` cite all between."""
    found = set(CITED.findall(text)) | {f"records:{bare}" for bare in BARE.findall(text)}
    for match in RANGE.finditer(text):
        part = match["part"]
        if not part.endswith("-"):
            if match["records"] is None:
                continue
            part = f"records:{part}"
        found |= {f"{part}{number}" for number in range(int(match["first"]), int(match["last"]) + 1)}
    return found


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """(path from the root, text) of every Python file, but for those about rules."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(ABOUT_RULES):
                yield name, path.read_text(encoding="utf-8")


def pages() -> Iterator[tuple[str, str]]:
    """The same of the documents."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def shown_ids() -> dict[str, set[str]]:
    """Id → modules that have it in a string which is no docstring: what rows and messages can show."""
    found: dict[str, set[str]] = {}
    for name, text in sources(*PACKAGES):
        tree = ast.parse(text if CITED.search(text) else "")
        documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
                for id_ in CITED.findall(node.value):
                    found.setdefault(id_, set()).add(name)
    return found


# -------------------------------------------------------------------------------------- tests that hold


def why_not_held(id_: str, test: str) -> str | None:
    """Why the test named in the register does not hold the rule; None if it does."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file() or not path.startswith("tests/") or not re.fullmatch(r"test_.*\.py", file.name):
        return f"{path} is no file of tests"
    return why_no_proof(id_, name, _text(file))


def why_no_proof(id_: str, name: str, text: str) -> str | None:
    """The same of a module's text."""
    tree = _parsed(text)
    function = _functions(tree).get(name)
    if function is None or not name.startswith("test_"):
        return f"there is no test {name}"
    if _is_skipped(tree.body) or any(map(_is_skip, function.decorator_list)) or _is_skipped(function.body):
        return f"{name} is skipped, or may fail"
    if not _asserts(function, tree, HELPERS_DEEP):
        return f"{name} asserts nothing"
    if id_ not in cited_ids(_text_of(function, tree, text)):
        return f"{name} does not cite it"
    return None


_text = cache(partial(Path.read_text, encoding="utf-8"))
_parsed = cache(ast.parse)


def _functions(tree: ast.Module) -> dict[str, Function]:
    """By name; of two with one name the last, which is the one that is left."""
    return {node.name: node for node in tree.body if isinstance(node, Function)}


def _is_skipped(body: Iterable[ast.stmt]) -> bool:
    """Whether a statement of a body skips or excuses it without a condition: ``pytest.skip()``, ``pytestmark = …``."""
    for statement in body:
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        is_mark = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"
        if value is not None and (is_mark or isinstance(statement, ast.Expr)) and _is_skip(value):
            return True
    return False


def _is_skip(node: ast.expr) -> bool:
    said = ast.unparse(node)
    if "skipif" in said:
        return isinstance(node, ast.Call) and bool(node.args) and isinstance(node.args[0], ast.Constant)
    return re.search(r"\b(skip|xfail)\b", said) is not None and "importorskip" not in said and "param" not in said


def _asserts(function: Function, tree: ast.Module, deep: int) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.withitem) and ast.unparse(node.context_expr).startswith("pytest.raises("):
            return True
        if deep and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            helper = _helper(node.func.id, tree)
            if helper is not None and helper[0] is not function and _asserts(*helper, deep - 1):
                return True
    return False


def _helper(name: str, tree: ast.Module) -> tuple[Function, ast.Module] | None:
    """A function of the same module, or one imported from another module of the tests."""
    if (function := _functions(tree).get(name)) is not None:
        return function, tree
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("tests."):
            path = ROOT / (node.module.replace(".", "/") + ".py")
            original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
            if original is not None and path.is_file():
                other = _parsed(_text(path))
                helper = _functions(other).get(original)
                return None if helper is None else (helper, other)
    return None


def _text_of(function: Function, tree: ast.Module, text: str) -> str:
    """The function with its comments and decorators, and what these name in the module: tables of parameters."""
    names = {
        node.id for decorator in function.decorator_list for node in ast.walk(decorator) if isinstance(node, ast.Name)
    }
    lines = text.splitlines()
    parts = [function, *function.decorator_list]
    first = min(part.lineno for part in parts)
    tables = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and names & _assigned(node)]
    spans = [(first, function.end_lineno), *((node.lineno, node.end_lineno) for node in tables)]
    return "\n".join("\n".join(lines[begin - 1 : end]) for begin, end in spans)


def _assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def failures() -> list[str]:
    """Every rule whose test does not hold it, with the reason."""
    return [
        f"{id_}: {why}"
        for id_, rule in rules().items()
        if rule.test is not None and (why := why_not_held(id_, rule.test)) is not None
    ]
