"""A client's properties as kafka-python's options."""

from __future__ import annotations

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
ssl.truststore.location=/etc/ca.pem
ssl.endpoint.identification.algorithm=
request.timeout.ms=5000
"""


def test_a_java_clients_file() -> None:
    assert client_options(parse_properties(FILE, "client.properties")) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a "b" = c',
        "ssl_cafile": "/etc/ca.pem",
        "ssl_check_hostname": False,
        "request_timeout_ms": 5000,
    }


def test_every_option_is_one_of_the_clients() -> None:
    from kafka.admin import KafkaAdminClient

    from offsets_log.cluster.properties import OPTIONS

    assert {option for option, _ in OPTIONS.values()} <= set(KafkaAdminClient.DEFAULT_CONFIG)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("security.protocol", "f: line 1 is not name=value"),
        ("x.y=1", "field x.y: unknown property; known are client.id"),
        ("request.timeout.ms=soon", "field request.timeout.ms: request.timeout.ms=soon is no number"),
        ("ssl.truststore.type=JKS", "field ssl.truststore.type: ssl.truststore.type=JKS: only PEM files can be read"),
    ],
)
def test_what_makes_no_sense_is_said(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        client_options(parse_properties(text, "f"))
    assert str(caught.value).startswith(problem)
