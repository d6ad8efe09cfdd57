"""Live questions: one at a time, kept by content, cancelled when nobody waits for the answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from fastapi import FastAPI

from bindscope.errors import BindscopeError
from bindscope.questions.fields import one_step
from bindscope.questions.opened import Step
from bindscope.questions.question import RunQuestion
from bindscope.questions.question import ask as ask_for
from bindscope.web.app import create_app
from bindscope.web.cancel import Superseded
from bindscope.web.lab import Lab, LabRun
from bindscope.web.live import N_WAITING, Answers, Busy, Worker
from bindscope.web.page import Operation, Page
from web.requests import HOST, Reply, ask, request


@dataclass(frozen=True, kw_only=True)
class Wish(RunQuestion):
    """How long it takes, and whether it fails."""

    parts: int = ask_for(1, help="How many parts it has.")
    fail: str = ask_for("", help="With which sentence it fails.")
    step: Step = one_step()  # noqa: RUF009


class Slow:
    """An operation that counts how often it is asked and how far it got, and waits at each part until it may go on."""

    def __init__(self) -> None:
        self.begun, self.parts = 0, 0
        self.may_go_on, self.at_work = threading.Event(), threading.Event()
        self.whole = Operation("slow", Wish, self.answer, "Waits", ("parts", "fail"))
        self.streamed = Operation("drip", Wish, self.stream, "Drips", ("parts", "fail"), streamed=True)

    def answer(self, lab: Lab, run: LabRun, question: Wish) -> dict[str, Any]:
        self.begun += 1
        if question.fail:
            raise BindscopeError(question.fail)
        for _ in range(question.parts):
            self.at_work.set()
            assert self.may_go_on.wait(10)
            run.model(run.run.steps[-1])  # where work from checkpoint to checkpoint ends when nobody waits
            self.parts += 1
        return {"begun": self.begun}

    def stream(self, lab: Lab, run: LabRun, question: Wish) -> Iterator[dict[str, Any]]:
        self.begun += 1
        yield {"body": self.begun}
        for index in range(question.parts):
            self.at_work.set()
            assert self.may_go_on.wait(10)
            self.parts += 1
            yield {"at": index}
        if question.fail:
            raise BindscopeError(question.fail)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def page(slow: Slow, lab: Lab) -> FastAPI:
    return create_app(lab, (Page("slow", operations=(slow.whole, slow.streamed)),))


def post(
    app: FastAPI,
    name: str,
    slot: str = "",
    leave: asyncio.Event | None = None,
    reply: Reply | None = None,
    **wish: object,
) -> Any:
    body = orjson.dumps({"run": "small", **wish})
    headers = [("Host", HOST), ("Content-Type", "application/json"), ("X-Slot", slot), ("Accept-Encoding", "gzip")]
    return request(app, "POST", f"/api/live/{name}", headers, [body], leave, reply)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to that")


def test_an_answer_is_made_once_for_the_same_question_and_weights(slow: Slow, page: FastAPI) -> None:
    slow.may_go_on.set()
    first, again = (asyncio.run(post(page, "slow", slot)) for slot in ("a", "b"))
    assert (first.status, slow.begun) == (200, 1)
    assert first.body == again.body
    assert asyncio.run(post(page, "slow", parts=2)).body != first.body
    assert slow.begun == 2


def test_a_streamed_answer_is_kept_too_and_read_again_whole(slow: Slow, page: FastAPI) -> None:
    slow.may_go_on.set()
    first, again = (asyncio.run(post(page, "drip", parts=3)) for _ in range(2))
    assert [orjson.loads(line) for line in first.body.splitlines()] == [{"body": 1}, {"at": 0}, {"at": 1}, {"at": 2}]
    assert (again.body, slow.begun) == (first.body, 1)


def test_other_weights_are_another_question(slow: Slow, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(lab)
    before = worker._key(slow.whole, Wish(run="small"))
    monkeypatch.setattr(LabRun, "checkpoint_hash", lambda run, step: "other")
    assert worker._key(slow.whole, Wish(run="small")) != before


def test_a_newer_question_of_the_same_panel_takes_the_place_of_the_older(slow: Slow, page: FastAPI) -> None:
    async def scene() -> tuple[Reply, Reply]:
        older = asyncio.create_task(post(page, "slow", "panel", parts=5))
        await until(slow.at_work.is_set)
        newer = asyncio.create_task(post(page, "slow", "panel", parts=1))
        await asyncio.sleep(0.05)
        slow.may_go_on.set()
        return await older, await newer

    older, newer = asyncio.run(scene())
    assert (older.status, newer.status) == (409, 200)
    assert "newer question" in older.error
    assert slow.parts == 1  # the older one got no further


def test_a_question_that_still_waits_is_never_begun_once_superseded(slow: Slow, page: FastAPI) -> None:
    async def scene() -> list[Reply]:
        busy = asyncio.create_task(post(page, "slow", "elsewhere"))
        await until(slow.at_work.is_set)
        tasks = [busy]
        for parts in (2, 3, 4):
            tasks.append(asyncio.create_task(post(page, "slow", "panel", parts=parts)))
            await asyncio.sleep(0.02)
        slow.may_go_on.set()
        return [await task for task in tasks]

    assert [reply.status for reply in asyncio.run(scene())] == [200, 409, 409, 200]
    assert slow.begun == 2


def test_different_panels_do_not_disturb_each_other(slow: Slow, page: FastAPI) -> None:
    async def scene() -> list[Reply]:
        slow.may_go_on.set()
        return await asyncio.gather(*(post(page, "slow", f"panel-{n}", parts=n) for n in range(1, 5)))

    assert [reply.status for reply in asyncio.run(scene())] == [200] * 4


@pytest.mark.parametrize("name", ["slow", "drip"])
def test_work_ends_when_the_reader_leaves(name: str, slow: Slow, page: FastAPI) -> None:
    async def scene() -> None:
        leave = asyncio.Event()
        asked = asyncio.create_task(post(page, name, leave=leave, parts=5))
        await until(slow.at_work.is_set)
        leave.set()
        await asyncio.wait_for(asked, 5)  # nobody is kept waiting by work that nobody reads
        slow.may_go_on.set()
        await until(lambda: not page.state.worker._asked)
        await post(page, "slow")  # the worker is free again

    asyncio.run(scene())
    assert slow.parts <= 2  # the part it was at, and the one of the last question
    assert len(page.state.worker._slots) == 0


def test_parts_reach_the_reader_as_they_are_made(slow: Slow, page: FastAPI) -> None:
    async def scene() -> Reply:
        reply = Reply()
        asked = asyncio.create_task(post(page, "drip", reply=reply, parts=1))
        await until(lambda: reply.body == b'{"body":1}\n')
        assert not asked.done()
        slow.may_go_on.set()
        return await asked

    reply = asyncio.run(scene())
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    assert "content-encoding" not in reply.headers
    assert reply.parts == [b'{"body":1}\n', b'{"at":0}\n']


def test_what_goes_wrong_midway_is_said_in_the_last_line_and_not_kept(slow: Slow, page: FastAPI) -> None:
    slow.may_go_on.set()
    for n in (1, 2):
        reply = asyncio.run(post(page, "drip", fail="the weights are damaged."))
        assert orjson.loads(reply.body.splitlines()[-1]) == {"error": "the weights are damaged."}
        assert slow.begun == n


def test_a_refusal_of_the_work_is_a_sentence(slow: Slow, page: FastAPI) -> None:
    reply = asyncio.run(post(page, "slow", fail="that cannot be patched."))
    assert (reply.status, reply.error) == (400, "that cannot be patched.")


PAIR = {"run": "small", "program": "a=5;b=a;c=3;#b:", "counterfactual": "a=7;b=a;c=3;#b:"}
LONG: dict[str, dict[str, Any]] = {
    "patch": {**PAIR, "steps": [0, 4, 8, 12], "sites": ["L1.resid_pre@2"]},
    "predict": {"run": "small", "program": PAIR["program"], "steps": [0, 4, 8, 12]},
    "edges": {"run": "small", "step": 12, "n": 8},
}


@pytest.mark.parametrize("name", sorted(LONG))
def test_a_real_question_runs_no_model_after_its_reader_has_left(
    name: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it goes over all checkpoints, as one cell followed through training does, or asks one model many times."""
    from bindscope.web.pages import PAGES

    operation = next(each for page in PAGES for each in page.operations if each.name == name)
    question = operation.read(operation.request(**LONG[name]))
    worker, ran = Worker(lab), list[int]()
    load = lab.find("small").run.checkpoint

    def counted(step: int) -> Any:
        model = load(step)
        model.register_forward_hook(lambda *_: (ran.append(step), worker.close())[1])  # the reader leaves after one run
        return model

    monkeypatch.setattr(type(lab.find("small").run), "checkpoint", lambda run, step: counted(step))

    async def scene() -> None:
        if operation.streamed:
            async for _ in worker.stream(operation, question):
                pass
        else:
            await worker.answer(operation, question)

    with pytest.raises(Superseded):
        asyncio.run(scene())
    assert len(ran) == 1


def test_too_many_questions_are_refused_and_a_panel_that_already_waits_is_not(slow: Slow, lab: Lab) -> None:
    async def scene() -> None:
        worker = Worker(lab)
        tasks = [
            asyncio.create_task(worker.answer(slow.whole, Wish(run="small", parts=n), f"panel-{n}"))
            for n in range(1, N_WAITING + 1)
        ]
        await until(lambda: len(worker._asked) == N_WAITING)
        with pytest.raises(Busy):
            await worker.answer(slow.whole, Wish(run="small"), "one more")
        again = asyncio.create_task(worker.answer(slow.whole, Wish(run="small", parts=999), "panel-7"))
        await asyncio.sleep(0.02)
        assert not again.done()
        for task in (*tasks, again):
            task.cancel()
        slow.may_go_on.set()
        await asyncio.gather(*tasks, again, return_exceptions=True)
        assert not worker._asked
        assert not worker._slots
        worker.close()

    asyncio.run(scene())


def test_one_panel_alone_cannot_fill_the_memory_with_questions(slow: Slow, lab: Lab) -> None:
    async def scene() -> None:
        worker = Worker(lab)
        asked = [worker.answer(slow.whole, Wish(run="small", parts=n), "panel") for n in range(1, 3 * N_WAITING)]
        tasks = [asyncio.create_task(each) for each in asked]
        await until(lambda: any(task.done() for task in tasks))
        assert len(worker._asked) <= 2 * N_WAITING
        slow.may_go_on.set()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(end, Busy) for end in ends) == len(tasks) - 2 * N_WAITING
        worker.close()

    asyncio.run(scene())


def test_answers_forget_the_oldest_first_and_never_exceed_their_memory() -> None:
    answers = Answers(limit=10)
    for name in "abc":
        answers.keep(name, b"1234")
    assert [answers.find(name) for name in "abc"] == [None, b"1234", b"1234"]
    assert answers.find("b")
    answers.keep("d", b"1234")
    assert answers.find("c") is None  # b was used since
    answers.keep("e", b"x" * 11)
    assert (answers.size, answers.find("e")) == (8, None)  # nothing makes room for what has none anyway


def test_a_server_without_live_questions_says_so(page: FastAPI, lab: Lab) -> None:
    lab.live = False
    reply = asyncio.run(post(page, "slow"))
    assert reply.status == 400
    assert "only shows what is stored" in reply.error


def test_closing_ends_the_work(slow: Slow, lab: Lab) -> None:
    async def scene() -> None:
        worker = Worker(lab)
        asked = asyncio.create_task(worker.answer(slow.whole, Wish(run="small", parts=100)))
        await until(slow.at_work.is_set)
        worker.close()
        slow.may_go_on.set()
        with pytest.raises(Superseded):
            await asked

    begun = time.monotonic()
    asyncio.run(scene())
    assert slow.parts == 0
    assert time.monotonic() - begun < 5


def test_reading_does_not_wait_for_the_worker(slow: Slow, lab: Lab) -> None:
    from bindscope.web.pages import runs

    app = create_app(lab, (Page("slow", operations=(slow.whole,)), runs.PAGE))

    async def scene() -> Reply:
        asked = asyncio.create_task(post(app, "slow"))
        await until(slow.at_work.is_set)
        read = await request(app, "GET", "/api/runs.json", [("Host", HOST)])
        assert not asked.done()
        slow.may_go_on.set()
        await asked
        return read

    assert asyncio.run(scene()).status == 200


def test_a_run_that_is_not_open_is_missing(page: FastAPI) -> None:
    headers = [("Host", HOST), ("Content-Type", "application/json")]
    assert ask(page, "POST", "/api/live/slow", headers, [b'{"run": "smal"}']).error.endswith("Did you mean 'small'?")
