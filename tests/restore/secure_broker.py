"""A real broker behind TLS and SASL, and its clients' keys and certificates in each kind of store."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.coordinator.broker import Broker, free_port
from tests.waiting import PATIENCE_S

PASSWORD = "of the store"
USER, USER_PASSWORD = "alice", 'a "quoted" \\ secret'
LISTENERS = {"TLS": "SSL", "LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
"""Name of a listener → its protocol, besides PLAINTEXT."""


def _run(folder: Path, *words: str) -> None:
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def make_certificates(folder: Path) -> None:
    """An authority, a key of 127.0.0.1 and a client's, with openssl; the stores of a client, with Java's keytool."""
    folder.mkdir()
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    _run(folder, *new, "-x509", "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "client"):
        _run(folder, *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        _run(folder, "openssl", "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
        both = (folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text()
        (folder / f"{name}.pem").write_text(both)
    locked = ("-topk8", "-v2", "aes-256-cbc", "-passout", f"pass:{PASSWORD}")
    _run(folder, "openssl", "pkcs8", "-in", "client.key", *locked, "-out", "locked.key")
    (folder / "locked.pem").write_text((folder / "locked.key").read_text() + (folder / "client.crt").read_text())
    out = ("-out", "client.p12", "-passout", f"pass:{PASSWORD}", "-name", "me")
    _run(folder, "openssl", "pkcs12", "-export", "-in", "client.crt", "-inkey", "client.key", *out)
    source = ("-srckeystore", "client.p12", "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD)
    for kind in ("JKS", "PKCS12"):
        to = ("-destkeystore", f"key.{kind}", "-deststoretype", kind, "-deststorepass", PASSWORD)
        _run(folder, "keytool", "-importkeystore", *source, *to)
        trust = ("-keystore", f"trust.{kind}", "-storetype", kind, "-storepass", PASSWORD, "-noprompt")
        _run(folder, "keytool", "-importcert", "-alias", "ca", "-file", "ca.pem", *trust)


def secure(broker: Broker, certificates: Path) -> dict[str, int]:
    """Give a broker that is not running listeners with TLS that asks for a certificate, with SASL, and with both.

    Returns:
        Name of the listener → its port.
    """
    ports = {name: free_port() for name in LISTENERS}
    old = dict(line.split("=", 1) for line in broker.properties.read_text().splitlines())
    more = "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    user = USER_PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{user}";'
    settings = {
        "listeners": old["listeners"] + more,
        "advertised.listeners": old["advertised.listeners"] + more,
        "listener.security.protocol.map": old["listener.security.protocol.map"]
        + "".join(f",{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates / "server.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates / "ca.pem",
        "listener.name.tls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.login.oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
        'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        "listener.name.login.plain.sasl.jaas.config": login.replace("\\", "\\\\"),
        "listener.name.both.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.both.plain.sasl.jaas.config": login.replace("\\", "\\\\"),
    }
    with broker.properties.open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())
    return ports
