"""A real browser without a window: Chromium, as Debian has it, told what to do through a pipe."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ERRORS = re.compile(r"^.*CONSOLE.*$", re.MULTILINE)
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions",
)  # fmt: skip
READY = "document.body && document.body.dataset.isReady === 'true'"

PLACE = """(async () => {
  const found = [...document.querySelectorAll(%s)].find((one) => one.textContent.includes(%s));
  const middle = () => {
    found.scrollIntoView({block: "center", behavior: "instant"});
    const box = found.getBoundingClientRect();
    return [box.x + Math.min(box.width, innerWidth) / 2, box.y + box.height / 2];
  };
  for (let before = null, same = 0, now; same < 5; before = now) {
    await new Promise(requestAnimationFrame);
    now = middle();
    same = String(now) === String(before) ? same + 1 : 0;
  }
  return middle();
})()"""
"""Script that tells where the middle of an element is, after a few frames in which it stays there."""


def program() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found


def opened(page: Path, fragment: str = "", *flags: str) -> str:
    """The page's elements after its script has run, as HTML. What the browser complains of on its console fails."""
    profile = page.parent / f"{page.name}.profile"
    done = subprocess.run(
        [
            program(), *FLAGS, "--enable-logging=stderr", f"--user-data-dir={profile}", "--virtual-time-budget=10000",
            *flags, "--dump-dom", f"file://{page}{fragment}",
        ],
        capture_output=True,
        check=False,
        timeout=300,
    )  # fmt: skip
    shutil.rmtree(profile, ignore_errors=True)
    complaints = ERRORS.findall(done.stderr.decode(errors="replace"))
    assert not complaints, complaints
    return done.stdout.decode()


class Tab:
    """A page on which somebody clicks and types, a context manager.

    Args:
        width, height: of the window, in pixels.
        is_ready: what is true in JavaScript once the page can be used.
    """

    def __init__(self, page: Path, *, width: int = 1200, height: int = 900, is_ready: str = READY) -> None:
        self.folder = page.parent / f"{page.name}.profile"
        reads, self._writes = os.pipe()
        self._reads, writes = os.pipe()
        line = shlex.join([program(), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self.folder}"])
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {line} 3<&{reads} 4>&{writes}"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._number, self._rest, self._session = 0, b"", {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._ask("Page.navigate", url=f"file://{page}")
        self.run(f"new Promise(done => {{ const look = () => {is_ready} ? done() : setTimeout(look, 20); look(); }})")

    def _ask(self, method: str, **given: Any) -> Any:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": given} | self._session
        os.write(self._writes, json.dumps(asked).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                piece = os.read(self._reads, 1 << 16)
                assert piece, "the browser has ended"
                self._rest += piece
            answer, _, self._rest = self._rest.partition(b"\0")
            told = json.loads(answer)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def run(self, script: str) -> Any:
        """What a script gives, awaited."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that fit."""
        texts: list[str] = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")
        return texts

    def click(self, selector: str, text: str = "") -> None:
        """Click where the first element is that fits and holds a text, once the page has stopped scrolling."""
        x, y = self.run(PLACE % (json.dumps(selector), json.dumps(text)))
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        """Click an input, and type."""
        self.click(selector)
        self._ask("Input.insertText", text=text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=text[-1])

    def downloads_to(self, folder: Path) -> None:
        """Have files that the page gives written there."""
        self._ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._reads)
        os.close(self._writes)
        shutil.rmtree(self.folder, ignore_errors=True)
