"""Get tokens for SASL OAUTHBEARER: from an identity provider, from a file, or unsigned ones.

An identity provider gets the client's own credentials. This follows ``OAuthBearerLoginCallbackHandler`` and
``OAuthBearerUnsecuredLoginCallbackHandler`` of Java's client.
"""

from __future__ import annotations

import base64
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offsets_log.errors import ClusterError, InputError

URL = "sasl.oauthbearer.token.endpoint.url"
SECONDS = 10.0
UNSIGNED_SECONDS = 3600
SPARE_SECONDS = 60


class Tokens:
    """A source of tokens.

    Args:
        properties: the client's properties.
        login: name → value of the line for Java's login module.
    """

    def __init__(self, properties: Mapping[str, str], login: Mapping[str, str]) -> None:
        own = "sasl.oauthbearer.client.credentials.client."  # since Kafka 4.1, instead of the login's
        self._url = properties.get(URL)
        self._id = properties.get(f"{own}id") or login.get("clientId")
        self._secret = properties.get(f"{own}secret") or login.get("clientSecret")
        self._scope = properties.get("sasl.oauthbearer.scope") or login.get("scope")
        self._subject = login.get("unsecuredLoginStringClaim_sub")
        self._token, self._until = "", 0.0
        is_file = (self._url or "").startswith("file:")
        if not (is_file or (self._url and self._id and self._secret) or self._subject):
            raise InputError("it is needed with a clientId and clientSecret, or as file:PATH of a token", field=URL)

    def token(self) -> str:
        """Return a token that is still valid. Raises ClusterError."""
        if time.time() >= self._until:
            self._token, seconds = self._fetch()
            self._until = time.time() + seconds - SPARE_SECONDS
        return self._token

    def _fetch(self) -> tuple[str, float]:
        """Return a token, and for how many seconds it is valid."""
        if self._url is None:
            return _unsigned(self._subject or ""), UNSIGNED_SECONDS
        if self._url.startswith("file:"):
            path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(self._url).path))
            try:
                return _checked(path.read_text().strip()), SPARE_SECONDS
            except (OSError, ValueError) as error:
                raise ClusterError(f"{path} gives no token: {_without_values(error)}") from None
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        login = base64.b64encode(f"{self._id}:{self._secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        request = urllib.request.Request(self._url, urllib.parse.urlencode(form).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                answer = json.load(response)
            return _checked(answer["access_token"]), float(answer.get("expires_in", SPARE_SECONDS))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClusterError(f"{_shown(self._url)} gives no token: {_without_values(error)}") from None


_TOKEN = re.compile(r"[\x21-\x7e]+")


def _checked(token: str) -> str:
    """Return a token that can be sent. Raises ValueError, without the token."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("it is empty, or has characters that no token has")
    return token


def _without_values(error: Exception) -> str:
    """Return an error in words that quote nothing of what was read; those of the network do not."""
    return str(error) if isinstance(error, OSError) or "token" in str(error) else type(error).__name__


def _shown(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def provider(tokens: Tokens) -> Any:
    """Return the tokens as kafka-python's token provider."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return tokens.token()

    return Provider()


def _unsigned(subject: str) -> str:
    """Return an unsigned token, which test brokers accept (``OAuthBearerUnsecuredValidatorCallbackHandler``)."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + UNSIGNED_SECONDS})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + "."
