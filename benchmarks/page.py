"""``make bench``: every benchmark in one go, and the page that says what came of it.

    python benchmarks/page.py                     # measure everything, alone on the machine: about half an hour
    python benchmarks/page.py --only patching     # measure some again, keep the rest
    python benchmarks/page.py --render            # write the page again from what was measured

Each command below runs in a process of its own, one after another, and notes its rows (``turns.py``). They stand in
``benchmarks/measured.json`` with the machine and the versions they were measured on, and docs/benchmarks.md is written from them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from turns import RECORDS

HERE = Path(__file__).parent
MEASURED = HERE / "measured.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
FIGURE = HERE.parent / "docs" / "figures" / "growth.svg"
PEERS = ("torch", "numpy", "transformers", "transformer-lens", "nnsight", "pyvene")
Row = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """Benchmarks of one kind: what is compared, and the commands that do it, as given in the top folder."""

    title: str
    about: str
    commands: tuple[str, ...]


SECTIONS = (
    Section(
        "Patch grids",
        "Every cell of a grid of activation patches, ours at once, a peer with one run of the model a cell. *Bound*: the ratio that the counted products allow.",
        (
            "patching.py --size laptop --pairs 64 --cells 12 --rounds 5",
            'patching.py --size paper --pairs 4 --cells 4 --rounds 3 --no-memory --peers "plain hooks" pyvene',
        ),
    ),
    Section(
        "Patch grids with a tolerance",
        "What the answer hardly feels is left out; against our own exact grid, on trained weights.",
        ("tolerance.py --size paper --pairs 4 --rounds 2",),
    ),
    Section(
        "Subspaces",
        "Steps that learn a rotation, and swaps of a subspace in every layer, from saved base runs; a peer runs the whole model.",
        (
            "subspace_swaps.py --size laptop --pairs 128",
            'subspace_swaps.py --size paper --pairs 16 --batch 16 --steps 2 --subspaces 1 --positions chain query --peers "plain hooks"',
        ),
    ),
    Section(
        "Training steps",
        "Forward, backward, clipping and AdamW on the same batch and weights.",
        (
            "training_step.py --size laptop --threads 1 --clock cpu --rounds 9",
            "training_step.py --size paper --threads 1 --clock cpu --rounds 5 --batch 8 --programs 4",
            "sums_training.py --rounds 15 --clock cpu",
        ),
    ),
    Section(
        "Sampling",
        "Batches drawn with array operations, and by a loop.",
        ("sampling.py --rounds 15", "sampling_families.py"),
    ),
    Section(
        "The kernel of templates",
        "Time × variance of N, against a plain Monte Carlo estimate.",
        ("kernel.py --rounds 16",),
    ),
    Section(
        "A live grid",
        "From the question to the last cell, over HTTP, both cores; no peer has one. *Goal* is in seconds here.",
        ("live.py --size laptop --rounds 21", "live.py --size paper --rounds 3"),
    ),
    Section(
        "How the cost of a grid grows",
        "Slopes of straight lines in the logarithms, measured beside counted.",
        (f"growth.py --rounds 2 --out {FIGURE.relative_to(HERE.parent)}",),
    ),
)


def main() -> None:
    options = read_options()
    if not options.render:
        measured = measure(options.only)
        MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(json.loads(MEASURED.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"{PAGE.relative_to(HERE.parent)} is written.")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="SCRIPT", help="measure these again, such as 'patching'")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    options = parser.parse_args()
    scripts = {script_of(command) for _, command in every_command()}
    for name in options.only or ():
        if name not in scripts:
            parser.error(f"'{name}' is none of the benchmarks: {', '.join(sorted(scripts))}.")
    return options


def every_command() -> Iterator[tuple[Section, str]]:
    return ((section, command) for section in SECTIONS for command in section.commands)


def script_of(command: str) -> str:
    return command.split(".py")[0]


def measure(only: list[str] | None) -> dict[str, Any]:
    """Rows by command, and the machine; with ``only`` the other rows as they were, which must be of this machine."""
    machine = describe_machine()
    rows: dict[str, list[Row]] = {}
    if only:
        before = json.loads(MEASURED.read_text(encoding="utf-8"))
        if before["machine"] != machine:
            sys.exit("What was measured before is of another machine or other versions: measure everything.")
        rows = before["rows"]
    wanted = [command for _, command in every_command() if not only or script_of(command) in only]
    for number, command in enumerate(wanted, 1):
        print(f"[{number}/{len(wanted)}] python benchmarks/{command}", flush=True)
        rows[command] = run(command)
    return {"date": date.today().isoformat(), "machine": machine, "rows": rows}


def run(command: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "rows.jsonl"
        environment = os.environ | {RECORDS: str(records), "OMP_NUM_THREADS": "1"}
        if command.startswith("live"):
            del environment["OMP_NUM_THREADS"]
        done = subprocess.run(
            f"{sys.executable} benchmarks/{command}", shell=True, cwd=HERE.parent, env=environment, check=False
        )
        if done.returncode:
            sys.exit(f"'{command}' ended with {done.returncode}; nothing was written.")
        return [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]


def describe_machine() -> dict[str, str]:
    """What the numbers depend on."""
    import torch

    found = {
        "processor": read_processor(),
        "cores": str(os.cpu_count()),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
    }
    found |= {"system": platform.system(), "Python": platform.python_version()}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def read_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def render(measured: dict[str, Any]) -> str:
    """The page.

    A row has the median ratio over rounds, its range, how many rounds there were, and whether its goal is met."""
    machine = ", ".join(f"{name} {value}" for name, value in measured["machine"].items())
    rows = {command: measured["rows"].get(command, []) for _, command in every_command()}
    parts = [
        LEAD.format(date=measured["date"], machine=machine),
        render_summary([row for each in rows.values() for row in each]),
    ]
    for section in SECTIONS:
        commands = "\n".join(f"    python benchmarks/{command}" for command in section.commands)
        found = [row for command in section.commands for row in rows[command]]
        parts.append(f"## {section.title}\n\n{commands}\n\n{section.about}\n\n{render_rows(found)}")
    parts.append(
        "![how the cost of a residual grid grows with tokens, layers, pairs, parameters and checkpoints](figures/growth.svg)\n"
    )
    return "\n".join(parts)


LEAD = """\
<!-- Generated by `make bench`; edit benchmarks/page.py instead. -->

# Benchmarks

`make bench` measures all of this, one command after another, and writes this page. A ratio says how many times as long
the fastest peer takes: the median over rounds in which everybody has one turn in the same process, with the least and the largest ratio
of a round. Nothing here is a time limit, and no test depends on it. What each contender does, what was tried, and where the time goes is in
[benchmarks/README.md](../benchmarks/README.md).

Measured on {date}: {machine}. One thread and processor time, unless a command says otherwise.
"""


def render_summary(rows: list[Row]) -> str:
    """Where a goal is missed and where a peer is ahead, before anything else."""
    ahead = [row for row in rows if row["ratio"] and row["ratio"]["median"] < 1 and row["benchmark"] != "tolerance"]
    missed = [row for row in rows if met(row) is False]
    judged = [row for row in rows if met(row) is not None]
    lines = [f"- {len(judged) - len(missed)} of {len(judged)} goals are met."]
    lines += [
        f"- Goal missed: {row['what']}, {value_of(row)} where {goal_of(row)} was wanted{bound_of(row)}."
        for row in missed
    ]
    lines += [f"- A peer is ahead: {row['what']}, {value_of(row)} ({row['peer']})." for row in ahead]
    return "## In short\n\n" + "\n".join(lines) + "\n"


def render_rows(rows: list[Row]) -> str:
    if not rows:
        return "Not measured yet.\n"
    columns = {
        "what": lambda row: row["what"],
        "ours": lambda row: seconds_of(row["seconds"]),
        "fastest peer": lambda row: row["peer"],
        "ratio [range]": lambda row: value_of(row) if row["ratio"] else "",
        "rounds": lambda row: str(row["ratio"]["rounds"]) if row["ratio"] else "",
        "bound": lambda row: f"{row['bound']:.1f}×" if row["bound"] else "",
        "goal": lambda row: goal_of(row) + {True: ", met", False: ", missed", None: ""}[met(row)],
        "of GEMM peak": lambda row: f"{row['of_peak']:.0%}" if row["of_peak"] else "",
        "": lambda row: row["remark"],
    }
    filled = [[cell(row) for cell in columns.values()] for row in rows]
    used = [index for index in range(len(columns)) if any(row[index] for row in filled)]
    titles = [list(columns)[index] for index in used]
    lines = [titles, ["---"] * len(used), *([row[index] for index in used] for row in filled)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def met(row: Row) -> bool | None:
    if not row["goal"]:
        return None
    return row["ratio"]["median"] >= row["goal"] if row["ratio"] else row["seconds"] <= row["goal"]


def value_of(row: Row) -> str:
    """What is held against the goal: the median ratio with its range, or seconds."""
    if not (ratio := row["ratio"]):
        return seconds_of(row["seconds"])
    if ratio["least"] == ratio["largest"]:
        return f"{number(ratio['median'])}×"
    return f"{number(ratio['median'])}× [{number(ratio['least'])}–{number(ratio['largest'])}]"


def goal_of(row: Row) -> str:
    if not row["goal"]:
        return ""
    return f"{row['goal']:g}×" if row["ratio"] else f"{row['goal']:g} s"


def bound_of(row: Row) -> str:
    return f" (bound {row['bound']:.1f}×)" if row["bound"] else ""


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def seconds_of(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


if __name__ == "__main__":
    main()
