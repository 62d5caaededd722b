"""`python -m service.embed FOLDER [MODEL]`: export a model ahead of the first start, as the container image does."""

import asyncio
import sys
from pathlib import Path

from service.embed.local import open_local


async def _export(models_dir: str, model: str | None = None) -> None:
    await (await open_local(model, Path(models_dir))).close()


asyncio.run(_export(*sys.argv[1:]))
