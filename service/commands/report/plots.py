"""The report as pictures, one PNG a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from service.commands.report.figures import Report


def draw(report: Report, folder: Path) -> list[Path]:
    """Write lengths.png, thresholds.png and budget.png, and return their paths. Needs matplotlib."""
    folder.mkdir(parents=True, exist_ok=True)
    lengths, near, points = report.texts.histogram, report.rates.near, report.curve.points
    return [
        _plot(
            folder / "lengths.png",
            [float(least) for least, _ in lengths],
            [float(count) for _, count in lengths],
            labels=("characters of a prompt", "prompts"),
            log=True,
        ),
        _plot(
            folder / "thresholds.png",
            [least for least, _ in near],
            [100 * share for _, share in near],
            labels=("similarity of the nearest stored prompt, at least", "% of requests"),
        ),
        _plot(
            folder / "budget.png",
            [float(size) for _, size, _ in points],
            [100 * hits for _, _, hits in points],
            labels=("bytes of entries kept", "hit rate of LRU, %"),
            log=True,
        ),
    ]


def _plot(path: Path, x: Sequence[float], y: Sequence[float], *, labels: tuple[str, str], log: bool = False) -> Path:
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(x, y, marker="o")
    axes.set(xlabel=labels[0], ylabel=labels[1], ylim=(0, None))
    if log and x:
        axes.set_xscale("log", base=2)
    figure.savefig(path, dpi=120)
    return path


__all__ = ["draw"]
