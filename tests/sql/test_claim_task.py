from __future__ import annotations

from uuid import UUID, uuid4

from sessions import Session

from service.store.queries import query

ME, OTHER = uuid4(), uuid4()


def claim(worker: Session, holder: UUID, seconds: float = 60) -> float | None:
    wait: float | None = worker.call("claim_task", name="sweep", holder=holder, seconds=seconds)
    return wait


def end(worker: Session, holder: UUID, outcome: str, interval: float = 100) -> None:
    worker.rows(query("end_task"), name="sweep", holder=holder, outcome=outcome, detail="{}", interval=interval)


def task(worker: Session) -> dict[str, object]:
    (row,) = worker.rows("select *, extract(epoch from next_due - now())::float8 as due_in from semcache.task")
    return row


def test_a_task_is_done_by_one_and_then_not_due(worker: Session) -> None:
    assert claim(worker, ME) is None
    wait = claim(worker, OTHER)
    assert wait is not None
    assert 50 < wait <= 60
    end(worker, ME, "done")
    wait = claim(worker, OTHER)
    assert wait is not None
    assert 85 < wait <= 110
    assert task(worker)["outcome"] == "done"


def test_a_lease_that_ran_out_passes_on_and_counts_as_a_failure(worker: Session) -> None:
    assert claim(worker, ME, 0) is None
    assert claim(worker, OTHER) is None
    assert (task(worker)["holder"], task(worker)["failures"]) == (OTHER, 1)


def test_who_lost_the_lease_can_neither_renew_nor_end(worker: Session) -> None:
    claim(worker, ME, 0)
    claim(worker, OTHER)
    assert worker.rows(query("renew_task"), name="sweep", holder=ME, seconds=60) == []
    end(worker, ME, "done")
    assert task(worker)["outcome"] == "running"
    assert len(worker.rows(query("renew_task"), name="sweep", holder=OTHER, seconds=60)) == 1


def test_each_failure_doubles_the_wait_and_a_success_ends_that(worker: Session) -> None:
    for failures, wait in ((1, 200), (2, 400), (3, 800)):
        worker.rows("update semcache.task set next_due = now() returning 1")
        assert claim(worker, ME) is None
        end(worker, ME, "failed")
        row = task(worker)
        assert row["failures"] == failures
        assert wait * 0.89 < row["due_in"] < wait * 1.11  # type: ignore[operator]
    worker.rows("update semcache.task set next_due = now() returning 1")
    claim(worker, ME)
    end(worker, ME, "done")
    assert task(worker)["failures"] == 0


def test_a_wait_is_an_hour_at_most(worker: Session) -> None:
    claim(worker, ME)
    worker.rows("update semcache.task set failures = 30 returning 1")
    end(worker, ME, "failed")
    assert 3200 < task(worker)["due_in"] < 4000  # type: ignore[operator]


def test_a_stopped_task_is_due_at_once(worker: Session) -> None:
    claim(worker, ME)
    end(worker, ME, "stopped")
    assert claim(worker, OTHER) is None
    assert task(worker)["failures"] == 0
