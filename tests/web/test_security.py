"""Who is answered and who is not."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from fastapi import FastAPI

from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from bindscope.web.security import HEADERS, MAX_BODY, POLICY
from web.requests import HOST, ORIGIN, ask

JSON = ("Content-Type", "application/json")
QUESTION = b'{"run": "small", "steps": [12], "program": "a=5;b=a;#b:"}'
PREDICT = "/api/live/predict"


@pytest.mark.parametrize(
    "host", [HOST, "localhost", "LOCALHOST:1", "127.0.0.1:8420", "[::1]:8420", "[::1]", "localhost:65535"]
)
def test_the_names_of_this_machine_are_answered_at_any_port(host: str, app: FastAPI) -> None:
    assert ask(app, "GET", "/api/runs.json", [("Host", host)]).status == 200


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        [HOST, HOST],
        ["evil.example"],
        ["localhost.evil.example"],
        ["evil.example:8420"],
        ["localhost:"],
        ["localhost:99999"],
        ["localhost:0"],
        ["localhost:80:80"],
        ["localhost:8420@evil.example"],
        ["localhost."],
        ["::1"],
        ["[::1"],
        ["[::2]"],
        ["127.0.0.2"],
        ["localhost/api"],
        ["localhost evil.example"],
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/api/runs.json"), ("POST", PREDICT)])
def test_other_names_are_not(hosts: list[str], method: str, path: str, app: FastAPI) -> None:
    headers = [*(("Host", host) for host in hosts), JSON]
    reply = ask(app, method, path, headers, [QUESTION])
    assert reply.status == 421
    assert "names it was started with" in reply.error


def test_a_server_answers_under_the_names_it_was_given(lab: Lab) -> None:
    app = create_app(lab, hosts=("lab.example.org",))
    assert ask(app, "GET", "/api/runs.json", [("Host", "Lab.Example.org:80")]).status == 200
    assert ask(app, "GET", "/api/runs.json", [("Host", HOST)]).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Origin", ORIGIN)],
        [("Origin", ORIGIN.replace("http", "https"))],
        [("Origin", ORIGIN), ("Sec-Fetch-Site", "same-origin")],
        [("Sec-Fetch-Site", "same-origin")],
        [("Sec-Fetch-Site", "none")],
    ],
)
def test_pages_of_this_server_and_programs_may_ask(headers: list[tuple[str, str]], app: FastAPI) -> None:
    reply = ask(app, "POST", PREDICT, [("Host", HOST), JSON, *headers], [QUESTION])
    assert reply.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [("Origin", "null")],
        [("Origin", "")],
        [("Origin", "https://evil.example")],
        [("Origin", ORIGIN.replace("8420", "3000"))],
        [("Origin", f"{ORIGIN}.evil.example")],
        [("Origin", f"https://evil.example/{ORIGIN}")],
        [("Origin", "http://[")],
        [("Origin", "file://")],
        [("Sec-Fetch-Site", "cross-site")],
        [("Sec-Fetch-Site", "same-site")],
        [("Origin", ORIGIN), ("Sec-Fetch-Site", "cross-site")],
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", PREDICT), ("GET", "/api/runs.json"), ("DELETE", "/api/runs.json")]
)
def test_pages_of_other_sites_may_not(headers: list[tuple[str, str]], method: str, path: str, app: FastAPI) -> None:
    reply = ask(app, method, path, [("Host", HOST), JSON, *headers], [QUESTION])
    assert reply.status == 403
    assert "only pages of this server" in reply.error


def test_a_link_on_another_site_may_lead_to_the_page(app: FastAPI) -> None:
    headers = [("Host", HOST), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    assert ask(app, "GET", "/", headers).status != 403


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"]
)
def test_what_a_form_can_send_is_refused(kind: str, app: FastAPI) -> None:
    assert ask(app, "POST", PREDICT, [("Host", HOST), ("Content-Type", kind)], [QUESTION]).status == 415


LONG = b" " * (MAX_BODY + 1)


@pytest.mark.parametrize(
    ("headers", "chunks", "status"),
    [
        ([("Content-Length", str(len(LONG)))], [LONG], 413),  # said and meant
        ([("Content-Length", "10")], [LONG], 413),  # said to be short
        ([("Content-Length", "9" * 5000)], [b"{}"], 413),  # said to be long
        ([("Transfer-Encoding", "chunked")], [b" " * 1000] * 65, 413),  # not said at all
        ([("Transfer-Encoding", "chunked")], [QUESTION[:20], QUESTION[20:]], 200),
        ([("Content-Length", "ten")], [QUESTION], 400),
        ([("Content-Length", "-1")], [QUESTION], 400),
        ([("Content-Length", "²")], [QUESTION], 400),
    ],
)
def test_a_body_is_read_up_to_its_limit_whatever_it_says(
    headers: list[tuple[str, str]], chunks: list[bytes], status: int, app: FastAPI
) -> None:
    assert ask(app, "POST", PREDICT, [("Host", HOST), JSON, *headers], chunks).status == status


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[" * 60_000, b"null", b"[]", b'"\\ud800"', b'{"\\ud800": 1}', b"\xff\xfe", b'{"run": "\\ud800", "steps": [12], "program": "a"}',
        b'{"run": "small", "steps": [' + b"9" * 4000 + b'], "program": "a=5;b=a;#b:"}',
        b'{"run": "small", "steps": [1e999], "program": "a=5;b=a;#b:"}',
        b'{"run": "small", "steps": [NaN], "program": "a=5;b=a;#b:"}',
        b'{"run": "small", "steps": [12], "program": "\\u0000"}',
        b'{"run": "../small", "steps": [12], "program": "a=5;b=a;#b:"}',
        b'{"run": "small", "steps": [12], "program": "a=5;b=a;#b:", "more": 1}',
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_one_sentence(body: bytes, app: FastAPI) -> None:
    reply = ask(app, "POST", PREDICT, [("Host", HOST), JSON], [body])
    assert reply.status in (400, 404, 422)
    assert reply.error.endswith((".", "?"))


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py", "/assets/..%2f..%2fapp.py", "/assets/%2e%2e/app.py", "/assets/....//app.py", "/assets//etc/passwd",
        "/assets/..\\app.py", "/assets/\x00", "/assets", "/api/runs/../runs.json", "/api/runs/%2e%2e/run.json",
        "/api/runs/small/../run.json", "/api/runs/..%2fsmall/run.json", "/static/index.html", "/manifest.json",
    ],
)  # fmt: skip
def test_no_path_leads_out(path: str, app: FastAPI) -> None:
    assert ask(app, "GET", path, [("Host", HOST)]).status in (404, 405, 422)


def test_every_answer_carries_the_policy_even_a_refusal(app: FastAPI) -> None:
    for headers in ([("Host", HOST)], [("Host", "evil.example")]):
        for path in ("/", "/api/runs.json", "/nowhere"):
            reply = ask(app, "GET", path, headers)
            assert {name: reply.headers[name.lower()] for name in HEADERS} == HEADERS


def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline() -> None:
    assert POLICY["default-src"] == "'none'"
    allowed = {source for sources in POLICY.values() for source in sources.split()}
    assert allowed == {"'none'", "'self'", "data:", "blob:"}
    assert not {"data:", "blob:"} & set((POLICY["script-src"] + POLICY["connect-src"] + POLICY["style-src"]).split())


def test_no_answer_may_be_read_by_another_origin(app: FastAPI) -> None:
    reply = ask(app, "GET", "/api/runs.json", [("Host", HOST), ("Origin", ORIGIN)])
    assert reply.status == 200
    assert not any(name.startswith("access-control") for name in reply.headers)


def test_a_web_socket_is_closed(app: FastAPI) -> None:
    sent = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    asyncio.run(app({"type": "websocket", "path": "/api/runs.json", "headers": []}, None, send))  # type: ignore[arg-type]
    assert sent == ["websocket.close"]
