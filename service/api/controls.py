"""The cache's controls in a request: read in our words and in those of other gateways, and taken out.

Our own header beats the aliases; of several aliases the strictest counts. A switch counts wherever it is
thrown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, get_args

from service.errors import Code, SemcacheError
from service.policy.controls import Controls, Mode
from service.policy.decision import Policy

Headers = list[tuple[bytes, bytes]]
T = TypeVar("T")

_PREFIXES = (b"x-cache", b"x-bf-cache-", b"x-portkey-cache-", b"helicone-cache-", b"cf-aig-")
_BODY = ("cache", "skip_cache", "cache_similarity_threshold")
_SALTS = ("x-bf-cache-key", "cf-aig-cache-key", "helicone-cache-seed")

_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}
_MODES: dict[str, Mode] = {"exact": "exact", "semantic": "semantic", "off": "off"}
_DECISIONS: dict[str, Policy] = {name: name for name in get_args(Policy)}
_BIFROST_TYPES: dict[str, Mode] = {"direct": "exact", "semantic": "semantic"}
_DIRECTIVE = re.compile(r"""([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,;"]*))?""")
_GO_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_GO_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_LONGEST = 500  # characters of one value, as of a tag in the data API
_TOO_LONG = 2.0**31  # RFC 9111, section 1.2.2: what a cache takes for "longer than I can say"


@dataclass(frozen=True, slots=True)
class Controlled:
    """A request without its controls. `removed` names the members that were taken out of the body."""

    controls: Controls
    headers: Headers
    body: dict[str, Any]
    removed: frozenset[str]


def parse_controls(
    headers: Iterable[tuple[bytes, bytes]], body: Mapping[str, Any] | None = None, *, max_tags: int = 32
) -> Controlled:
    """Read and remove the controls of a request. `x-session-id` is read and stays, since vLLM's routers read
    it too.

    Raises SemcacheError INVALID_DATA for a value that breaks its rule; its `extra["param"]` is the header or
    field.
    """
    given = list(headers)
    source = _Source(given, body or {})
    controls = Controls(
        namespace=_namespace(source),
        ttl=_ttl(source),
        threshold=_threshold(source),
        decision=source.header("x-cache-decision", _choice(_DECISIONS)),
        mode=_mode(source),
        tags=_tags(source, max_tags),
        session_id=session_name(source.headers.get("x-session-id")) or session_name(source.body.get("session_id")),
        salt=tuple((name, value) for name in _SALTS if (value := source.header(name, _text))),
        variants=source.header("helicone-cache-bucket-max-size", _bucket),
        **_reading(source),
    )
    removed = frozenset(name for name in _BODY if name in source.body)
    kept = [(name, value) for name, value in given if not _is_control(name.lower())]
    rest = {name: value for name, value in source.body.items() if name not in removed}
    return Controlled(controls, kept, rest, removed)


def session_name(given: Any) -> str | None:
    """The session that a caller names. The model server gets it too and is to judge it: no value is refused here, what
    is no text counts as none, and of a long one the beginning."""
    return given.strip()[:_LONGEST] or None if isinstance(given, str) else None


class _Source:
    """Where controls stand: headers, body, and the body's `cache` object, each read with its rule."""

    def __init__(self, headers: Headers, body: Mapping[str, Any]) -> None:
        self.headers: dict[str, str] = {}
        for raw, value in headers:
            name, text = raw.decode("latin-1").lower(), _decoded(value)
            self.headers[name] = f"{self.headers[name]}, {text}" if name in self.headers else text
        self.body = body
        cache = body.get("cache")
        if cache is not None and not isinstance(cache, dict):
            _refuse("cache", 'an object such as {"ttl": 60}')
        self._cache: Mapping[str, Any] = cache or {}

    def header(self, name: str, rule: Callable[[str, Any], T]) -> T | None:
        value = self.headers.get(name, "").strip()
        return rule(name, value) if value else None

    def field(self, name: str, rule: Callable[[str, Any], T]) -> T | None:
        value = self.body.get(name)
        return None if value is None else rule(name, value)

    def cache(self, name: str, rule: Callable[[str, Any], T]) -> T | None:
        value = self._cache.get(name)
        return None if value is None else rule(f"cache.{name}", value)


def _namespace(source: _Source) -> str | None:
    own = source.header("x-cache-namespace", _text)
    return own or source.header("x-portkey-cache-namespace", _text) or source.cache("namespace", _text)


def _ttl(source: _Source) -> float | None:
    own = source.header("x-cache-ttl", _seconds)
    aliases = (
        source.header("x-bf-cache-ttl", _duration),
        source.header("cf-aig-cache-ttl", _seconds),
        source.cache("ttl", _seconds),
    )
    return _strictest(min, aliases) if own is None else own


def _threshold(source: _Source) -> float | None:
    own = source.header("x-cache-threshold", _similarity)
    aliases = (
        source.header("x-bf-cache-threshold", _similarity),
        source.field("cache_similarity_threshold", _similarity),
    )
    return _strictest(max, aliases) if own is None else own


def _mode(source: _Source) -> Mode | None:
    own = source.header("x-cache-mode", _choice(_MODES))
    off = (
        source.header("cf-aig-skip-cache", _boolean),
        source.field("skip_cache", _boolean),
        source.header("helicone-cache-enabled", _boolean) is False,
        source.cache("use-cache", _boolean) is False,
    )
    alias = source.header("x-bf-cache-type", _choice(_BIFROST_TYPES))
    return "off" if any(off) else own or alias


def _reading(source: _Source) -> dict[str, Any]:
    directives = _directives(source.headers.get("cache-control", ""))
    switches = {
        "refresh": (
            "no-cache" in directives,
            source.header("x-cache-refresh", _boolean),
            source.header("x-portkey-cache-force-refresh", _boolean),
            source.cache("no-cache", _boolean),
        ),
        "no_store": (
            "no-store" in directives,
            source.header("x-bf-cache-no-store", _boolean),
            source.cache("no-store", _boolean),
        ),
        "only_if_cached": ("only-if-cached" in directives,),
    }
    ages = (
        directives.get("max-age"),
        source.cache("s-maxage", _seconds),
        source.cache("s-max-age", _seconds),
    )
    return {name: any(thrown) for name, thrown in switches.items()} | {
        "max_age": _strictest(min, ages),
        "min_fresh": directives.get("min-fresh"),
        "stale_while_revalidate": directives.get("stale-while-revalidate"),
        "stale_if_error": directives.get("stale-if-error"),
    }


def _directives(value: str) -> dict[str, float | None]:
    """The directives of Cache-Control (RFC 9111, section 5.2) by name, with the strictest seconds where they have
    some.

    What is not understood is passed over. A max-age that is no number is 0, as for a stale answer (section
    4.2.1).
    """
    found: dict[str, float | None] = {}
    for name, argument in _DIRECTIVE.findall(value):
        key, text = name.lower(), argument.strip('"')
        seconds = min(float(text), _TOO_LONG) if _is_digits(text) else 0.0 if key == "max-age" else None
        known = found.get(key)
        strictest = max if key == "min-fresh" else min
        found[key] = seconds if known is None or seconds is None else strictest(known, seconds)
    return found


def _tags(source: _Source, most: int) -> tuple[str, ...]:
    given = source.headers.get("x-cache-tags", "").split(",")
    tags = tuple(dict.fromkeys(tag.strip() for tag in given if tag.strip()))
    if len(tags) > most or any(len(tag) > _LONGEST for tag in tags):
        _refuse("x-cache-tags", f"at most {most} tags of at most {_LONGEST} characters")
    return tags


def _strictest(pick: Callable[[Iterable[float]], float], values: Iterable[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return pick(given) if given else None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        _refuse(name, f"a text of at most {_LONGEST} characters")
    return value


def _boolean(name: str, value: Any) -> bool:
    text = str(value).lower()
    return text in _TRUE if text in _TRUE | _FALSE else _refuse(name, "true or false")


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value.isascii() and _NUMBER.fullmatch(value.strip()):
        return float(value)
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and 0 <= value < float("inf") else None


def _seconds(name: str, value: Any) -> float:
    seconds = _number(value)
    return _refuse(name, "a number of seconds, 0 or more") if seconds is None else min(seconds, _TOO_LONG)


def _duration(name: str, value: str) -> float:
    """A Go duration as `1h30m`, or plain seconds."""
    if _number(value) is not None:
        return _seconds(name, value)
    parts = _GO_PART.findall(value)
    if "".join(number + unit for number, unit in parts) != value:
        _refuse(name, "a duration such as 30s or 1h30m")
    return min(sum(float(number) * _GO_UNIT[unit] for number, unit in parts), _TOO_LONG)


def _similarity(name: str, value: Any) -> float:
    number = _number(value)
    return _refuse(name, "a similarity from 0 to 1") if number is None or number > 1 else number


def _bucket(name: str, value: str) -> int:
    number = float(value) if _is_digits(value) else 0
    return int(number) if 1 <= number <= 20 else _refuse(name, "a whole number from 1 to 20")


def _choice(choices: Mapping[str, T]) -> Callable[[str, Any], T]:
    def rule(name: str, value: Any) -> T:
        return choices.get(str(value).lower()) or _refuse(name, f"one of {', '.join(choices)}")

    return rule


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_control(name: bytes) -> bool:
    return name == b"cache-control" or name.startswith(_PREFIXES)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _refuse(name: str, rule: str) -> NoReturn:
    raise SemcacheError(Code.INVALID_DATA, f"The cache's control {name} must be {rule}.", {"param": name})


__all__ = ["Controlled", "parse_controls", "session_name"]
