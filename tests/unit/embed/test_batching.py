import asyncio

import numpy as np
import pytest

from service.embed.batching import Batcher
from service.embed.embedder import of_like_length
from service.embed.vectors import TextTooLong
from service.errors import Code, SemcacheError


class Model:
    """Gives the length of a text as its vector, and runs each batch only when it is let."""

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error = None

    async def embed(self, texts):
        self.batches.append(list(texts))
        await self.gate.wait()
        if self.error:
            raise self.error
        return [TextTooLong(9, 5) if len(text) > 5 else np.array([len(text)], np.float32) for text in texts]


def everything(texts):
    return texts


async def turns():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
async def batcher(model):
    batcher = Batcher(model.embed, everything)
    yield batcher
    await batcher.close()


async def test_an_idle_embedder_takes_a_text_at_once(model, batcher):
    model.gate.clear()
    waiting = asyncio.create_task(batcher.embed("a"))
    await turns()
    assert model.batches == [["a"]]
    model.gate.set()
    assert (await waiting).tolist() == [1]


async def test_texts_that_come_while_a_batch_runs_are_the_next_batch(model, batcher):
    model.gate.clear()
    first = asyncio.create_task(batcher.embed("a"))
    await turns()
    others = [asyncio.create_task(batcher.embed(text)) for text in ("bb", "ccc", "dddd")]
    await turns()
    model.gate.set()
    vectors = await asyncio.gather(first, *others)
    assert model.batches == [["a"], ["bb", "ccc", "dddd"]]
    assert [vector.tolist() for vector in vectors] == [[1], [2], [3], [4]]
    assert (batcher.counts.batches, batcher.counts.texts) == (2, 4)


async def test_equal_texts_in_flight_are_embedded_once_whether_waiting_or_running(model, batcher):
    model.gate.clear()
    running = [asyncio.create_task(batcher.embed("a")) for _ in range(2)]
    await turns()
    late = [asyncio.create_task(batcher.embed(text)) for text in ("a", "bb", "bb")]
    await turns()
    model.gate.set()
    await asyncio.gather(*running, *late)
    assert model.batches == [["a"], ["bb"]]
    assert batcher.counts.coalesced == 3


async def test_a_cancelled_waiter_does_not_take_the_vector_from_the_others(model, batcher):
    model.gate.clear()
    leader, follower = (asyncio.create_task(batcher.embed("a")) for _ in range(2))
    await turns()
    leader.cancel()
    await turns()
    model.gate.set()
    assert (await follower).tolist() == [1]


async def test_a_text_that_nobody_waits_for_any_more_is_not_embedded(model, batcher):
    model.gate.clear()
    first = asyncio.create_task(batcher.embed("a"))
    await turns()
    given_up, kept = (asyncio.create_task(batcher.embed(text)) for text in ("bb", "ccc"))
    await turns()
    given_up.cancel()
    model.gate.set()
    await asyncio.gather(first, kept)
    assert model.batches == [["a"], ["ccc"]]
    assert (await batcher.embed("bb")).tolist() == [2]


async def test_one_text_that_is_too_long_fails_alone(batcher):
    short, long = await asyncio.gather(batcher.embed("a"), batcher.embed("a" * 9), return_exceptions=True)
    assert short.tolist() == [1]
    assert isinstance(long, TextTooLong)


@pytest.mark.parametrize("error", [SemcacheError(Code.EMBEDDER_UNAVAILABLE, "down"), RuntimeError("a prompt's text")])
async def test_a_failed_batch_fails_its_texts_and_not_the_next_one(model, batcher, error, caplog):
    model.error = error
    with pytest.raises(SemcacheError) as failure:
        await batcher.embed("a")
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE
    assert "prompt" not in failure.value.detail
    model.error = None
    assert (await batcher.embed("a")).tolist() == [1]


async def test_no_more_batches_run_at_once_than_allowed(model):
    batcher = Batcher(model.embed, lambda texts: texts[:1], concurrency=2)
    model.gate.clear()
    waiting = [asyncio.create_task(batcher.embed("x" * size)) for size in range(1, 6)]
    await turns()
    assert len(model.batches) == 2
    model.gate.set()
    await asyncio.gather(*waiting)
    assert len(model.batches) == 5


async def test_who_waits_when_it_is_closed_is_told(model, batcher):
    model.gate.clear()
    running, queued = (asyncio.create_task(batcher.embed(text)) for text in ("a", "bb"))
    await turns()
    await batcher.close()
    for task in (running, queued):
        with pytest.raises(SemcacheError, match="closed"):
            await task


async def test_many_tasks_with_cancellations_all_get_their_own_vector(model):
    batcher = Batcher(model.embed, lambda texts: texts[:7], concurrency=3)
    tasks = [asyncio.create_task(batcher.embed("x" * (1 + number % 5))) for number in range(400)]
    await turns()
    for task in tasks[::3]:
        task.cancel()
    for number, outcome in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
        if not isinstance(outcome, asyncio.CancelledError):
            assert outcome.tolist() == [1 + number % 5]
    await batcher.close()


def test_a_local_batch_holds_the_oldest_text_and_those_about_as_long():
    texts = ["x" * 40, "y" * 400, "z" * 45, "w" * 4000, "v" * 38]
    assert set(of_like_length(texts, 32)) == {texts[0], texts[2], texts[4]}
    assert of_like_length(texts, 1) == [texts[0]]
    assert of_like_length(texts[3:], 32) == ["w" * 4000]
    assert of_like_length(["", "x" * 2000], 8) == [""]


def test_the_oldest_text_is_chosen_however_many_are_equally_long():
    texts = [f"{number:05}" for number in range(100)]
    assert texts[0] in of_like_length(texts, 8)
