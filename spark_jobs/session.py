"""Sessions of Spark: begun while the program imports what it needs, quiet, and fast to start.

Java reads and verifies some 15,000 classes at each start. The first program keeps them as an archive beside the kernels
(``-XX:ArchiveClassesAtExit``), and later ones begin with that.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkContext
from pyspark import __version__ as version
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from offsets_log.columnar.jit.keeping import cache_base
from offsets_log.errors import InputError

JVM_OPTIONS, QUICK = "spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Setting of options that users' own come after; and those of a Java that does not run for long."""
DAEMON = "spark.python.daemon.module"
"""Setting of the module that starts Python workers."""
HERE = re.compile(r"local(?:\[([^\],]+)\])?")
"""A master on this machine. Python workers import there what this process can."""
RETRIES = 4
"""A task is tried so often; on a local master Spark would end the run with the first worker that is lost."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": "300s",  # after Spark's 15 s a busy machine would end a stream
}
GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Environment variable that is set for programs run by spark-submit."""
QUIET_LOG = Path(__file__).with_name("log4j2.properties")
WAIT_S = 120
_OWN_ERROR = re.compile(r"offsets_log\.errors\.\w+: (.*)")
_JAVA_ERROR = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Error|Exception): (.+)$", re.MULTILINE)


def with_retries(master: str) -> str:
    """Return a master that tries a task again where a worker is lost."""
    here = HERE.fullmatch(master)
    return master if here is None else f"local[{here[1] or 1},{RETRIES}]"


def class_archive() -> Path:
    """Return where the classes of this Spark are kept as this Java has read them."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    stamp = Path(java).resolve().stat().st_mtime_ns if java else 0
    return cache_base() / "offsets-log" / f"spark-{version}-{stamp}.jsa"


def archive_options(made: Path | None) -> str:
    """Return Java's options to begin with the archive if it is there, else to make it at the end.

    Args:
        made: where it is written; None to make none.
    """
    archive = class_archive()
    if archive.exists():
        return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    return "" if made is None else f"-XX:ArchiveClassesAtExit={made} -Xlog:disable -Xlog:all=error:stderr"


class Opening:
    """A session that begins at once, while the caller goes on."""

    def __init__(self, master: str | None, *, is_quiet: bool = False) -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        self.was_active = SparkSession.getActiveSession()
        self._made: Path | None = None
        self._spark: Future[SparkSession] = Future()
        if self.was_active is not None:
            self._spark.set_result(self.was_active)
            return
        builder = SparkSession.builder.appName("offsets-log").config(map=dict(SETTINGS))
        builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty() and not is_quiet).lower())
        builder = self._of_master(builder, master)
        with ThreadPoolExecutor(1) as pool:
            self._spark = pool.submit(_silently if is_quiet else SparkSession.Builder.getOrCreate, builder)
            pool.shutdown(wait=False)

    def _of_master(self, builder: SparkSession.Builder, master: str | None) -> SparkSession.Builder:
        if master is not None and master.startswith("sc://"):  # of Spark Connect
            return builder.remote(master)
        here = master is not None and HERE.fullmatch(master) is not None
        if here:
            builder = builder.config(DAEMON, "spark_jobs.daemon")
        if GATEWAY not in os.environ:
            archive = class_archive()
            self._made = archive.with_name(f".{archive.name}.{secrets.token_hex(4)}")
            own = archive_options(self._made)
            options = [QUICK if here else "", own, f"-Dlog4j2.configurationFile={shlex.quote(str(QUIET_LOG))}"]
            builder = builder.config(JVM_OPTIONS, " ".join(filter(None, options)))
        return builder if master is None else builder.master(with_retries(master))

    def result(self) -> SparkSession:
        """Return the session. Raises InputError: Spark did not start."""
        try:
            return self._spark.result()
        except (PySparkException, OSError) as error:
            raise InputError(f"Spark did not start: {cause_of(error)}") from None

    def close(self) -> None:
        """Stop a session that began here, and keep its classes."""
        if self.was_active is not None:
            return
        with suppress(Exception):
            self._spark.result().stop()
        if self._made is not None:
            _end_java()
            with suppress(OSError):
                self._made.replace(class_archive())


def _silently(builder: SparkSession.Builder) -> SparkSession:
    """Open a session whose Java inherits no standard error."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        return builder.getOrCreate()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _end_java() -> None:
    """Have Java end, which writes the archive, and wait for it."""
    gateway, SparkContext._gateway = SparkContext._gateway, None
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    process.stdin.close()
    with suppress(Exception):
        process.wait(WAIT_S)


@contextmanager
def session(opening: Opening) -> Iterator[Callable[[], SparkSession]]:
    """Yield what waits for a session; stop it at the end if it began here.

    Raises:
        OffsetsLogError: what this package raised in tasks, or Spark, in one sentence.
    """
    try:
        yield opening.result
    except Exception as error:
        if not (isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")):
            raise
        raise own_error(error) or InputError(f"Spark: {cause_of(error)}") from None
    finally:
        opening.close()


def own_error(error: Exception) -> InputError | None:
    """Return what code of this package raised, without Spark's text around it; None if Spark itself has raised."""
    found = _OWN_ERROR.findall(str(error))
    return InputError(found[-1]) if found else None


def cause_of(error: Exception) -> str:
    """Return the last error that Spark tells of, or its first line."""
    return next(reversed(_JAVA_ERROR.findall(str(error))), str(error).strip().partition("\n")[0])
