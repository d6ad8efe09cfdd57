"""The server: resources to read, live questions, and the built page, all from one origin.

>>> app = create_app(Lab.open(shipped_runs()))
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

import bindscope
from bindscope.errors import BindscopeError
from bindscope.web.body import Problem, encode
from bindscope.web.lab import Lab, Missing
from bindscope.web.live import Superseded, Worker
from bindscope.web.page import BYTES, JSON, SVG, Operation, Page, Resource
from bindscope.web.pages import PAGES
from bindscope.web.security import LOOPBACK, Guard
from bindscope.web.stored import Stored

STATUS = {Missing: 404, Superseded: 409}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 403, 404, 409, 411, 413, 415, 421, 422)
}
PARAMETER = PathParameter(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
Slot = Annotated[str, Header(alias="X-Slot", max_length=100)]


def create_app(lab: Lab, pages: tuple[Page, ...] = PAGES, hosts: tuple[str, ...] = LOOPBACK) -> FastAPI:
    """The whole application on one lab."""
    stored, worker = Stored(lab), Worker(lab)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()

    app = FastAPI(
        title="Bindscope", version=bindscope.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json",
    )  # fmt: skip
    app.state.lab, app.state.stored, app.state.worker = lab, stored, worker
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=5)
    app.add_middleware(Guard, hosts=hosts)
    app.add_exception_handler(BindscopeError, _explain)
    app.add_exception_handler(RequestValidationError, _explain_request)
    for page in pages:
        for resource in page.resources:
            _add_resource(app, resource, stored)
        for operation in page.operations:
            _add_operation(app, operation, worker)
    _add_page(app)
    return app


def static_directory() -> Path:
    """Where the built page lies."""
    return Path(str(files("bindscope.web"))) / "static"


def _add_resource(app: FastAPI, resource: Resource, stored: Stored) -> None:
    async def read(request: Request, **parameters: str) -> Response:
        content = await run_in_threadpool(stored.read, resource, parameters)
        tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=resource.media, headers=headers)

    own = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[str, PARAMETER])
        for name in resource.names
    ]
    _set_signature(
        read, [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request), *own]
    )
    described = (
        {"response_model": resource.model} if resource.media == JSON else {"response_class": RESPONSES[resource.media]}
    )
    app.add_api_route(
        f"/api/{resource.path}", read, summary=resource.summary, responses=PROBLEMS, **described,  # type: ignore[arg-type]
    )  # fmt: skip


def _add_operation(app: FastAPI, operation: Operation, worker: Worker) -> None:
    async def ask(question: Any, x_slot: Slot = "") -> Response:
        if not operation.streamed:
            return Response(await worker.answer(operation, question, x_slot), media_type=JSON)
        lines = worker.stream(operation, question, x_slot)
        first = await anext(lines)  # a refusal is still an ordinary one here
        return StreamingResponse(_explain_midway(first, lines), media_type="application/x-ndjson")

    slot = inspect.Parameter("x_slot", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Slot, default="")
    question = inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=operation.question)
    _set_signature(ask, [question, slot])
    from bindscope.web.body import Body

    app.add_api_route(
        f"/api/live/{operation.name}", ask, methods=["POST"], summary=operation.summary, responses=PROBLEMS,
        response_model=Body,
    )  # fmt: skip


async def _explain_midway(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What goes wrong after the first line is one more line that says so."""
    yield first
    try:
        async for line in lines:
            yield line
    except BindscopeError as problem:
        yield encode({"error": str(problem)}) + b"\n"


def _set_signature(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def _add_page(app: FastAPI) -> None:
    folder = static_directory()
    if not (folder / "index.html").is_file():
        return
    app.mount("/assets", StaticFiles(directory=folder / "assets"), name="assets")

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(folder / "index.html", headers={"Cache-Control": "no-cache"})


class SvgResponse(Response):
    media_type = SVG


class BytesResponse(Response):
    media_type = BYTES


RESPONSES: dict[str, type[Response]] = {SVG: SvgResponse, BYTES: BytesResponse}


async def _explain(request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"error": str(problem)}, STATUS.get(type(problem), 400))


async def _explain_request(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    first = problem.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse({"error": f"{where}: {first['msg']}."}, 422)
