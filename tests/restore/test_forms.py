"""Every file byte for byte, in the forms that the tools' sources read (named in the docstrings of the modules)."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from offsets_log.restore.tools import TOOLS, accepted_by, left_out
from offsets_log.rows.tables import Row
from tests.restore.plans import row
from tests.waiting import PATIENCE_S

TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}

ROWS = [
    row("audit", "orders", 0, 14800, metadata="héllo", leader_epoch=3),
    row("audit", "payments.v2", 10, 0),
    row("payments", "orders", 0, 14921),
    row("payments", "orders", 1, (1 << 63) - 1, leader_epoch=0),
    row('say "hi", it\'s me', "orders", 2, 7),
]
AWKWARD = "say%20%22hi%22%2C%20it%27s%20me"


def written(name: str, rows: list[Row]) -> dict[str, str]:
    tool = TOOLS_BY_NAME[name]
    return {path: "".join(pieces) for path, pieces in tool.files(accepted_by(tool, rows))}


def test_kafka_consumer_groups_csv() -> None:
    """Both forms of CsvUtils: no header, LF, Jackson's quotes; sorted as the rows are."""
    files = written("kafka-consumer-groups", ROWS)
    script = files.pop("kafka-consumer-groups/run.sh")
    assert files == {
        "kafka-consumer-groups/all-groups.csv": (
            "audit,orders,0,14800\naudit,payments.v2,10,0\npayments,orders,0,14921\n"
            'payments,orders,1,9223372036854775807\n"say ""hi"", it\'s me",orders,2,7\n'
        ),
        "kafka-consumer-groups/audit.csv": "orders,0,14800\npayments.v2,10,0\n",
        "kafka-consumer-groups/payments.csv": "orders,0,14921\norders,1,9223372036854775807\n",
        f"kafka-consumer-groups/{AWKWARD}.csv": "orders,2,7\n",
    }
    assert script.endswith(
        'reset --from-file "$plan" "$@" \\\n    --group=audit \\\n    --group=payments \\\n'
        '    --group=\'say "hi", it\'"\'"\'s me\'\nexit "$status"\n'
    )


def test_a_group_called_all_groups_has_a_file_of_its_own() -> None:
    files = written("kafka-consumer-groups", [row("all-groups", offset=1), row("b", offset=2)])
    assert files["kafka-consumer-groups/all-groups.csv"] == "all-groups,orders,0,1\nb,orders,0,2\n"
    assert files["kafka-consumer-groups/all%2Dgroups.csv"] == "orders,0,1\n"


def test_rpk_lines() -> None:
    assert written("rpk", ROWS) == {
        "rpk/audit.txt": "orders 0 14800\npayments.v2 10 0\n",
        "rpk/payments.txt": "orders 0 14921\norders 1 9223372036854775807\n",
        f"rpk/{AWKWARD}.txt": "orders 2 7\n",
    }


def test_kaf_offset_maps() -> None:
    assert written("kaf", ROWS) == {
        "kaf/audit/orders.json": '{"0":14800}\n',
        "kaf/audit/payments.v2.json": '{"10":0}\n',
        "kaf/payments/orders.json": '{"0":14921,"1":9223372036854775807}\n',
        f"kaf/{AWKWARD}/orders.json": '{"2":7}\n',
    }


def test_kafkactl_commands() -> None:
    (script,) = written("kafkactl", ROWS).values()
    assert [line for line in script.splitlines() if line.startswith('"$tool"')] == [
        '"$tool" reset offset "$@" --topic=orders --partition=0 --offset=14800 -- audit || status=1',
        '"$tool" reset offset "$@" --topic=payments.v2 --partition=10 --offset=0 -- audit || status=1',
        '"$tool" reset offset "$@" --topic=orders --partition=0 --offset=14921 -- payments || status=1',
        '"$tool" reset offset "$@" --topic=orders --partition=1 --offset=9223372036854775807 -- payments || status=1',
        '"$tool" reset offset "$@" --topic=orders --partition=2 --offset=7 -- \'say "hi", it\'"\'"\'s me\' || status=1',
    ]


def test_client_libraries_map() -> None:
    assert written("client-libraries", ROWS) == {
        "client-libraries/offsets.json": (
            '{\n"audit":{"orders":{"0":{"offset":14800,"metadata":"héllo"}},'
            '"payments.v2":{"10":{"offset":0,"metadata":""}}},\n'
            '"payments":{"orders":{"0":{"offset":14921,"metadata":""},'
            '"1":{"offset":9223372036854775807,"metadata":""}}},\n'
            '"say \\"hi\\", it\'s me":{"orders":{"2":{"offset":7,"metadata":""}}}\n}\n'
        )
    }
    assert written("client-libraries", []) == {"client-libraries/offsets.json": "{}\n"}


def test_spark_starting_offsets() -> None:
    assert written("spark", ROWS) == {
        "spark/audit.json": '{"orders":{"0":14800},"payments.v2":{"10":0}}\n',
        "spark/payments.json": '{"orders":{"0":14921,"1":9223372036854775807}}\n',
        f"spark/{AWKWARD}.json": '{"orders":{"2":7}}\n',
    }


ALL = {tool.name for tool in TOOLS}


@pytest.mark.parametrize(
    ("refused", "by"),
    [
        # Tried with ConsumerGroupCommand of Kafka 4.3.0: "Invalid negative offset", and nothing is set.
        (row("g", offset=-1), ALL),
        (row("g", offset=-(1 << 63)), ALL),
        # ConsumerGroupCommand: INVALID_GROUP_ID. kaf and kafkactl join: "The provided group id was empty".
        # kadm, which rpk commits through, and Spark, which commits nothing, do not mind.
        (row(""), {"kafka-consumer-groups", "kaf", "kafkactl", "client-libraries"}),
        # ConsumerGroupCommand: "Missing closing quote for value".
        (row("new\nline"), {"kafka-consumer-groups"}),
        (row("nul\0"), ALL - {"spark"}),
        (row("g", metadata="nul\0"), set()),
        (row("g\ufffd", group_base64="Z/8="), ALL),
        (row("g", "t\ufffd", topic_base64="dP8="), ALL),
        # ConsumerGroupCommand: InvalidTopicException, after some groups were set.
        (row("g", "тема"), ALL),
        (row("g", "two words"), ALL),
        (row("g", ".."), ALL),
        (row("g", "x" * 250), ALL),
        (row("g", partition=-1), ALL),
        # ConsumerGroupCommand takes all of these, in the form with groups.
        (row("a,b;c"), set()),
        (row(" lead and trail "), set()),
        (row('say "hi"'), set()),
        (row("it's \\ back"), set()),
        (row("-dash"), set()),
        (row("#hash"), set()),
        (row("null"), set()),
        (row("cr\rin"), set()),
        (row("ls\u2028x"), set()),
        (row("\ufeffbom"), set()),
        (row("群组😀"), set()),
        (row("g", "x" * 249), set()),
    ],
)
def test_what_a_tool_would_refuse_or_change_is_left_out_with_the_reason(refused: Row, by: set[str]) -> None:
    out = list(left_out([refused]))
    assert {found["tool"] for found in out} == by
    assert all(found["reason"] for found in out)
    assert all({name: found[name] for name in refused} == refused for found in out), "compact's columns"
    for tool in TOOLS:
        assert len(accepted_by(tool, [refused])) == (tool.name not in by)


STUB = '#!/bin/sh\nfor word in "$@"; do printf "%s\\0" "$word"; done >> "$ARGUMENTS"\nprintf "\\nfine\\n"\n'
HOSTILE = [
    "$(touch pwned)", "`touch pwned`", "; touch pwned #", "a\\", "'", "''\"", "-e", "--execute", "*", "~", "$HOME",
    "!", "tab\tx", "cr\rx", "\x1b[31m", "größe", "a=b", "%s%n", " ", "\u2028", "𝒳" * 50,
]  # fmt: skip


def run_with_stub(folder: Path, script: str, variable: str, *arguments: str) -> list[str]:
    """The words that the tool was called with by a script, in calls one after the other."""
    stub, path, words = folder / "stub", folder / "run.sh", folder / "words"
    stub.write_text(STUB)
    stub.chmod(stat.S_IRWXU)
    path.write_bytes(script.encode())
    words.unlink(missing_ok=True)
    environment = {**os.environ, variable: str(stub), "ARGUMENTS": str(words)}
    subprocess.run(["sh", str(path), *arguments], env=environment, cwd=folder, check=True, timeout=PATIENCE_S)
    assert not (folder / "pwned").exists()
    return words.read_bytes().decode().split("\0")[:-1]


def test_scripts_hand_hostile_names_over_as_they_are(tmp_path: Path) -> None:
    rows = sorted((row(group) for group in HOSTILE), key=lambda one: one["group"])
    names = [one["group"] for one in rows]
    script = written("kafka-consumer-groups", rows)["kafka-consumer-groups/run.sh"]
    words = run_with_stub(tmp_path, script, "KAFKA_CONSUMER_GROUPS", "--bootstrap-server", "h:1", "--execute")
    assert words == [
        "--reset-offsets", "--from-file", f"{tmp_path}/all-groups.csv", "--bootstrap-server", "h:1", "--execute",
        *(f"--group={name}" for name in names),
    ]  # fmt: skip
    rows += [row("line\nbreak")]
    script = written("kafkactl", rows)["kafkactl/run.sh"]
    words = run_with_stub(tmp_path, script, "KAFKACTL", "--execute")
    calls = [words[i : i + 8] for i in range(0, len(words), 8)]
    fixed = ["reset", "offset", "--execute", "--topic=orders", "--partition=0", "--offset=5", "--"]
    assert calls == [[*fixed, name] for name in (*names, "line\nbreak")]


def test_many_groups_are_several_calls(tmp_path: Path) -> None:
    rows = [row(f"g{number:03}") for number in range(250)]
    script = written("kafka-consumer-groups", rows)["kafka-consumer-groups/run.sh"]
    words = run_with_stub(tmp_path, script, "KAFKA_CONSUMER_GROUPS")
    assert words.count("--reset-offsets") == 3
    assert [word for word in words if word.startswith("--group=")] == [f"--group=g{n:03}" for n in range(250)]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("\\nGROUP TOPIC PARTITION NEW-OFFSET\\ng orders 0 5\\n", 0),
        # What ConsumerGroupCommand.printError says, with exit status 0.
        ("\\nError: Executing consumer group command failed due to …\\n", 1),
        ("\\nError: Assignments can only be reset if the group 'g' is inactive, but …\\n", 1),
    ],
)
def test_the_script_tells_a_failure_that_the_tool_does_not(tmp_path: Path, said: str, status: int) -> None:
    stub, path = tmp_path / "stub", tmp_path / "run.sh"
    stub.write_text(f'#!/bin/sh\nprintf "{said}"\n')
    stub.chmod(stat.S_IRWXU)
    path.write_text(written("kafka-consumer-groups", [row("g")])["kafka-consumer-groups/run.sh"])
    environment = {**os.environ, "KAFKA_CONSUMER_GROUPS": str(stub)}
    ran = subprocess.run(["sh", str(path)], env=environment, capture_output=True, check=False, timeout=PATIENCE_S)
    assert ran.returncode == status
