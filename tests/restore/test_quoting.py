"""Names of any letters, quoted for files, shells and CSV, come back as they were."""

from __future__ import annotations

import csv
import shlex
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from offsets_log.restore import kafka_consumer_groups
from offsets_log.restore.names import MAX_FILE_NAME, file_name, is_topic_name, shell_word, shown
from offsets_log.restore.tools import TOOLS, accepted_by
from tests.restore.plans import row

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text("\"'\\$`,; \t\r\n-.%~", max_size=12)
LONG = st.text(min_size=250, max_size=400)


@given(NAMES)
def test_a_file_name_is_one_harmless_part_of_a_path_and_gives_the_name_back(name: str) -> None:
    encoded = file_name(name)
    assert "/" not in encoded
    assert encoded not in (".", "..")
    assert encoded.isascii()
    assert encoded.isprintable()
    assert len(encoded) <= MAX_FILE_NAME
    if len(encoded) < MAX_FILE_NAME:
        assert unquote(encoded) == name


@given(st.lists(NAMES | LONG, unique=True, max_size=8))
def test_two_names_never_have_one_file(names: list[str]) -> None:
    assert len({file_name(name) for name in names}) == len(names)


@given(NAMES)
def test_a_shell_word_is_one_word(name: str) -> None:
    assert shlex.split(shell_word(name)) == [name]


@given(NAMES)
def test_a_shown_name_cannot_disturb_a_terminal(name: str) -> None:
    assert shown(name).isprintable()


@given(st.lists(NAMES, unique=True, min_size=1, max_size=5))
def test_every_line_of_the_csv_has_the_group_as_it_is(names: list[str]) -> None:
    """As the tool reads it: split at line breaks first, each line parsed for itself."""
    tool = next(tool for tool in TOOLS if tool.name == kafka_consumer_groups.NAME)
    rows = accepted_by(tool, [row(name) for name in sorted(names)])
    text = "".join(dict(tool.files(rows))["kafka-consumer-groups/all-groups.csv"])
    lines = text.split("\n")[:-1]
    assert [next(csv.reader([line], strict=True)) for line in lines] == [[r["group"], "orders", "0", "5"] for r in rows]


@given(st.text(max_size=5))
def test_a_topic_name_needs_no_quotes(name: str) -> None:
    if is_topic_name(name):
        assert shell_word(name) == name == file_name(name)
