"""A client's properties as kafka-python's options."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from offsets_log.cluster.properties import client_options, doubtful, parse_properties, patience_seconds
from offsets_log.cluster.stores import pem_material
from offsets_log.errors import InputError

FILE = r"""
# a comment
! another
security.protocol=sasl_ssl
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="alice" \
    password="a \\"b\\" = c";
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # As java.util.Properties.load reads them.
        ("a=1\r\nb : 2\rc 3\n  d\t=\t4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a=x\\\n   y\\\\\nb=\\u00e9\\n\\:", {"a": "xy\\", "b": "é\n:"}),
        ("a\\=b\\ c=d = e", {"a=b c": "d = e"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=", {"a": ""}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
    ],
)
def test_lines_are_javas(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text, "f") == found


@pytest.mark.parametrize(
    "jaas",
    [
        'X required username="al" password="p;w";',
        "X required username='al' password='p;w';",
        'X required user="no" password="p;w" username=al;',
    ],
)
def test_logins(jaas: str) -> None:
    options = client_options(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    )
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("al", "p;w")


def test_every_option_is_one_of_the_clients() -> None:
    from kafka.admin import KafkaAdminClient

    from offsets_log.cluster.properties import OPTIONS

    assert {option for option, _ in OPTIONS.values()} <= set(KafkaAdminClient.DEFAULT_CONFIG)


OF_KAFKA = """
bootstrap.servers client.dns.lookup client.id connections.max.idle.ms default.api.timeout.ms enable.metrics.push
metadata.max.age.ms metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
receive.buffer.bytes reconnect.backoff.max.ms request.timeout.ms retries retry.backoff.max.ms sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.service.name sasl.login.connect.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.retry.backoff.ms sasl.mechanism security.protocol send.buffer.bytes socket.connection.setup.timeout.ms
ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.key.password ssl.keymanager.algorithm
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""
"""Of ``AdminClientConfig.configNames``, 4.3.0."""


def test_properties_that_are_passed_over_are_told() -> None:
    assert list(doubtful(dict.fromkeys(OF_KAFKA.split(), ""))) == []
    odd = dict.fromkeys(["ssl.engine.factory.class", "sasl.oauthbearer.jwks.endpoint.url", "acks", "x.y"], "")
    assert list(doubtful(odd)) == [
        "acks is no property of Kafka's tools: it has no effect",
        "sasl.oauthbearer.jwks.endpoint.url is for Java's client alone: it has no effect here",
        "ssl.engine.factory.class is for Java's client alone: it has no effect here",
        "x.y is no property of Kafka's tools: it has no effect",
    ]


def test_patience() -> None:
    assert patience_seconds({}, 60) == 60
    assert patience_seconds({"default.api.timeout.ms": "1500"}, 60) == 1.5


def test_pem_whose_line_breaks_became_spaces() -> None:
    """As one line of a properties file has it (``DefaultSslEngineFactory``)."""
    text = "x -----BEGIN PRIVATE KEY----- QUJD RA== -----END PRIVATE KEY----- -----BEGIN CERTIFICATE-----\nQQ==\n"
    found = pem_material(text + "-----END CERTIFICATE-----")
    assert found.key == "-----BEGIN PRIVATE KEY-----\nQUJDRA==\n-----END PRIVATE KEY-----\n"
    assert found.chain == "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("security.protocol", "f: line 1 is not name=value"),
        ("request.timeout.ms=soon", "field request.timeout.ms: 'soon' is no number"),
        ("security.protocol=TLS", "field security.protocol: 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("sasl.mechanism=X", "field sasl.mechanism: 'X' is none of PLAIN, SCRAM-SHA-256"),
        ("security.protocol=SASL_SSL", "field sasl.mechanism: a SASL protocol needs one of PLAIN"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "field sasl.jaas.config: it must hold username"),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config=x required clientId=a;",
            "field sasl.oauthbearer.token.endpoint.url: it is needed with a clientId and clientSecret",
        ),
        ("security.protocol=SSL\nssl.enabled.protocols=TLSv1", "field ssl.enabled.protocols: none of TLSv1.2, TLSv1.3"),
        (
            "security.protocol=SSL\nssl.ca.location=/nowhere.pem",
            "/nowhere.pem: No such file or directory; ssl.truststore.location must name a file",
        ),
        (
            "security.protocol=SSL\nssl.truststore.certificates=none",
            "field ssl.truststore.location: the certificates or the key cannot be read: it holds no PEM block",
        ),
    ],
)
def test_what_makes_no_sense_is_said(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        client_options(parse_properties(text, "f"))
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("data", "way_out"),
    [
        (b"-----BEGIN X-----", "openssl x509 -in {file} -noout tells whether it can be read"),
        (b"0\x82\x01", "openssl pkcs12 -in {file} -nokeys -out {file}.pem makes a PEM file of it"),
        (
            b"\xfe\xed\xfe\xed\x00",
            "keytool -importkeystore -srckeystore {file} -destkeystore {file}.p12 -deststoretype PKCS12 && "
            "openssl pkcs12 -in {file}.p12 -nokeys -out {file}.pem makes a PEM file of it",
        ),
        (
            b"\xce\xce\xce\xce",  # JCEKS
            "keytool -importkeystore -srckeystore {file} -destkeystore {file}.p12 -deststoretype PKCS12 && "
            "openssl pkcs12 -in {file}.p12 -nokeys -out {file}.pem makes a PEM file of it",
        ),
    ],
)
def test_a_store_that_cannot_be_read_comes_with_the_way_out(tmp_path: Path, data: bytes, way_out: str) -> None:
    file = tmp_path / "store"
    file.write_bytes(data)
    with pytest.raises(InputError) as caught:
        client_options({"security.protocol": "SSL", "ssl.truststore.location": str(file)})
    assert way_out.format(file=file) in str(caught.value)
    assert "\n" not in str(caught.value)
