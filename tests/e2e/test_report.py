"""`pgsemcache report` on a log that a service wrote."""

from __future__ import annotations

import json
from pathlib import Path

from processes import run
from running import Service


def test_the_report_says_what_was_asked(service: Service, database_url: str, tmp_path: Path) -> None:
    cache = "/v1/caches/default/entries"
    service.http.post(cache, json={"prompt": "Where is order 17?", "response": "Here."})
    for prompt in ("Where is order 17?", "Where is order 17?", "How do I fold a napkin?"):
        assert service.http.post(f"{cache}/search", json={"prompt": prompt}).status_code == 200
    service.http.get("/v1/caches/default/stats")  # which writes the log
    target = ("--database-url", database_url)
    status, out, err = run(
        "pgsemcache", "report", *target, "--json", str(tmp_path / "r.json"), "--plots", str(tmp_path / "plots")
    )
    assert (status, err) == (0, "")
    assert "3 requests, 2 distinct" in out
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["rates"]["hits"] == found["rates"]["exact_hits"] == 2 / 3
    assert found["rates"]["repeated"] == 1 / 3
    assert found["texts"]["prompts"] == 1
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"lengths.png", "thresholds.png", "budget.png"}
    assert found["curve"]["footprint"] > 2 * 1024, "entries with all that limits count of them"
    status, _, err = run("pgsemcache", "report", *target, "--cache", "other")
    assert (status, "no cache has this name" in err) == (1, True)
    status, _, err = run("pgsemcache", "report", *target, "--since", "yesterday")
    assert (status, err) == (1, "pgsemcache: --since: must be a number with d, h or m: 7d, 12h, 30m\n")
