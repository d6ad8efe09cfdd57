"""How resources and operations become addresses, with the description from which the page's types are made."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Request
from fastapi import Path as PathParameter
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive

from bindscope.errors import BindscopeError
from bindscope.web.body import Body, Problem, encode
from bindscope.web.cancel import Superseded
from bindscope.web.lab import Lab
from bindscope.web.live import Worker
from bindscope.web.opening import OpenedRun, OpenQuestion, open_directory, refuse_opening
from bindscope.web.page import BYTES, JSON, LONGEST, PARAMETER, SVG, Operation, Resource
from bindscope.web.stored import Stored
from bindscope.web.work import (
    LongWork,
    MeasureQuestion,
    ResumeQuestion,
    StopQuestion,
    TrainQuestion,
    Work,
    WorkList,
    refuse_work,
)

LINES = "application/x-ndjson"
Problems = dict[int | str, dict[str, Any]]
WHEN_READING = {
    400: "It cannot be made of this run",
    403: "It was asked by a page of another site",
    404: "There is no such run or step",
    421: "It was asked under a name that is not this server's",
    422: "The question is not as described",
}
WHEN_ASKING = WHEN_READING | {
    409: "A newer question took its place",
    413: "The question is too long",
    415: "The question is not JSON",
    429: "Too many questions wait",
}
InAddress = Annotated[str, PathParameter(max_length=LONGEST, pattern=f"^{PARAMETER}$")]
Slot = Annotated[str, Header(alias="X-Slot", max_length=100)]
STREAMED: Problems = {
    200: {
        "description": "Lines of JSON: a Body first, then parts {at, variables} with the values from index `at` on, "
        "or {error} if something goes wrong midway.",
        "content": {LINES: {"schema": {"type": "string"}}},
    }
}
T = TypeVar("T")


def add_resource(app: FastAPI, resource: Resource, stored: Stored) -> None:
    """GET /api/PATH."""

    async def read(request: Request, **parameters: str) -> Response:
        content = await run_in_threadpool(stored.read, resource, parameters)
        tag = hashlib.sha256(content).hexdigest()[:20]
        headers = {"ETag": f'W/"{tag}"', "Cache-Control": "no-cache"}
        if holds_tag(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=resource.media, headers=headers)

    own = [_parameter(name, InAddress) for name in resource.names]
    _set_signature(read, [_parameter("request", Request), *own])
    described: dict[str, Any] = (
        {"response_model": resource.model} if resource.media == JSON else {"response_class": RESPONSES[resource.media]}
    )
    app.add_api_route(
        f"/api/{resource.path}", read, summary=resource.summary, responses=describe_problems(WHEN_READING, resource.media),
        operation_id=f"read_{_words(resource.path)}", **described,
    )  # fmt: skip


def add_operation(app: FastAPI, operation: Operation, worker: Worker) -> None:
    """POST /api/live/NAME."""

    async def ask(request: Request, question: Any, x_slot: Slot = "") -> Response:
        if not worker.lab.live:
            raise BindscopeError("this server only shows what is stored: it was started without live questions.")
        asked = operation.read(question)
        if not operation.streamed:
            answer = worker.answer(operation, asked, x_slot)
            return Response(await while_connected(request.receive, answer), media_type=JSON)
        lines = worker.stream(operation, asked, x_slot)
        first = await while_connected(request.receive, anext(lines))  # a refusal is still an ordinary one here
        return StreamingResponse(_explain_midway(worker.lab, first, lines), media_type=LINES)

    slot = _parameter("x_slot", Slot, default="")
    _set_signature(ask, [_parameter("request", Request), _parameter("question", operation.request), slot])
    described: dict[str, Any] = (
        {"responses": describe_problems(WHEN_ASKING, LINES) | STREAMED, "response_class": StreamingResponse}
        if operation.streamed
        else {"responses": describe_problems(WHEN_ASKING), "response_model": Body}
    )
    app.add_api_route(
        f"/api/live/{operation.name}", ask, methods=["POST"], summary=operation.summary,
        operation_id=f"ask_{_words(operation.name)}", **described,
    )  # fmt: skip


def add_opening(app: FastAPI, lab: Lab) -> None:
    """POST /api/open: show one more run."""

    async def open_run(request: Request, question: OpenQuestion) -> OpenedRun:
        refuse_opening(lab, request)
        return await run_in_threadpool(open_directory, lab, question.path)

    app.add_api_route(
        "/api/open", open_run, methods=["POST"], summary="Show the run in a directory of this machine",
        responses=describe_problems(WHEN_ASKING), operation_id="open_run",
    )  # fmt: skip


def add_work(app: FastAPI, work: LongWork) -> None:
    """GET /api/work.json, and what starts and stops it."""

    async def list_work() -> WorkList:
        return work.list()

    async def measure(request: Request, question: MeasureQuestion) -> Work:
        refuse_work(work.lab, request)
        return await run_in_threadpool(work.measure, question.run, question.results)

    async def train(request: Request, question: TrainQuestion) -> Work:
        refuse_work(work.lab, request)
        return await run_in_threadpool(work.train, question.preset, question.name, question.seed)

    async def resume(request: Request, question: ResumeQuestion) -> Work:
        refuse_work(work.lab, request)
        return await run_in_threadpool(work.resume, question.run)

    async def stop_work(request: Request, question: StopQuestion) -> Work:
        refuse_work(work.lab, request)
        return await run_in_threadpool(work.stop, question.kind)

    app.add_api_route(
        "/api/work.json", list_work, summary="What is measured and trained now, or was last",
        responses=describe_problems(WHEN_READING), operation_id="list_work",
    )  # fmt: skip
    for start, summary in (
        (measure, "Measure results of a run that are missing"),
        (train, "Train a preset under ./runs"),
        (resume, "Go on with a run that was interrupted"),
        (stop_work, "Stop what is measured or trained"),
    ):
        app.add_api_route(
            f"/api/{start.__name__.removesuffix('_work')}", start, methods=["POST"], summary=summary,
            responses=describe_problems(WHEN_ASKING), operation_id=start.__name__,
        )  # fmt: skip


def describe_problems(sentences: Mapping[int, str], media: str = JSON) -> Problems:
    """What can go wrong, by status. It is told in JSON, whatever media the answer itself would have had."""
    told: dict[str, Any] = {"model": Problem}
    if media != JSON:
        told = {"content": {JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {status: {"description": sentence, **told} for status, sentence in sentences.items()}


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """What the work gives; when who asked leaves before it is done, it is cancelled."""

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def do() -> T:
        return await work

    asked, left = asyncio.ensure_future(do()), asyncio.ensure_future(leave())
    try:
        await asyncio.wait({asked, left}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Superseded("who asked has left.")
        return asked.result()
    finally:
        asked.cancel()
        left.cancel()


def holds_tag(header: str, tag: str) -> bool:
    """Whether an If-None-Match header names this tag.

    >>> holds_tag('W/"abc", "def"', "def")
    True
    """
    return header.strip() == "*" or tag in re.findall(r'"([^"]*)"', header)


async def _explain_midway(lab: Lab, first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What goes wrong after the first line is one more line that says so."""
    async with aclosing(lines):  # type: ignore[type-var]
        yield first
        try:
            async for line in lines:
                yield line
        except BindscopeError as problem:
            yield encode({"error": lab.without_paths(str(problem))}) + b"\n"


class SvgResponse(Response):
    media_type = SVG


class BytesResponse(Response):
    media_type = BYTES


RESPONSES: dict[str, type[Response]] = {SVG: SvgResponse, BYTES: BytesResponse}


def _parameter(name: str, annotation: Any, **more: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, **more)


def _set_signature(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def _words(path: str) -> str:
    """A path as a name: ``runs/{run}/run.json`` → ``runs_run_run``."""
    return "_".join(re.findall(r"[A-Za-z0-9]+", re.sub(r"\.[a-z]+$", "", path)))
