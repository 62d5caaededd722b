"""The console: one page and its files, which load nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from service.resources import console_dir

# Trusted types make the browser refuse markup that is made of text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


class _Files(StaticFiles):
    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers.update(HEADERS)
        return response


def install(app: FastAPI) -> None:
    """Serve the page at /console. Its links are relative, so that it works below a path of a proxy too."""
    files = _Files(directory=console_dir())

    @app.get("/console", include_in_schema=False)
    async def _page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    @app.get("/console/", include_in_schema=False)
    async def _without_slash() -> Response:
        return RedirectResponse("../console")

    app.mount("/console", files)


__all__ = ["install"]
