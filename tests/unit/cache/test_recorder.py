import asyncio

from service.cache.recorder import Recorder, Request
from service.store.database import Database, Limits
from service.store.rows import TenantId
from service.telemetry.metrics import Metrics


async def test_an_answer_goes_out_before_its_request_is_noted() -> None:
    metrics, done = Metrics(), []
    recorder = Recorder(Database("postgresql://nowhere", Limits()), metrics, interval=1.0)

    def row() -> Request:
        done.append("noted")
        return Request(TenantId(1), 1, "hit", "same_request", 0.2)

    recorder.note(row)
    done.append("answered")
    await asyncio.sleep(0)
    assert done == ["answered", "noted"]
    assert recorder.waiting == 1
    assert (
        metrics.registry.get_sample_value("semcache_lookups_total", {"outcome": "hit", "reason": "same_request"}) == 1
    )
