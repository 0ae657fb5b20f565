"""Documentation cannot drift: every session is run and its output compared, every link leads on."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from offsets_log_cli.main import COMMANDS, main
from tests.cli.runs import words_of
from tests.report.browser import Tab
from tests.waiting import wait_for
from tools import column_reference, format_reference, release_reference
from tools.sessions import ACCEPTED, ROOT, blocks, name_of, pages, run, see_samples, sessions

README = ROOT / "README.md"
SESSIONS = {
    "README.md": "info compact check explain history rescue ls cat grep",
    "docs/index.md": "info compact check explain rescue ls head",
    "docs/inputs-and-outputs.md": "decode decode decode decode echo compact head compact decode ls report ls rebuild "
    "rebuild expire assign vote rebalances where where",
    "docs/runbooks/another-cluster.md": "rescue python3 printf translate head ls head",
    "docs/runbooks/coordinator-does-not-load.md": "check check explain decode cp printf check compact compact compact "
    "repair check repair ls sed compact repair compact cp printf repair cmp clean check",
    "docs/runbooks/dead-broker.md": "info check groups compact rescue ls head",
    "docs/runbooks/hanging-transaction.md": "rebuild compact transactions history",
    "docs/runbooks/large-topic.md": "top top check clean clean ls clean compact compact check groups",
    "docs/runbooks/own-tools.md": "echo",
    "docs/runbooks/no-disk-at-hand.md": "info groups compact history head",
    "docs/runbooks/while-it-runs.md": "watch watch",
    "docs/runbooks/who-moved-my-offsets.md": "diff history history history rebalances rescue cat",
    "docs/runbooks/whole-data-directory.md": "info groups compact check where",
}
"""What each page shows, by the names of its commands: none goes unseen."""
LONGEST_README = 200


def subject(command: str) -> str:
    """Of ``offsets-log info …`` info, of another command its first word."""
    words = command.split()
    return words[1] if words[0] == "offsets-log" else words[0]


def test_every_session_is_known_by_name() -> None:
    found = {name_of(page): " ".join(subject(command) for command, _ in sessions(page)) for page in pages()}
    assert {name: commands for name, commands in found.items() if commands} == SESSIONS


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is more than the words of one command, or stands behind its pipe, a shell runs."""
    see_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, expected in sessions(ROOT / name):
        first, _, rest = command.partition(" | ")
        if (words := words_of(first)) is None:
            printed = run(command, tmp_path)
        else:
            done = CliRunner().invoke(main, words, catch_exceptions=False)
            assert rest or done.exit_code in ACCEPTED, command
            printed = run(rest, tmp_path, given=done.stdout) if rest else done.stdout
        assert printed == expected, command


def test_the_library_examples_run(tmp_path: Path) -> None:
    see_samples(tmp_path)
    printed = []
    for example in blocks(ROOT / "docs" / "library.md", "python"):
        (tmp_path / "example.py").write_text(example)
        printed.append(run("python example.py", tmp_path))
    asked, below = printed
    assert asked.startswith("29 offsets; ")
    assert below.count("groups,") == 4


def test_commands_that_need_a_cluster_have_the_options_that_they_are_shown_with() -> None:
    shown = [line for page in pages() for block in blocks(page, "sh") for line in block.splitlines()]
    ours = [line.split() for line in shown if line.startswith("offsets-log ")]
    assert len(ours) >= 4
    for _, name, *words in ours:
        command = main.get_command(click.Context(main), name)
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\s+offsets-log {name}", result.output)
    assert f"offsets-log {name}" in README.read_text()


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= LONGEST_README


def test_layouts_are_those_of_the_tables() -> None:
    assert format_reference.PAGE.read_text(encoding="utf-8") == format_reference.reference(), (
        "make docs writes it again"
    )


def test_releases_are_those_of_the_table() -> None:
    assert release_reference.PAGE.read_text(encoding="utf-8") == release_reference.reference(), (
        "make docs writes it again"
    )


def test_columns_are_those_of_the_rows() -> None:
    assert column_reference.PAGE.read_text(encoding="utf-8") == column_reference.reference(), (
        "make docs writes it again"
    )


def test_links_of_the_readme_lead_somewhere() -> None:
    """Pages, and headings on them; links within ``docs/`` are checked when the site is built."""
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", README.read_text())
    assert any(heading for _, heading in links)
    assert [page for page, _ in links if not (ROOT / page).exists()] == []
    assert [(page, heading) for page, heading in links if heading and heading not in headings(ROOT / page)] == []


def test_rows_of_tables_are_lines_and_nothing_follows_them() -> None:
    """Text in the line of a row, or in the next, would be shown in the table or not at all."""
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        lines = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE).split("\n")
        for row, after in pairwise(lines):
            if row.startswith("|"):
                assert row.rstrip().endswith("|"), f"{page}: {row}"
                assert not after or after.startswith("|"), f"{page}: {after}"


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", line).strip().lower()) for line in lines}


def test_contributing_names_what_is_there() -> None:
    """Every path and every name of code that it gives leads to one in the tree."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    spans = set(re.findall(r"`([^`\n]+)`", text))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    there = {f"/{path}" for file in tracked for path in (file, *(f"{above}/" for above in Path(file).parents))}
    paths = {
        span for span in spans if re.fullmatch(r"[\w*./-]+", span) and re.search(r"/|\.(py|js|toml|md|yml)$", span)
    }
    assert len(paths) > 40
    assert {
        path for path in paths if not fnmatch.filter(there, f"*/{path}") + fnmatch.filter(there, f"*/{path}/")
    } == set()
    sources = "".join(
        (ROOT / file).read_text() for file in tracked if file.endswith((".py", ".js")) or file == "Makefile"
    )
    modules = {Path(file).stem for file in tracked}
    names = {span for span in spans if re.fullmatch(r"[A-Za-z]\w*", span)} - modules
    assert {name for name in names if not re.search(rf"\b{name}\b", sources)} == set()


def test_the_site_is_built_with_every_page_and_link(tmp_path: Path) -> None:
    """Without ``--quiet``, which drops the warnings that ``--strict`` counts."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {page.relative_to(tmp_path).with_suffix(".md").as_posix() for page in tmp_path.rglob("*.html")}
    assert made >= {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    for page in tmp_path.rglob("*.html"):
        assert not re.search(r"<(script|link|img)[^>]* (src|href)=\"?https?:", page.read_text(encoding="utf-8")), page
    with Tab(tmp_path / "index.html", is_ready="document.querySelector('iframe[hidden]') !== null") as tab:
        tab.type("input.md-search__input", "rewound")
        found = wait_for("what the search finds in a page that is a file", lambda: tab.texts(".md-search-result h1"))
    assert "Who moved my offsets?" in found
