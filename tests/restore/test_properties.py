"""A client's properties as kafka-python's options."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from offsets_log.cluster.properties import client_options, parse_properties
from offsets_log.errors import InputError

FILE = r"""
# a comment
! another
security.protocol=sasl_ssl
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="alice" \
    password="a \"b\" = c";
ssl.truststore.type=PEM
ssl.endpoint.identification.algorithm=
request.timeout.ms=5000
"""


def test_a_java_clients_file() -> None:
    options = client_options(parse_properties(FILE, "client.properties"))
    context = options.pop("ssl_context")
    assert options == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a "b" = c',
        "request_timeout_ms": 5000,
    }
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_keys_that_cannot_be_read_are_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(InputError, match="the keys or certificates cannot be read"):
        client_options({"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")})


def test_every_option_is_one_of_the_clients() -> None:
    from kafka.admin import KafkaAdminClient

    from offsets_log.cluster.properties import OPTIONS

    assert {option for option, _ in OPTIONS.values()} <= set(KafkaAdminClient.DEFAULT_CONFIG)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("security.protocol", "f: line 1 is not name=value"),
        ("x.y=1", "field x.y: unknown property; known are client.id"),
        ("request.timeout.ms=soon", "field request.timeout.ms: 'soon' is no number"),
        ("security.protocol=TLS", "field security.protocol: 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("sasl.mechanism=X", "field sasl.mechanism: 'X' is none of PLAIN, SCRAM-SHA-256"),
        ("ssl.ca.location=/nowhere.pem", "field ssl.ca.location: '/nowhere.pem' is no file"),
        ("security.protocol=SASL_SSL", "field sasl.mechanism: a SASL protocol needs one"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "field sasl.jaas.config: it must hold username"),
        ("ssl.truststore.type=JKS", "field ssl.truststore.type: ssl.truststore.type=JKS: only PEM files can be read"),
    ],
)
def test_what_makes_no_sense_is_said(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        client_options(parse_properties(text, "f"))
    assert str(caught.value).startswith(problem)
