"""`pgsemcache doctor`: what is wrong with an installation, and how to mend it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import typer

from service.api.origins import is_loopback
from service.commands.checks import (
    Finding,
    judge_disk,
    judge_engine,
    judge_policy,
    judge_schema,
    judge_server,
    judge_traffic,
)
from service.commands.target import DatabaseUrl, DataDir, has_embedded, open_target, read_settings
from service.embed.embedder import open_embedder
from service.errors import SemcacheError
from service.json_text import parse
from service.policy.cache_policy import read_policy
from service.policy.needs import unmet
from service.settings import DeclaredModel, Settings
from service.store import migrate, tenants
from service.store.database import Database, Limits
from service.store.facts import read_policies, read_server, read_traffic
from service.upstream.client import UpstreamClient, UpstreamError
from service.upstream.load import read_load
from service.upstream.probe import probe

SLOW_EMBEDDING = 0.1  # seconds for one short text


def doctor(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Check the installation and print what is wrong with its mend. Status 1 when something does not work."""
    findings = []
    for finding in _examine(read_settings(data_dir=data_dir, database_url=database_url)):
        findings.append(finding)
        typer.echo(f"{finding.level:4}  {finding.what}: {finding.said}")
        if finding.mend:
            typer.echo(f"      -> {finding.mend}")
    if any(finding.level == "FAIL" for finding in findings):
        raise typer.Exit(1)


def _examine(settings: Settings) -> Iterator[Finding]:
    for what, folder in _folders(settings).items():
        yield judge_disk(f"disk of the {what}", shutil.disk_usage(_existing(folder)).free)
    yield from asyncio.run(_embedder(settings))
    yield from asyncio.run(_models(settings))
    if settings.database_url is None and not has_embedded(settings.data_dir):
        yield Finding("warn", "database", f"there is none in {settings.data_dir}", "`pgsemcache serve` makes it")
        return
    try:
        with open_target(settings) as target:
            yield from asyncio.run(_database(settings, target.url))
    except SemcacheError as error:
        yield Finding("FAIL", "database", error.detail)


def _folders(settings: Settings) -> dict[str, Path]:
    models = {"models": settings.models_dir} if settings.embedder == "local" else {}
    return models | ({} if settings.database_url else {"data": settings.data_dir})


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


async def _database(settings: Settings, url: str) -> list[Finding]:
    state = await asyncio.to_thread(migrate.state, url)
    as_released = state.known and not state.behind
    findings = list(judge_schema(state, await asyncio.to_thread(migrate.check, url) if as_released else None))
    if state.revision is None:
        return findings
    async with _acting(url, "semcache_app") as db:
        findings += judge_server(await read_server(db), settings, time.time())
        findings += _keys(settings, any_key=await tenants.any_key(db))
    try:
        async with _acting(url, "semcache_worker") as db:
            findings += judge_traffic(await read_traffic(db))
            for row in await read_policies(db):
                lacking = unmet(read_policy(row["policy"]), settings)
                findings += judge_policy(row["tenant"], row["cache"], lacking)
    except SemcacheError:
        mend = "run this with the database login of a worker, who sees all tenants"
        findings.append(Finding("warn", "traffic", "was not looked at", mend))
    return findings


@asynccontextmanager
async def _acting(url: str, role: str) -> AsyncIterator[Database]:
    db = Database(url, Limits(pool_min=1, pool_max=1), role=role)
    await db.verify()
    await db.open()
    try:
        yield db
    finally:
        await db.close()


def _keys(settings: Settings, *, any_key: bool) -> list[Finding]:
    if any_key:
        return [Finding("ok", "keys", "nobody enters without one")]
    if is_loopback(settings.host):
        return [Finding("ok", "keys", "there is none, and only this machine may ask")]
    mend = "pgsemcache keys create --tenant NAME"
    return [Finding("FAIL", "keys", f"there is none, and {settings.host} is reachable from elsewhere", mend)]


async def _embedder(settings: Settings) -> list[Finding]:
    try:
        embedder = await open_embedder(settings)
    except SemcacheError as error:
        return [Finding("FAIL", "embedder", error.detail, "until then only equal requests hit")]
    begun = time.perf_counter()
    await embedder.embed("Is anybody there?")
    seconds = time.perf_counter() - begun
    await embedder.close()
    said = f"{embedder.info.name}, {embedder.info.dimensions} dimensions, {seconds * 1000:.1f} ms for a short text"
    mend = "" if seconds < SLOW_EMBEDDING else "give it more cores, or embed on a GPU: SEMCACHE_EMBEDDER=remote"
    return [Finding("warn" if mend else "ok", "embedder", said, mend)]


async def _models(settings: Settings) -> list[Finding]:
    """Each model server shows what it serves, and whether a change of the model would be seen."""
    if not (settings.upstream or settings.upstreams):
        return [Finding("ok", "model servers", "none is set up: the data API alone")]
    async with UpstreamClient(settings) as client:
        try:
            names = sorted({*settings.models, *settings.upstreams}) or await _served(client)
            return [finding for name in names for finding in await _model(client, settings, name)]
        except UpstreamError as error:
            return [Finding("FAIL", "model servers", error.detail, "start it, or set SEMCACHE_UPSTREAM to where it is")]


async def _served(client: UpstreamClient) -> list[str]:
    shown = parse(await (await client.ask("GET", "/v1/models")).read())
    return [card["id"] for card in shown["data"]]


async def _model(client: UpstreamClient, settings: Settings, name: str) -> list[Finding]:
    busy = (await read_load(client, name)).kv_usage
    return [await _identity(client, settings, name), *judge_engine(name, busy)]


async def _identity(client: UpstreamClient, settings: Settings, name: str) -> Finding:
    what = f"model {name}"
    shown = await probe(client, name, canary=settings.probe_canary)
    if shown.card is None:
        return Finding("FAIL", what, "its server does not list it", "use the name that GET /v1/models shows")
    seen = {"tokenizer": shown.tokenizer, "chat template": shown.template, "sampling defaults": shown.defaults}
    said = (
        f"engine {shown.engine_version or 'unknown'}; shows {', '.join(k for k, v in seen.items() if v) or 'its name'}"
    )
    if settings.models.get(name, DeclaredModel()).revision or shown.canary:
        return Finding("ok", what, said)
    mend = (
        f'SEMCACHE_MODELS=\'{{"{name}": {{"revision": "…"}}}}\', changed at each release, or SEMCACHE_PROBE_CANARY=true'
    )
    return Finding("warn", what, f"{said}; new weights under this name would not be noticed", mend)


__all__ = ["doctor"]
