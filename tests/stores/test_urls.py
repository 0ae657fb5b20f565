"""URLs that are refused, and that nothing which is shown has a part of a secret."""

from __future__ import annotations

import re

import fsspec.core
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from offsets_log.disk.stores import _by_pyarrow, open_store
from offsets_log.disk.urls import ESCAPES, is_url, masked, without_secrets
from offsets_log.errors import InputError
from offsets_log_cli.main import main


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:secret@bucket/a/b?endpoint_override=h&x=1", "s3://bucket/a/b"),
        ("https://host/a.tar?X-Amz-Signature=secret", "https://host/a.tar"),
        ("error for 's3://k:s@b/a?x=y', again", "error for 's3://b/a', again"),
        ("/data/a@b?c", "/data/a@b?c"),
        ("s3://bucket/a@b", "s3://…@b"),
        ("s3://AKIAK:wJalr/bPx+Rfi@buck/m44?scheme=http", "s3://…@buck/m44"),
        ("s3://AKIAK:wJalr?bPx+Rfi@buck/m44?scheme=http", "s3://…@buck/m44"),
        ("s3:/AKIAK:sssSEC@buck/m44?scheme=http", "s3:/buck/m44"),
        ("S3:AKIAK:sssSEC@buck/m44", "S3:buck/m44"),
        ("", ""),
    ],
)
def test_what_is_shown_has_no_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize("kind", ["s3", "S3", "s3a", "gs", "gcs", "abfs"])
def test_an_option_that_is_none_is_refused_and_no_other_library_is_asked(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped endpoint would be another store, which other credentials open."""
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_, **__: pytest.fail("fsspec was asked"))
    user = "" if kind.startswith("g") else "KKKKK:SSSSS@"
    place = f"{kind}://{user}buck/m44?endpoint_overide=127.0.0.1:5791&scheme=http"
    done = CliRunner().invoke(main, ["info", place])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert f"{kind.lower()}://buck/m44: cannot be opened: Unexpected query parameter in" in done.stderr
    assert "endpoint_overide" in done.stderr
    assert not any(word in done.stderr for word in ("KKKKK", "SSSSS", "127.0.0.1"))


def test_options_in_the_url_of_a_kind_that_takes_none_are_refused() -> None:
    with pytest.raises(InputError, match="takes no options"):
        open_store("memory://copies?x=1")


@pytest.mark.parametrize(
    "place",
    [
        "s3://AKIAK:wJalr/bPx+Rfi@buck/m44?region=us-east-1",
        "s3://AKIAK:wJalr?bPx+Rfi@buck/m44?region=us-east-1",
        "s3://AKIAK:12345/bPx+Rfi@buck/m44?region=us-east-1",
    ],
)
def test_a_secret_with_a_slash_is_refused_with_how_to_write_it(place: str) -> None:
    """Also one that begins with digits: it would be a bucket of the key's name, and a port."""
    with pytest.raises(InputError, match=re.escape(ESCAPES)) as caught:
        open_store(place)
    assert caught.value.file == "s3://…@buck/m44"
    escaped = place.replace("r/b", "r%2Fb").replace("r?b", "r%3Fb").replace("5/b", "5%2Fb").replace("+", "%2B")
    files, path = _by_pyarrow(escaped)
    assert path == "buck/m44"
    assert files.__reduce__()[1][0]["secret_key"] == place[len("s3://AKIAK:") : place.index("@")]


def test_one_slash_is_no_path_of_this_machine() -> None:
    with pytest.raises(InputError, match="write s3://") as caught:
        open_store("s3:/AKIAK:sssSEC@buck/m44?scheme=http")
    assert caught.value.file == "s3:/buck/m44"


SECRETS = st.text(st.sampled_from("abcXYZ0189/+=?#@:%&'\" ~"), min_size=6, max_size=40)
SHAPES = (
    "{kind}://AKIAK:{secret}@buck/m44?region=us-east-1",
    "{kind}://AKIAK:{secret}@buck/m44?region=us-east-1&endpoint_override=127.0.0.1:1&scheme=http",
    "{kind}:/AKIAK:{secret}@buck/m44?x=y",
    "s3:AKIAK:{secret}@buck/m44",
    "{kind}://{secret}:x@buck/m44?endpoint_overide=h",
)


@settings(max_examples=150, deadline=None)
@given(SECRETS, st.sampled_from(SHAPES), st.sampled_from(["s3", "S3", "s3a", "gs", "abfs", "memory"]))
@example("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", SHAPES[0], "s3")
@example("0000 @?#", SHAPES[0], "s3")
@example("000///", SHAPES[0], "s3")
@example("123456/abcdef?ghijkl@mnopqr", SHAPES[1], "s3")
def test_no_part_of_a_secret_is_in_any_output(secret: str, shape: str, kind: str) -> None:
    """Neither in the name of a store that opens, nor in what is said of one that does not."""
    url = shape.format(kind=kind, secret=secret)
    said = [without_secrets(url), masked(f"Cannot parse '{url}' at '{secret}'", url)]
    try:
        store = open_store(url) if is_url(url) else None
    except InputError as error:
        said.append(str(error))
    else:
        said += [store.shown(store.path_of(url))] if store else []
    rest = shape.format(kind=kind, secret="")
    for begin in range(len(secret) - 5):
        part = secret[begin : begin + 6]
        assert part in rest or not any(part in words for words in said), said


def test_pyarrow_waits_briefly_and_sends_nothing_again_itself() -> None:
    files, _ = _by_pyarrow("s3://K:S@b/x?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:1")
    how = files.__reduce__()[1][0]
    assert 0 < how["connect_timeout"] <= 10
    assert 0 < how["request_timeout"] <= 10
    assert (how["access_key"], how["secret_key"], how["endpoint_override"]) == ("K", "S", "127.0.0.1:1")


def test_no_option_is_lost_for_it() -> None:
    """What pyarrow takes in URLs only stays with the file system that it made of the URL."""
    kept, _ = _by_pyarrow("s3://K:S@b/x?region=us-east-1&tls_verify_certificates=false")
    assert kept.__reduce__()[1][0]["request_timeout"] < 0
    limited, _ = _by_pyarrow("s3://K:S@b/x?region=us-east-1&tls_ca_file_path=/x")
    how = limited.__reduce__()[1][0]
    assert (how["tls_ca_file_path"], how["request_timeout"] > 0) == ("/x", True)
