"""Our decoding of malformed UTF-8 against the Java that is installed, on bytes it has not seen."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from offsets_log.log_format.java_text import decode_java_utf8
from tests.waiting import PATIENCE_S

PROGRAM = """
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Scanner;
public class Decode {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (lines.hasNextLine()) {
            String text = new String(HexFormat.of().parseHex(lines.nextLine()), StandardCharsets.UTF_8);
            for (int i = 0; i < text.length(); i++) out.append(String.format("%04x", (int) text.charAt(i)));
            out.append('\\n');
        }
        System.out.print(out);
    }
}
"""
PIECES = (
    b"a",
    b"\xc3\xa9",
    b"\xe2\x82\xac",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
    b"\xed\xb0\x80",
    b"\xf4\x90\x80\x80",
)


def malformed(dice: random.Random) -> bytes:
    """Random bytes, or whole characters and surrogates cut and joined."""
    if dice.random() < 0.4:
        return bytes(dice.choice((0x41, 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0xF8, 0xFF)) for _ in range(6))
    joined = b"".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 5)))
    cut = dice.randrange(len(joined))
    return joined[:cut] + joined[cut + dice.randrange(3) :]


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no java on this machine to ask")
def test_strings_decode_as_the_installed_java_decodes_them(tmp_path: Path) -> None:
    dice = random.Random(20)
    cases = [malformed(dice) for _ in range(5_000)]
    program = tmp_path / "Decode.java"
    program.write_text(PROGRAM)
    lines = "".join(case.hex() + "\n" for case in cases)
    done = subprocess.run(
        ["java", str(program)], input=lines, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(cases)
    for case, answer in zip(cases, answers, strict=True):
        assert decode_java_utf8(case).encode("utf-16-be", "surrogatepass").hex() == answer, case.hex()
