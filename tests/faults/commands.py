"""The commands that are killed: how each is given, given again, and what it must have made in the end."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bindscope.runs.config import override
from bindscope.runs.directory import Run
from bindscope.runs.results import read_result
from bindscope.studies.framework import evidence, experiments
from cli.small_run import SMALL, small_options
from faults.children import start

N_CELLS = 2  # runs of an experiment
TRAIN = ["train", "binding-tiny", "--name", "run", "--out", ".", "--steps", "24", "--threads", "1", *small_options()]
EXPERIMENT = "seeds-plain"


@dataclass(frozen=True)
class Command:
    """``arguments`` are what is given next, given what is there; none when nothing is left to do."""

    name: str
    arguments: Callable[[Path], list[str]]
    product: Callable[[Path], Any]  # what it made, apart from the clock
    prepare: Callable[[Path], object] = lambda folder: None  # of an empty folder
    share: float = 1.0  # of the kills


def all_commands(trained: Path, half: Path) -> tuple[Command, ...]:
    """``trained`` is a finished run, ``half`` one that was interrupted."""

    def with_run(run: Path) -> Callable[[Path], object]:
        return lambda folder: shutil.copytree(run, folder / "run")

    files = sorted(map(str, (trained / "checkpoints").glob("*.safetensors")))
    imported = ["import", *files, "--as", "run", "--out", ".", "--n", "50", "--set", "lines=4", "--set", "max_depth=2"]
    verify = ["verify", "run", "--n", "8", "--jobs", "2", "--claim", "VB1", "--claim", "VB3", "--json"]
    return (
        Command("train", lambda folder: TRAIN if not (folder / "run").exists() else ["resume", "run"], weights_of, share=5),
        Command("resume", lambda _: ["resume", "run"], weights_of, with_run(half), share=5),
        Command("import", lambda folder: imported if not (folder / "run").exists() else [], weights_of, share=2),
        Command("serve", lambda _: ["serve", "run", "--no-open", "--port", str(free_port())], weights_of, with_run(trained), share=1.5),
        Command("verify", lambda _: verify, results_of, with_run(trained), share=0.6),
        Command("experiment", lambda _: ["experiment", EXPERIMENT, "--jobs", "2", "--out", "."], results_of, share=0.3),
        Command("evidence", lambda _: ["evidence", EXPERIMENT, "--train", "--jobs", "2", "--runs", "."], results_of, share=0.3),
        Command("export", lambda _: ["export", "site", "run", "--steps", "2", "--replace"], site_of, with_run(trained), share=0.3),
    )  # fmt: skip


def shrink_experiments() -> None:
    """Two runs of a very small model in each experiment, none of them shipped."""
    plan = experiments.plan_cells

    def plan_few(*arguments: Any, **options: Any) -> list[Any]:
        small = {**SMALL, "training.steps": 8}
        return [
            dataclasses.replace(cell, config=override(cell.config, small), shipped=False)
            for cell in plan(*arguments, **options)[:N_CELLS]
        ]

    experiments.plan_cells = evidence.plan_cells = plan_few  # type: ignore[assignment]
    evidence.SHIPPED_DATASETS = Path("none")


def weights_of(folder: Path) -> Any:
    """Every weight and evaluation of a run, the weights by their hash."""
    run = Run.open(folder / "run")
    records = [{key: value for key, value in record.items() if key != "elapsed"} for record in run.metrics]
    return run.manifest.status, {step: kept.sha256 for step, kept in run.manifest.checkpoints.items()}, records


def results_of(folder: Path) -> Any:
    """The numbers of every dataset, whatever the moment and place they were made at."""
    return {
        str(path.relative_to(folder)): repr(
            read_result(path).drop_attrs().drop_vars("seconds", errors="ignore").to_dict()
        )
        for path in sorted(folder.rglob("*.nc"))
    }


def site_of(folder: Path) -> Any:
    """The files of an exported site, byte for byte, but for the versions of runs: when their files changed, as a hash."""
    site = folder / "site"
    files = {str(path.relative_to(site)): path.read_bytes() for path in sorted(site.rglob("*")) if path.is_file()}
    return {name: re.sub(rb'"version":"[0-9a-f]{16}"', b"", content) for name, content in files.items()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serves(folder: Path, arguments: list[str]) -> float:
    """Seconds until the page answers; told to end, it ends well."""
    began, child = time.monotonic(), start(arguments, folder)
    while True:
        assert child.poll() is None, child.said.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{arguments[-1]}/api/runs.json") as answer:
                assert "run" in json.dumps(json.load(answer))
            break
        except OSError:
            time.sleep(0.01)
    seconds = time.monotonic() - began
    child.send(15)
    assert child.wait() == 0, child.said.read_text()
    return seconds
