import asyncio

import numpy as np

from service.embed.batching import Batcher
from service.embed.embedder import Embedder, EmbedderInfo, remembering
from service.embed.memory import TextMemory


async def test_an_equal_text_is_embedded_once_whenever_it_comes():
    """Also between the end of the batch and the moment in which its first caller goes on."""
    gate = asyncio.Event()

    async def run(texts):
        await gate.wait()
        return [np.ones(2, dtype=np.float32) for _ in texts]

    memory = TextMemory(10)
    info = EmbedderInfo(kind="local", name="m", revision="r", dimensions=2, max_tokens=None)
    embedder = Embedder(info, None, Batcher(remembering(run, memory), list), memory)
    asked = []
    for step in range(20):
        asked.append(asyncio.create_task(embedder.embed("a")))
        await asyncio.sleep(0)
        if step == 5:
            gate.set()
    await asyncio.gather(*asked)
    assert embedder.counts.texts == 1
