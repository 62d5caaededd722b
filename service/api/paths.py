"""Whose paths are whose: the data API has /v1/caches and all below it, the proxy everything else under /v1."""

from __future__ import annotations

_DATA_API = "/v1/caches"


def is_proxied(path: str) -> bool:
    return path.startswith("/v1/") and path != _DATA_API and not path.startswith(f"{_DATA_API}/")


__all__ = ["is_proxied"]
