"""A real server under load and abuse: does it answer all who ask honestly, and does its memory stay as it is?

    python benchmarks/server_load.py --minutes 3            # also: make load

``bindscope serve`` is started on this machine's loopback. Readers keep a connection each and read the run's resources, each
pausing for up to six seconds in between as a person does; some ask for live grids and patches that nobody asked before.
Besides them there are clients that send heads and bodies byte by byte, that hardly read what they asked for, whose bodies
are too long or not as long as they say, and that vanish midway. Printed are waiting times of honest requests, what became of
the others, and the server's memory over time. It exits with 1 when anything was answered with 5xx, when an honest request got
no answer, or when memory grew by more than ``GROWTH`` from the second third of the time to the last.

Everything goes to 127.0.0.1, and every client ends with the time that was given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median

RUN, LAST = "binding-laptop", 3700
HOST = "127.0.0.1"
READS = ("runs.json", *(f"runs/{RUN}/{name}.json" for name in ("run", "trajectory", "grid-chain", "grid-heads")))
GROWTH = 0.1  # of the memory in the second third of the time, which the last third may exceed
PAUSE = 6.0  # seconds, at most, between two requests of a reader
DRIP = 0.3  # seconds between two bytes of a slow client
STALL, N_PIPELINED = 30.0, 60  # seconds that a slow reader reads nothing, and how much it asked for
N_SLOW = 10  # of each kind of slow client at once
LINES = ("k={};c=k;t=6;b=c;#b:", "k={};m=2;c=k;b=c;#b:", "a={};b=a;c=3;d=b;e=d;#e:")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Seen:
    """What became of all that was asked."""

    port: int
    ends: float  # when the load ends, by the clock of the loop
    random: random.Random
    waits: dict[str, list[float]] = field(default_factory=lambda: {"reads": [], "live": []})  # seconds, by kind
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)  # honest requests
    abuse: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, int]] = field(default_factory=list)  # seconds, bytes

    @property
    def over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.ends

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(self.random.uniform(0, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--live", type=int, default=4, help="how many of the readers ask live questions")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    server, port = start_server()
    try:
        seen = asyncio.run(load(port, server.pid, arguments))
    finally:
        server.send_signal(signal.SIGINT)
        said, _ = server.communicate(timeout=60)
    problems = report(seen, said)
    print("\n".join(problems) or "no 5xx, every honest request answered, memory flat")
    sys.exit(1 if problems else 0)


def start_server() -> tuple[subprocess.Popen[str], int]:
    """``bindscope serve`` at a free port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bindscope", "serve", RUN, "--no-open", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    line = server.stdout.readline()
    if not re.search(r"http://", line):
        server.kill()
        sys.exit(f"the server did not start: {line}{server.communicate()[0]}")
    return server, port


async def load(port: int, pid: int, arguments: argparse.Namespace) -> Seen:
    """All clients at once until the time is over."""
    loop = asyncio.get_running_loop()
    seen = Seen(port, loop.time() + 60 * arguments.minutes, random.Random(arguments.seed))
    await ask(seen, "live", *live_question(seen))  # loads torch and the model
    clients = [read_on(seen) for _ in range(arguments.readers - arguments.live)]
    clients += [ask_on(seen) for _ in range(arguments.live)]
    abusers = (drip_head, drip_body, read_slowly, send_too_much, lie_about_length, vanish)
    clients += [repeat(seen, abuse) for abuse in abusers for _ in range(N_SLOW)]
    await asyncio.gather(*clients, watch_memory(seen, pid))
    return seen


async def read_on(seen: Seen) -> None:
    """A reader: one connection for as long as the server keeps it, one request after another."""
    kept: Streams | None = None
    while not seen.over:
        await seen.pause(PAUSE)
        kept = await ask(seen, "reads", "GET", f"/api/{seen.random.choice(READS)}", b"", kept)
    close(kept)


async def ask_on(seen: Seen) -> None:
    kept: Streams | None = None
    while not seen.over:
        await seen.pause(PAUSE)
        kept = await ask(seen, "live", *live_question(seen), kept)
    close(kept)


def live_question(seen: Seen) -> tuple[str, str, bytes]:
    """A grid, or a cell over several checkpoints, of a pair that was hardly asked before."""
    line = seen.random.choice(LINES)
    pair = dict(zip(("program", "counterfactual"), map(line.format, seen.random.sample(range(10), 2))))
    asked: dict[str, object] = {"run": RUN, **pair}
    if seen.random.random() < 0.5:
        asked |= {"steps": [0, LAST], "sites": [f"L{seen.random.randrange(4)}.resid_pre@{seen.random.randrange(15)}"]}
        return "POST", "/api/live/patch", json.dumps(asked).encode()
    asked |= {"step": LAST, "grid": seen.random.choice(["residual", "heads", "mlps"])}
    return "POST", "/api/live/grid", json.dumps(asked).encode()


async def ask(
    seen: Seen, kind: str, method: str, path: str, body: bytes = b"", kept: Streams | None = None
) -> Streams | None:
    """One honest request on a kept connection or a new one; gives back the connection if it stays open."""
    began = time.perf_counter()
    try:
        reader, writer = kept or await asyncio.open_connection(HOST, seen.port)
        writer.write(head_of(seen, method, path, len(body)) + body)
        status, stays = await read_answer(reader)
    except (OSError, EOFError):
        close(kept)
        if kept is None:
            seen.unanswered[kind] += 1
            return None
        return await ask(seen, kind, method, path, body)  # it was closed while the reader paused, as HTTP allows
    seen.waits[kind].append(time.perf_counter() - began)
    seen.statuses[kind, status] += 1
    return (reader, writer) if stays else close((reader, writer))


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status of an answer that is read to its end, and whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if length := re.search(r"content-length: (\d+)", head):
        await reader.readexactly(int(length[1]))
    elif "transfer-encoding: chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    return int(head.split()[1]), "connection: close" not in head


def head_of(seen: Seen, method: str, path: str, length: int) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{seen.port}"]
    lines += ["Content-Type: application/json", f"Content-Length: {length}"] if method == "POST" else []
    return "\r\n".join([*lines, "", ""]).encode()


async def repeat(seen: Seen, abuse: object) -> None:
    """One kind of abuse, again and again; whatever the server does to such a client is its right."""
    name = abuse.__name__.replace("_", " ")  # type: ignore[attr-defined]
    while not seen.over:
        try:
            streams = await asyncio.open_connection(HOST, seen.port)
        except OSError:
            seen.abuse[f"{name}: no connection"] += 1
            await seen.pause(PAUSE)
            continue
        try:
            outcome = await abuse(seen, *streams)  # type: ignore[operator]
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            outcome = "hung up on"
        seen.abuse[f"{name}: {outcome}"] += 1
        close(streams)
        await seen.pause(PAUSE)


async def drip(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> str:
    """Byte by byte, never to the end, until the server has enough."""
    for byte in sent[:-1]:
        if seen.over:
            return "still there at the end"
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(DRIP)
        if reader.at_eof():
            return "hung up on"
    return "sent all but a byte"


async def drip_head(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    return await drip(seen, reader, writer, head_of(seen, "GET", "/api/runs.json" + "?" * 1000, 0))


async def drip_body(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    writer.write(head_of(seen, "POST", "/api/live/patch", 1000))
    return await drip(seen, reader, writer, b" " * 1000)


async def read_slowly(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Asks for a streamed grid and for 15 MB besides, more than a kernel takes, and reads nothing for a while."""
    writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    method, path, body = live_question(seen)
    writer.write(head_of(seen, method, path, len(body)) + body)
    for _ in range(N_PIPELINED):
        writer.write(head_of(seen, "GET", f"/api/{READS[3]}", 0))
    for _ in range(int(STALL / DRIP)):
        await asyncio.sleep(DRIP)
        if seen.over:
            return "still there at the end"
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    taken = await asyncio.wait_for(reader.read(), 60)
    return "hung up on" if len(taken) < N_PIPELINED * 200_000 else "served to the end"


async def send_too_much(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Ten megabytes for a question, with or without saying so."""
    if seen.random.random() < 0.5:
        writer.write(head_of(seen, "POST", "/api/live/predict", 10_000_000))
    else:
        chunked = head_of(seen, "POST", "/api/live/predict", 0).replace(
            b"Content-Length: 0", b"Transfer-Encoding: chunked"
        )
        writer.write(chunked)
    for _ in range(100):
        writer.write(b"186a0\r\n" + b" " * 100_000 + b"\r\n")
        await asyncio.wait_for(writer.drain(), 5)
    return await told(seen, reader)


async def lie_about_length(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """A body that is shorter or longer than it says, then the end of what is sent."""
    method, path, body = live_question(seen)
    said = len(body) + seen.random.choice([-40, -1, 1, 1000])
    writer.write(head_of(seen, method, path, said) + body)
    writer.write_eof()
    return await told(seen, reader)


async def vanish(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Asks for work, or half asks, and is gone within a moment."""
    method, path, body = live_question(seen)
    sent = head_of(seen, method, path, len(body)) + body
    writer.write(sent if seen.random.random() < 0.7 else sent[: seen.random.randrange(len(sent))])
    await writer.drain()
    await seen.pause(0.3)
    writer.transport.abort()
    return "gone"


async def told(seen: Seen, reader: asyncio.StreamReader) -> str:
    """What such a client is told, if anything; a 5xx counts here too."""
    status, _ = await asyncio.wait_for(read_answer(reader), 60)
    seen.statuses["abuse", status] += 1
    return str(status)


async def watch_memory(seen: Seen, pid: int) -> None:
    began = time.perf_counter()
    while not seen.over:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", status.read())
        seen.memory.append((time.perf_counter() - began, int(kilobytes) * 1024))
        await asyncio.sleep(2)


def report(seen: Seen, said: str) -> list[str]:
    """Prints what was seen; what of it is a failure."""
    for kind, waits in seen.waits.items():
        counts = ", ".join(f"{n} × {status}" for (of, status), n in sorted(seen.statuses.items()) if of == kind)
        at = " ".join(f"p{percent} {quantile(waits, percent) * 1e3:.0f} ms" for percent in (50, 90, 99, 100))
        print(f"{kind}: {counts}; {at}")
    for outcome, n in sorted(seen.abuse.items()):
        print(f"{n:6} {outcome}")
    thirds = [[size for _, size in part] for part in split(seen.memory, 3)]
    print(
        "memory, MB:",
        " ".join(
            f"{seconds:.0f}s {size / 1e6:.0f}" for seconds, size in seen.memory[:: max(1, len(seen.memory) // 12)]
        ),
    )
    before, after = median(thirds[1]), median(thirds[2])
    print(f"memory, median of the second third {before / 1e6:.0f} MB, of the last {after / 1e6:.0f} MB")
    problems = [f"{n} × {status} ({kind})" for (kind, status), n in seen.statuses.items() if status >= 500]
    problems += [f"{n} honest requests without an answer ({kind})" for kind, n in seen.unanswered.items()]
    problems += [f"memory grew by {after / before - 1:.0%}"] if after > (1 + GROWTH) * before else []
    return problems + (["the server printed a traceback:", said] if "Traceback" in said else [])


def split(rows: list[tuple[float, int]], n: int) -> list[list[tuple[float, int]]]:
    return [rows[len(rows) * part // n : len(rows) * (part + 1) // n] for part in range(n)]


def quantile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def close(streams: Streams | None) -> None:
    if streams is not None:
        streams[1].close()


if __name__ == "__main__":
    main()
