"""Which headers cross the proxy: none of a connection's own (RFC 9110, 7.6.1), none of a caller's secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Headers = list[tuple[bytes, bytes]]
"""Pairs as ASGI has them: names in lower case, values as they came."""

_CONNECTION = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# By the last word of a name, since each gateway and identity provider has names of its own: Helicone-Auth,
# x-portkey-virtual-key, x-amz-security-token, cf-access-jwt-assertion. An Idempotency-Key is no secret.
_SECRET = re.compile(
    rb"(.*[-_])?(auth|authorization|token|secret|password|credentials?|cookie|jwt|assertion"
    rb"|(api|access|account|auth|client|functions|license|master|secret|service|subscription|virtual)[-_]?key)"
    rb"|x-bf-vk|x-portkey-config"
)
# Made anew for the next hop; only the identity encoding is asked for, so that relayed answers can be read.
_REQUEST_OWN = _CONNECTION | {b"host", b"content-length", b"accept-encoding", b"expect"}
_ANSWER_OWN = _CONNECTION | {b"date", b"server"}
_DECODED = {b"gzip", b"deflate", b"br", b"zstd"}  # by aiohttp, whatever was asked for; others pass as they come


def request_headers(
    headers: Iterable[tuple[bytes, bytes]], *, key: str | None, forward_authorization: bool = False
) -> Headers:
    """What the model server gets of a caller's headers, with `key` as bearer token.

    The caller's own Authorization goes on only under `forward_authorization`, and never in place of `key`.
    """
    given = list(headers)
    passed = [pair for pair in _without(given, _REQUEST_OWN) if not _SECRET.fullmatch(pair[0])]
    passed.append((b"accept-encoding", b"identity"))
    if key is not None:
        passed.append((b"authorization", b"Bearer " + key.encode()))
    elif forward_authorization:
        passed += [pair for pair in given if pair[0].lower() == b"authorization"]
    return passed


def answer_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the caller gets of the model server's headers; `x-cache…` and `age` are this cache's to say."""
    given = [(name.lower(), value) for name, value in headers]
    own = set(_ANSWER_OWN) | {b"age"}
    if any(name == b"content-encoding" and value.lower() in _DECODED for name, value in given):
        own |= {b"content-encoding", b"content-length"}
    return [(name, value) for name, value in _without(given, own) if not name.startswith(b"x-cache")]


def _without(headers: list[tuple[bytes, bytes]], dropped: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
    lines = (value for name, value in headers if name.lower() == b"connection")
    named = {token.strip().lower() for line in lines for token in line.split(b",")}
    return ((n.lower(), value) for n, value in headers if n.lower() not in dropped and n.lower() not in named)


__all__ = ["Headers", "answer_headers", "request_headers"]
