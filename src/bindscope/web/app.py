"""The server: resources to read, live questions, and the built page, all from one origin.

>>> app = create_app(Lab.open(shipped_runs()))
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import bindscope
from bindscope.errors import BindscopeError
from bindscope.web import beside
from bindscope.web.body import encode
from bindscope.web.cancel import Superseded
from bindscope.web.lab import Lab, Missing, NotMeasured
from bindscope.web.live import Busy, Worker
from bindscope.web.memory import share_arenas
from bindscope.web.page import JSON, Page
from bindscope.web.pages import PAGES
from bindscope.web.routes import add_opening, add_operation, add_resource, add_work
from bindscope.web.security import LOOPBACK, Guard
from bindscope.web.stored import Stored
from bindscope.web.warm import warm_up
from bindscope.web.work import Begin, LongWork

STATUS: dict[type[Exception], int] = {Missing: 404, NotMeasured: 404, Superseded: 409, Busy: 429}


def create_app(
    lab: Lab,
    pages: tuple[Page, ...] = PAGES,
    hosts: tuple[str, ...] = LOOPBACK,
    *,
    opens_directories: bool = False,
    starts_work: bool = False,
    begin: Begin = beside.begin,
) -> FastAPI:
    """The whole application on one lab. ``begin`` is how long work becomes a process, where any may be started."""
    stored, worker, work = Stored(lab), Worker(lab), LongWork(lab, begin)
    lab.opens_directories, lab.starts_work = opens_directories, starts_work and lab.live

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        share_arenas()
        worker.open()
        warm_up(lab, stored, worker, pages)
        yield
        worker.close()
        await run_in_threadpool(work.close)

    app = FastAPI(
        title="Bindscope", version=bindscope.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    app.state.lab, app.state.stored, app.state.worker = lab, stored, worker
    app.state.work = work
    streamed = {f"/api/live/{asked.name}" for page in pages for asked in page.operations if asked.streamed}
    app.add_middleware(Compression, streamed=frozenset(streamed))
    app.add_middleware(HeadAsGet)
    app.add_middleware(Guard, hosts=hosts)
    for problem, explain in ((BindscopeError, _explain), (RequestValidationError, _explain_request),
                             (HTTPException, _explain_status), (Exception, _explain_failure)):  # fmt: skip
        app.add_exception_handler(problem, explain)
    for page in pages:
        for resource in page.resources:
            add_resource(app, resource, stored)
        for operation in page.operations:
            add_operation(app, operation, worker)
    add_opening(app, lab)
    add_work(app, work)
    _add_page(app)
    return app


def static_directory() -> Path:
    """Where the built page lies."""
    return Path(str(files("bindscope.web"))) / "static"


def _add_page(app: FastAPI) -> None:
    folder = static_directory()
    if not (folder / "index.html").is_file():
        return
    app.mount("/assets", Assets(directory=folder / "assets"), name="assets")

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(folder / "index.html", headers={"Cache-Control": "no-cache"})


class Assets(StaticFiles):
    """The parts of the built page: each has the hash of its content in its name, so it never changes."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


class Compression(GZipMiddleware):
    """Compresses what is sent whole; lines of a streamed answer go out as they are, each at once."""

    def __init__(self, app: ASGIApp, streamed: frozenset[str]) -> None:
        super().__init__(app, minimum_size=2000, compresslevel=5)
        self.streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passes = scope["type"] != "http" or scope["path"] in self.streamed
        await (self.app if passes else super().__call__)(scope, receive, send)


class HeadAsGet:
    """HEAD is answered as GET is, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, send_head)


async def _explain(request: Request, problem: Exception) -> Response:
    sentence = request.app.state.lab.without_paths(str(problem))
    return _problem(sentence, STATUS.get(type(problem), 400))


async def _explain_request(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    first = problem.errors()[0]
    where = ".".join(str(part)[:40] for part in first["loc"] if part != "body")
    return _problem(f"{where}: {first['msg']}." if where else f"{first['msg']}.", 422)


async def _explain_status(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    sentence = "there is nothing at this address." if problem.status_code == 404 else f"{problem.detail}."
    return _problem(sentence, problem.status_code, dict(problem.headers or {}))


async def _explain_failure(request: Request, problem: Exception) -> Response:
    return _problem("Bindscope failed at this, which is its own fault; the terminal it was started in says more.", 500)


def _problem(sentence: str, status: int, headers: dict[str, str] | None = None) -> Response:
    readable = sentence.encode("utf-8", "replace").decode()  # JSON can hold halves of characters, an answer cannot
    return Response(encode({"error": readable}), status, headers, JSON)
