"""The console's files, as they are served."""

from __future__ import annotations

import re

import httpx
import pytest
from calls import assert_problem

from service.errors import Code
from service.resources import console_dir

FILES = sorted(path.name for path in console_dir().iterdir())


def test_the_page_is_at_console_with_and_without_a_slash(http: httpx.Client) -> None:
    assert "<html" in http.get("/console").text
    assert http.get("/console/", follow_redirects=True).url.path == "/console"


@pytest.mark.parametrize("path", ["", *(f"/{name}" for name in FILES)])
def test_every_file_comes_with_a_policy_that_lets_nothing_else_in(http: httpx.Client, path: str) -> None:
    got = http.get(f"/console{path}")
    policy = dict(part.strip().partition(" ")[::2] for part in got.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.status_code == 200
    known = http.get(f"/console{path}", headers={"if-none-match": got.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_place(name: str) -> None:
    text = (console_dir() / name).read_text()
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|<style|\bstyle=|\bon\w+=\"", text)
        == []
    )


def test_every_file_is_used() -> None:
    texts = "".join((console_dir() / name).read_text() for name in FILES)
    assert [name for name in FILES if name != "index.html" and f"/{name}" not in texts] == []


@pytest.mark.parametrize("path", ["nothing.js", "../settings.py", "..%2fsettings.py", "%2e%2e/settings.py"])
def test_nothing_beside_them_is_served(http: httpx.Client, path: str) -> None:
    assert_problem(http.get(f"/console/{path}"), Code.ROUTE_NOT_FOUND)
