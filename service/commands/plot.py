"""The trade-off of policies as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from service.policy.boundary import Per
from service.policy.report import Name, Row, settings_of


def plot(rows: Sequence[Row], per: Per, path: Path) -> None:
    """Hit rate against false hits per hit of this kind, a line for each policy, with 95 % intervals, as PNG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name in get_args(Name):
        points = [row.point for row in settings_of(rows, name) if row.point]
        shares = [point.false_per(per) for point in points]
        at = [share.rate for share in shares]
        low = [max(0.0, share.rate - share.low) for share in shares]
        high = [max(0.0, share.high - share.rate) for share in shares]
        served = [point.hit_rate for point in points]
        axes.errorbar(at, served, xerr=(low, high), label=name, marker="o", markersize=3, elinewidth=0.4)
    axes.set_xlabel(f"false hits per {per.replace('_', ' ')}")
    axes.set_ylabel("served of all requests")
    axes.set_xlim(left=0)
    axes.legend()
    figure.savefig(path, format="png", dpi=150)


__all__ = ["plot"]
