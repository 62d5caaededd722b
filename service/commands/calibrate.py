"""`pgsemcache calibrate`: what each policy would serve, and how much of it wrongly, on labelled requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from service.commands.ago import ago
from service.commands.labels import Pair, read_pairs, sample, split
from service.commands.plot import plot
from service.commands.target import DatabaseUrl, DataDir, read_settings
from service.commands.work import run
from service.errors import Code, SemcacheError
from service.policy.boundary import Budget, Per
from service.policy.report import Choice, Row, choose_calibrated, choose_threshold, compare, keeps
from service.policy.tradeoff import Sample, Share
from service.settings import DEFAULT_CACHE, DEFAULT_TENANT, Settings
from service.store import caches, samples, tenants
from service.store.database import Database
from service.store.rows import InvalidationId

MOST = 200_000  # labelled candidates that are read

Halves = tuple[Sample, Sample]


def calibrate(  # noqa: PLR0917 - typer makes flags of them, none is positional but the first
    pairs: Annotated[
        Path | None,
        typer.Argument(
            help="JSONL or CSV of labelled pairs: a (stored), b (asked), same (1: one answer serves both, 0), and if "
            "wanted group (what is right or wrong together). Without it: what the cache has observed.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[str, typer.Option(help="The cache that is observed, or written to.")] = DEFAULT_CACHE,
    tenant: Annotated[str, typer.Option(help="Whose cache.")] = DEFAULT_TENANT,
    since: Annotated[str, typer.Option(help="How far back observations count: 7d, 12h, 30m.")] = "7d",
    budget: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Most false hits, as a share.")] = 0.01,
    per: Annotated[Per, typer.Option(help="What they are counted per.")] = Per.SEMANTIC_HIT,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Of the bound on them.")] = 0.95,
    decision: Annotated[
        Literal["threshold", "calibrated"], typer.Option(help="The policy that is chosen for the budget.")
    ] = "threshold",
    guards: Annotated[bool, typer.Option(help="Whether a chosen threshold goes with guards.")] = True,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="The pairs stand in the order of time: choose on the first half.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Put the choice into the cache's policy.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Also draw them, as PNG.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Compare policies on labelled requests: chosen on one half of them, shown on the other."""
    settings = read_settings(data_dir=data_dir, database_url=database_url)
    wanted = Budget(budget, per, confidence)
    _require_libraries(plot_file)
    if pairs is not None:
        earlier, later = asyncio.run(sample(settings, *_halves(pairs, in_order=in_order)))
    else:
        earlier, later = _observed(settings, tenant, cache, ago(since))
    rows = compare(earlier, later, wanted)
    choose = choose_calibrated if decision == "calibrated" else _threshold(guards)
    choice = choose(earlier, later, wanted)
    _show(earlier, later, rows, choice, wanted)
    if json_file is not None:
        figures = {"budget": asdict(wanted), "choice": asdict(choice), "rows": [asdict(row) for row in rows]}
        json_file.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if plot_file is not None:
        plot(rows, per, plot_file)
    if write:
        _write(settings, tenant, cache, choice, wanted)


def _halves(path: Path, *, in_order: bool) -> tuple[list[Pair], list[Pair]]:
    pairs = read_pairs(path)
    earlier, later = split(pairs, in_order=in_order)
    if not earlier or not later:
        raise typer.BadParameter(
            f"{len(pairs)} labelled pairs do not make two halves, one to choose on and one to show: "
            f"give more of them, of more groups, in {path}"
        )
    return earlier, later


def _require_libraries(plot_file: Path | None) -> None:
    if find_spec("sklearn") is None:
        raise SemcacheError(Code.INTERNAL, 'fitting needs scikit-learn: pip install "pgsemcache[learn]"')
    if plot_file is not None and find_spec("matplotlib") is None:
        raise SemcacheError(Code.INTERNAL, '--plot needs matplotlib: pip install "pgsemcache[plots]"')


def _threshold(guards: bool) -> Callable[[Sample, Sample, Budget], Choice]:
    return lambda earlier, later, budget: choose_threshold(earlier, later, budget, guards=guards)


def _observed(settings: Settings, tenant: str, cache: str, since: datetime) -> Halves:
    async def work(db: Database) -> Halves:
        owner = await tenants.find(db, tenant)
        return await samples.read(db, await caches.find(db, owner.tenant_id, cache), since, MOST)

    return run(settings, work, lambda _: None)


def _write(settings: Settings, tenant: str, cache: str, choice: Choice, budget: Budget) -> None:
    policy = choice.policy
    if policy is None:
        raise SemcacheError(Code.INVALID_DATA, f"nothing was written: it would take {choice.missing}")
    if not keeps(choice, budget):
        raise SemcacheError(
            Code.INVALID_DATA, "nothing was written: what was chosen on one half breaks the budget on the other"
        )

    async def work(db: Database) -> InvalidationId:
        owner = await tenants.find(db, tenant)
        return await caches.change_policy(db, await caches.find(db, owner.tenant_id, cache), policy)

    run(settings, work, lambda invalidation: invalidation)
    typer.echo(f"written to the policy of {cache}: {json.dumps(policy)}")


def _show(earlier: Sample, later: Sample, rows: Sequence[Row], choice: Choice, budget: Budget) -> None:
    typer.echo(
        f"{len(earlier.labelled)} labelled requests to choose on, {len(later.labelled)} to show; of {later.requests} "
        f"requests there {later.exact_hits} were exact hits; 95 % intervals"
    )
    if later.unseen:
        typer.echo(
            f"{later.unseen} semantic hits of that time are left out: none of what is served is labelled, unless the "
            "cache's policy has an auditRate, an explorationRate, or shadow"
        )
    typer.echo(
        f"{'policy':24} {'setting':>8} {'served':>7} {'semantic':>8}  {'false per semantic hit':24} per served hit"
    )
    for row in rows:
        typer.echo(f"{row.policy:24} {row.setting:>8g} " + (_point(row) if row.point else f"nothing: {row.missing}"))
    promise = f"at most {budget.rate:.2%} false hits per {budget.per.replace('_', ' ')}, at {budget.confidence:.1%}"
    typer.echo(
        f"for {promise}: {json.dumps(choice.policy) if choice.policy else f'nothing, it takes {choice.missing}'}"
    )
    if choice.shown is not None:
        kept = "kept" if keeps(choice, budget) else "NOT KEPT"
        shown = choice.shown.false_per(budget.per)
        typer.echo(
            f"on the half that it was not chosen on: {_share(shown)}, {kept}; served {choice.shown.hit_rate:.1%}"
        )


def _point(row: Row) -> str:
    point = row.point
    if point is None:
        return ""
    semantic, served = _share(point.false_per_semantic_hit), _share(point.false_per_served_hit)
    return f"{point.hit_rate:>7.1%} {point.semantic_hits:>8.0f}  {semantic:24} {served}"


def _share(share: Share) -> str:
    return f"{share.rate:.2%} [{share.low:.2%}, {share.high:.2%}]"


__all__ = ["calibrate"]
