"""Secrets of a client's properties: in no output, log, journal, plan or traceback, whether a run fails or succeeds."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main
from tests.restore import live
from tests.restore.plans import row
from tests.restore.secure_broker import PASSWORD, USER_PASSWORD, make_certificates, secure
from tests.restore.test_secure import escaped, login, stores

SECRET = "hunter2.Of-The.Client"
JAAS = f'x required username="me" password="{SECRET}" clientId="me" clientSecret="{SECRET}";'
SASL = "security.protocol=SASL_PLAINTEXT\ndefault.api.timeout.ms=1000\n"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"


def run(folder: Path, config: str, server: str, *, plan: Path | None = None) -> str:
    """Everything that `restore`, `pull` and `rescue` print and write."""
    folder.mkdir()
    file = folder / "client.properties"
    file.write_text(config)
    plan = plan or live.write_plan(folder / "plans" / "plan.json", [row("g")])
    (folder / "data" / "__consumer_offsets-0").mkdir(parents=True)
    (folder / "data" / "__consumer_offsets-0" / f"{0:020}.log").write_bytes(b"")
    where = ("--bootstrap-server", server, "--command-config", str(file))
    said = []
    for words in (
        ("restore", str(plan), *where, "--execute", "--journal", str(folder / "journal.jsonl")),
        ("restore", "--undo", str(folder / "journal.jsonl"), *where, "--execute"),
        ("rescue", str(folder / "data"), *where, "--to", str(folder / "rescued")),
        ("pull", *where, "--to", str(folder / "pulled")),
    ):
        if "--undo" in words and not (folder / "journal.jsonl").exists():
            continue
        ran = CliRunner().invoke(main, words)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exc_info
        said.append(ran.output)
    file.unlink()
    return "".join(said) + "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def assert_kept(text: str, *secrets: str) -> None:
    for secret in (SECRET, *secrets):
        for form in (secret, escaped(secret), json.dumps(secret)[1:-1]):
            assert form not in text


@contextmanager
def rude_server(answer: bytes) -> Iterator[str]:
    """A server that says the same to everybody, and hangs up."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


CONFIGS: Mapping[str, str] = {
    "nobody there": f"{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}\n",
    "a value in two lines": f'{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=x required password="\n{SECRET}";\n',
    "no mechanism": f"{SASL}sasl.jaas.config={JAAS}\n",
    "a mechanism that needs a library": f"{SASL}sasl.mechanism=GSSAPI\nsasl.jaas.config={JAAS}\n",
    "no user": f"{SASL}sasl.mechanism=SCRAM-SHA-256\nsasl.password={SECRET}\n",
    "no issuer": f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN_URL}=http://me:{SECRET}@127.0.0.1:1/?key={SECRET}\n"
    f"sasl.jaas.config={JAAS}\n",
    "no address": f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN_URL}=nowhere {SECRET}\nsasl.jaas.config={JAAS}\n",
    "no token": f"{SASL}sasl.mechanism=OAUTHBEARER\n{TOKEN_URL}=file:///dev/null\n",
    "keys that are none": "security.protocol=SSL\nssl.keystore.type=PEM\n"
    f"ssl.keystore.key={SECRET}\nssl.keystore.certificate.chain={SECRET}\nssl.key.password={SECRET}\n",
    "no store": f"security.protocol=SSL\nssl.keystore.location=/none\nssl.keystore.password={SECRET}\n",
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_failing_runs(kind: str, tmp_path: Path) -> None:
    with rude_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        assert_kept(run(tmp_path / "run", CONFIGS[kind], server))


@pytest.mark.kafka
def test_runs_against_a_broker(tmp_path: Path) -> None:
    """With the right login and a wrong one, tokens, and passwords of stores."""
    real = live.make(tmp_path / "broker")
    keys = tmp_path / "keys"
    make_certificates(keys)
    ports = secure(real, keys)
    plan = tmp_path / "plan"
    with real.running():
        live.fill(real)
        live.make_coordinators(real, ["g"])
        (tmp_path / "token").write_text(f"{SECRET}.x.")
        oauth = f"{SASL}sasl.mechanism=OAUTHBEARER\n"
        trust = f"ssl.truststore.location={keys}/ca.pem\n"
        cases = {
            "both": ("BOTH", login(USER_PASSWORD, "SASL_SSL") + trust),
            "wrong": ("LOGIN", login(SECRET, "SASL_PLAINTEXT")),
            "token": ("LOGIN", f"{oauth}{TOKEN_URL}=file://{tmp_path}/token\n"),
            "wrong store": ("TLS", stores(keys)["PKCS12"].replace(PASSWORD, SECRET)),
        }
        for name, (listener, config) in cases.items():
            file = live.write_plan(plan / f"{name}.json", [row("g", metadata=name)])
            text = run(tmp_path / f"run {name}", config, f"127.0.0.1:{ports[listener]}", plan=file)
            assert_kept(text, USER_PASSWORD, PASSWORD)
            assert ('"applied":true' in text) == (name == "both"), text
