"""A broker behind TLS and SASL: every kind of store opens it, and every cause of failure has words of its own."""

from __future__ import annotations

import base64
import gc
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from offsets_log.cluster.admin import Cluster
from offsets_log.cluster.oauth import URL, Tokens
from offsets_log.errors import OffsetsLogError
from offsets_log.java_properties import parse_properties
from tests.coordinator.broker import free_port
from tests.restore import live
from tests.restore.secure_broker import PASSWORD, USER, USER_PASSWORD, make_certificates, secure

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # kafka-python's, where a TLS handshake fails
]

SECONDS = 45


class Secure(NamedTuple):
    """Ports by listener, and the folder of keys and certificates."""

    ports: dict[str, int]
    keys: Path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secure")
    real = live.make(folder / "broker")
    make_certificates(folder / "keys")
    ports = secure(real, folder / "keys")
    with real.running():
        yield Secure({**ports, "PLAINTEXT": real.port}, folder / "keys")


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def connect(server: str, properties: str) -> str:
    """What goes wrong, in seconds; or the cluster's id."""
    began = time.monotonic()
    try:
        with closing(Cluster(server, parse_properties(properties, "f"))) as cluster:
            said = cluster.cluster_id() or ""
    except OffsetsLogError as error:
        said = str(error)
    assert time.monotonic() - began < SECONDS
    assert "\n" not in said
    gc.collect()
    return said


def stores(keys: Path) -> Mapping[str, str]:
    """Each way to say the same key and authority."""
    tls = "security.protocol=SSL\n"
    password = f"ssl.keystore.password={PASSWORD}\nssl.truststore.password={PASSWORD}\n"
    key, chain, ca = (escaped((keys / name).read_text()) for name in ("client.key", "client.crt", "ca.pem"))
    trust = f"{tls}ssl.truststore.type=PEM\nssl.truststore.location={keys}/ca.pem\nssl.keystore.type=PEM\n"
    return {
        "PEM": f"{trust}ssl.keystore.location={keys}/client.pem\n",
        "PEM with a password": f"{trust}ssl.keystore.location={keys}/locked.pem\nssl.key.password={PASSWORD}\n",
        "inline PEM": f"{tls}ssl.keystore.key={key}\nssl.keystore.certificate.chain={chain}\n"
        f"ssl.truststore.certificates={ca}\nssl.keystore.type=PEM\nssl.truststore.type=PEM\n",
        "librdkafka's": f"{tls}ssl.key.location={keys}/client.key\nssl.certificate.location={keys}/client.crt\n"
        f"ssl.ca.location={keys}/ca.pem\n",
        **{
            kind: f"{tls}{password}ssl.keystore.type={kind}\nssl.truststore.type={kind}\n"
            f"ssl.keystore.location={keys}/key.{kind}\nssl.truststore.location={keys}/trust.{kind}\n"
            for kind in ("JKS", "PKCS12")
        },
    }


@pytest.mark.parametrize("kind", ["PEM", "PEM with a password", "inline PEM", "librdkafka's", "JKS", "PKCS12"])
def test_every_store_opens_tls_with_a_clients_certificate(broker: Secure, kind: str) -> None:
    properties = stores(broker.keys)[kind]
    found = connect(f"127.0.0.1:{broker.ports['TLS']}", properties)
    assert found == connect(f"127.0.0.1:{broker.ports['PLAINTEXT']}", "")
    if PASSWORD in properties:
        wrong = connect(f"127.0.0.1:{broker.ports['TLS']}", properties.replace(PASSWORD, "wrong"))
        assert "password" in wrong
        assert "openssl" in wrong


def login(password: str, protocol: str, mechanism: str = "PLAIN") -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    jaas = f'x.PlainLoginModule required username="{USER}" password="{quoted}";'
    return f"security.protocol={protocol}\nsasl.mechanism={mechanism}\nsasl.jaas.config={escaped(jaas)}\n"


@pytest.mark.parametrize("listener", ["LOGIN", "BOTH"])
def test_logins(broker: Secure, listener: str) -> None:
    protocol = {"LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}[listener]
    server, trust = f"127.0.0.1:{broker.ports[listener]}", f"ssl.truststore.location={broker.keys}/ca.pem\n"
    assert connect(server, login(USER_PASSWORD, protocol) + trust) == connect(
        f"127.0.0.1:{broker.ports['PLAINTEXT']}", ""
    )
    assert f"the broker refuses the login of '{USER}' by PLAIN: wrong user name or password" in connect(
        server, login("wrong", protocol) + trust
    )


class Issuer(BaseHTTPRequestHandler):
    """An identity provider for one client."""

    token = Tokens({}, {"unsecuredLoginStringClaim_sub": "me"}).token()

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        is_known = (given, form) == ("me:its secret", "grant_type=client_credentials&scope=kafka")
        self.send_response(200 if is_known else 401)
        self.end_headers()
        if is_known:
            self.wfile.write(json.dumps({"access_token": self.token, "expires_in": 300}).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_tokens(broker: Secure, tmp_path: Path) -> None:
    """Unsigned, of a file, and of an identity provider for the client's own credentials."""
    server = f"127.0.0.1:{broker.ports['LOGIN']}"
    oauth = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
    cluster = connect(f"127.0.0.1:{broker.ports['PLAINTEXT']}", "")
    (tmp_path / "token").write_text(Issuer.token)
    unsigned = 'sasl.jaas.config=x required unsecuredLoginStringClaim_sub="me";\n'
    assert connect(server, oauth + unsigned) == cluster
    assert connect(server, f"{oauth}{URL}=file://{tmp_path}/token\n") == cluster
    (tmp_path / "token").write_text("no.token.")
    assert "the broker refuses the login by OAUTHBEARER" in connect(server, f"{oauth}{URL}=file://{tmp_path}/token\n")
    with HTTPServer(("127.0.0.1", 0), Issuer) as issuer:
        threading.Thread(target=issuer.serve_forever, daemon=True).start()
        where = f"{oauth}{URL}=http://127.0.0.1:{issuer.server_port}/\n"
        client = 'sasl.jaas.config=x required clientId="me" clientSecret="its secret" scope="kafka";\n'
        assert connect(server, where + client) == cluster
        assert "gives no token: HTTP Error 401" in connect(server, where + client.replace("its", "no"))
        issuer.shutdown()


def test_every_cause_has_words_of_its_own(broker: Secure) -> None:
    """Each within seconds, in one line."""
    trust = f"security.protocol=SSL\nssl.truststore.location={broker.keys}/ca.pem\n"
    closed = free_port()
    tried = {
        "unknown host": connect("no-such-host.invalid:9092", ""),
        "nothing listens on port": connect(f"127.0.0.1:{closed}", ""),
        "the port speaks TLS, and the client does not": connect(f"127.0.0.1:{broker.ports['TLS']}", ""),
        "the port does not speak TLS": connect(f"127.0.0.1:{broker.ports['PLAINTEXT']}", trust),
        "the broker asks for a client's certificate": connect(f"127.0.0.1:{broker.ports['TLS']}", trust),
        "the broker's certificate is not trusted": connect(
            f"127.0.0.1:{broker.ports['TLS']}", "security.protocol=SSL\n"
        ),
        "the broker's certificate is not of localhost": connect(f"localhost:{broker.ports['TLS']}", trust),
        "the broker answers, but not without a login": connect(f"127.0.0.1:{broker.ports['LOGIN']}", ""),
        "the port wants no login": connect(f"127.0.0.1:{broker.ports['PLAINTEXT']}", login("any", "SASL_PLAINTEXT")),
        "the broker refuses the login": connect(f"127.0.0.1:{broker.ports['LOGIN']}", login("any", "SASL_PLAINTEXT")),
    }
    assert {words: said for words, said in tried.items() if words not in said} == {}
    for words, said in tried.items():
        assert [other for other in tried if other in said] == [words]
    both = connect(f"no-such-host.invalid:9092,127.0.0.1:{closed}", "")
    assert "unknown host" in both
    assert "nothing listens" in both
    assert connect(f"127.0.0.1:{closed},127.0.0.1:{broker.ports['PLAINTEXT']}", "") == connect(
        f"127.0.0.1:{broker.ports['PLAINTEXT']}", ""
    )
