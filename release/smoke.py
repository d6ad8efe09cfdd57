"""Every command of an installed Bindscope, given help and a small real use, by the Python that runs this file.

    python release/smoke.py [COMMAND ...]

It works in a folder of its own, one command after another, and exits with 1 if a command does not do
what it should. A command without a use here is a failure too.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import torch  # noqa: F401 (once, for all commands)
import xarray  # noqa: F401

from bindscope.cli.main import COMMANDS, main

SMALL = (
    "--set task.lines=4 --set task.max_depth=2 --set model.n_layers=2 --set model.d_model=16 --set model.d_head=8 --set model.d_mlp=16 "
    "--set training.batch_size=8 --set training.evaluate_every=4 --set training.evaluation_size=50 --set training.save_every=4 "
    "--set training.checkpoints.every=4 --set training.checkpoints.per_octave=0 --set training.stop_at=none"
)
PORT = "8471"
PAIR = "'c=1;d=2;a=5;b=a;#b:' 'c=1;d=2;a=8;b=a;#b:'"
USES = f"""
presets binding-tiny
sample binding-tiny --n 2
train binding-tiny --name mine --steps 8 --threads 1 {SMALL}
runs
resume mine
check mine
doctor
thin mine small/mine --most 2
evaluate mine --n 50
trajectory binding-laptop --out phases.svg
development binding-neutral --out development.svg
coefficient mine --n 64 --chains 2 --draws 8 --burn-in 2
calibrate --json
diagnostics mine --n 16
announce binding-plain binding-laptop
behaviour mine --n 20
predict binding-laptop 'a=5;b=a;c=3;#b:'
lens binding-laptop --steps last --program 'a=5;b=a;c=3;#b:'
attention assign-add 'c=1 b=17 | b+19' --out maps.svg
probe mine --layers 1 --probes linear --n 40
progress assign-add --n 20
fourier assign-add
patch binding-laptop {PAIR} --n 1
grids mine --n 2 --steps last --grid heads --out heads.svg
path binding-laptop --sender L1.H0 --receiver L3.H1.k --n 4
ablate binding-laptop --n 10 --of L1.H2
subspace binding-laptop --n 20 --save values.safetensors
apply values.safetensors binding-laptop
circuit binding-plain --depth 1 --n 4
algorithm binding-laptop --n 8
mixture binding-laptop --n 40
identifiers binding-laptop --n 8
lookbacks binding-laptop --n 8
reassignment binding-reassign --n 8
edges binding-laptop --n 4 --points 1 --checked 2 --random 1
hypotheses binding-laptop --n 8
moves binding-laptop --n 8
measure mine
transplant assign-add --n 10 --controls 1 --from 3100 --to 3000 --part QK1
retrain binding-plain --part L0.QK --seeds 1 --most-steps 2 --every 2 --n 50
verify binding-laptop --claim VB1 --json
claims VB3
explain VB3
figure binding-laptop VB1 --out vb1.svg
experiment seeds --show
evidence
recipe binding-tiny --seeds 1 --steps 20 --only no-offsets
one-step --modulus 7
kernel AA AB --labels 1,-1
templates check AA AB
copying --widths 16,32 --n 16 --seeds 1
across
language --steps 4 --seeds 1 --identity both
export site mine --steps 2
export-hf mine exported
export-metrics mine mine.csv --to csv
construct --name by-hand --lines 4 --max-depth 2
import runs/mine/checkpoints/step_00000008.safetensors --as copy --n 20 --set task.lines=4 --set task.max_depth=2
completion bash
demo --once --no-open --no-train
serve binding-laptop --no-open --port {PORT}
"""
NEEDS_EXTRA = (
    {"language": "bindscope[text]"} if find_spec("tokenizers") is None else {}
)  # and says so, with exit code 2
MADE = ("phases.svg", "maps.svg", "heads.svg", "values.safetensors", "vb1.svg", "site/index.html", "site/THIRD-PARTY.txt", "mine.csv", "runs/copy/manifest.json")  # fmt: skip


def try_all() -> int:
    uses = [(words[0], words) for words in map(shlex.split, filter(None, USES.splitlines()))]
    failed = [f"{name}: has no use here" for name in COMMANDS.keys() - {name for name, _ in uses}]
    began, asked = time.monotonic(), set(sys.argv[1:]) or COMMANDS.keys()
    with tempfile.TemporaryDirectory(prefix="bindscope-smoke-") as folder:
        for name, words in uses:
            if name in asked:
                failed += try_command(words, Path(folder))
        failed += [
            f"{file}: was not made" for file in MADE if asked == COMMANDS.keys() and not (Path(folder) / file).exists()
        ]
    print(
        f"Python {sys.version.split()[0]}: {len(asked)} commands, {len(failed)} failures, {time.monotonic() - began:.0f} s",
        *failed,
        sep="\n  ",
    )
    return min(len(failed), 1)


def try_command(words: list[str], folder: Path) -> Iterator[str]:
    """What is wrong with a command's help and with its use; the processor's seconds are printed."""
    spent = 0.0
    for given in ([words[0], "--help"], words):
        child = start(given, folder)
        if given is words and words[0] == "serve":
            yield from ask_server(child)
        _, status, used = os.wait4(child, 0)
        code, spent = os.waitstatus_to_exitcode(status), spent + used.ru_utime + used.ru_stime
        said = (folder / "said").read_text()
        refused = given is words and words[0] in NEEDS_EXTRA and code == 2 and NEEDS_EXTRA[words[0]] in said
        if (code and not refused) or not said.strip() or "Traceback" in said:
            yield f"{shlex.join(given)}: exit code {code}\n{said[-2000:]}"
    print(f"{spent:6.1f} s  {shlex.join(words)[:100]}", flush=True)


def start(words: list[str], folder: Path) -> int:
    """The process of a command: a fork of this one, so that torch is imported once for all."""
    child = os.fork()
    if not child:
        os.chdir(folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(said, stream)
        try:
            main(words)
        except SystemExit as left:
            sys.stdout.flush()
            os._exit(left.code if isinstance(left.code, int) else 1)
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    return child


def ask_server(child: int) -> Iterator[str]:
    """Wait for the page and its runs, then tell the server to end."""
    deadline = time.monotonic() + 120
    found = {"/": "", "/api/runs.json": ""}
    while not all(found.values()) and time.monotonic() < deadline:
        for address in found:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{address}") as answer:
                    found[address] = answer.read().decode()
            except OSError:
                time.sleep(0.2)
    if '<div id="app">' not in found["/"] or "binding-laptop" not in found["/api/runs.json"]:
        yield f"serve: no page: {found}"
    os.kill(child, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(try_all())
