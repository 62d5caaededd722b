"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from service.commands.report.figures import Report

WIDTH = 40


def render(report: Report) -> str:
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    rates, texts, curve = report.rates, report.texts, report.curve
    yield from (
        f"{rates.requests} requests, {rates.distinct} distinct",
        f"served           {_percent(rates.hits)}",
        f"exactly          {_percent(rates.exact_hits)}",
        f"by meaning       {_percent(rates.semantic_hits)}",
        f"coalesced        {_percent(rates.coalesced)}: shared another's call to the model",
        f"stale            {_percent(rates.stale)}: an expired answer, by the policy",
        f"asked before     {_percent(rates.repeated)}: what a cache without end would hit exactly",
        f"tokens           {rates.tokens_saved} saved, {rates.tokens_spent} spent",
        "",
        "Asked before, or a stored prompt at least so near (before guards; no policy can hit more):",
        *_table((f"{least:g}", _percent(share)) for least, share in rates.near),
        "",
        f"Hit rate by a budget of bytes (LRU; all entries: {curve.footprint} bytes, counted as by maxBytes):",
        *_table((f"{_percent(share)} = {size} bytes", _percent(hits)) for share, size, hits in curve.points),
        "",
        f"{texts.prompts} stored prompts",
        f"characters       {_quantiles(texts.characters)}",
        f"prompt tokens    {_quantiles(texts.tokens)}",
        f"words            {texts.words}, {texts.distinct_words} distinct, {texts.entropy:.2f} bits each",
        f"like another     {_percent(texts.templated)} but for numbers, quotations, addresses",
        "",
        "Templates:",
        *_table((str(shared.prompts), shared.text) for shared in texts.templates),
        "",
        "Beginnings that prompts share:",
        *_table((str(shared.prompts), shared.text) for shared in texts.openings),
        "",
        "System prompts, by their digest in the scope: requests, prompt tokens:",
        *_table((f"{s.requests}, {s.prompt_tokens}", s.system[:16]) for s in report.systems),
    )


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {left:<{WIDTH}} {right}" for left, right in rows] or ["  none"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _quantiles(values: list[int]) -> str:
    names = ("median", "90 %", "99 %", "longest")
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True)) if values else "unknown"


__all__ = ["render"]
