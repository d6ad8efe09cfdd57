"""The command that a panel offers measures what the panel shows: it is copied, run, and compared with the panel's own CSV."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.opening import open_page

RUN = "run=binding-laptop&step=900"
PAIR = f"{RUN}&program=a=2;o=9;e=4;r=e;!r:&counterfactual=a=2;o=9;e=3;r=e;!r:"


def shown_in(page: Any, title: str, folder: Path) -> tuple[str, list[dict[str, str]]]:
    """The panel's command, and what it draws as the rows of its CSV."""
    panel = page.get_by_role("region", name=title, exact=True)
    copy = panel.get_by_role("button", name="Copy as command")
    copy.wait_for()
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
    panel.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as waiting:
        panel.get_by_role("button", name=re.compile("^CSV")).click()
    path = folder / "shown.csv"
    waiting.value.save_as(path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return copy.get_attribute("title").removeprefix("Copy as command: "), list(csv.DictReader(lines))


def answer_of(command: str, *options: str) -> str:
    words = shlex.split(command)
    assert words[0] == "bindscope"
    done = subprocess.run([sys.executable, "-m", *words, *options], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("metric", ["logit_difference", "kl"])
def test_a_grid_is_made_again_with_its_measure(served: Any, page: Any, tmp_path: Path, metric: str) -> None:
    open_page(page, served.at(f"#/1/patch?{PAIR}&patch.grid=heads&patch.metric={metric}"))
    command, rows = shown_in(page, "Patch grid of this pair", tmp_path)
    cells = json.loads(answer_of(command, "--json"))["cells"]
    mine = {(int(row["layer"]), int(row["head"])): float(row[metric]) for row in rows}
    again = {(cell["layer"], cell["head"]): cell["mean"] for cell in cells}
    assert mine == pytest.approx(again, abs=1e-4)
    assert max(map(abs, mine.values())) > 0.1  # not merely zeros


def test_parts_are_taken_out_again(served: Any, page: Any, tmp_path: Path) -> None:
    open_page(page, served.at(f"#/1/attention?{PAIR}&attention.ablate=L0.H0;L1.mlp_out&attention.kind=mean"))
    command, rows = shown_in(page, "Take parts out", tmp_path)
    again = json.loads(answer_of(command, "--json"))["variables"]["probability"]["values"]
    mine = np.array([float(row["probability"]) for row in rows]).reshape(2, -1)
    np.testing.assert_allclose(mine, again, atol=1e-5)
    assert np.abs(mine[0] - mine[1]).max() > 0.05


def test_sources_of_predictions_are_counted_again(served: Any, page: Any, tmp_path: Path) -> None:
    open_page(page, served.at(f"#/1/checkpoint?{RUN}"))
    command, rows = shown_in(page, "Where predictions come from", tmp_path)
    found = json.loads(answer_of(command, "--json"))
    lines = found["coordinates"]["root_line"]
    mine = {line: sum(int(row["line_count"]) for row in rows if int(row["root_line"]) == line) for line in lines}
    assert mine == dict(zip(lines, found["variables"]["n"]["values"], strict=True))


@pytest.mark.parametrize("control", ["random", "rest"])
def test_a_swap_is_made_again_with_its_control(served: Any, page: Any, tmp_path: Path, control: str) -> None:
    open_page(page, served.at(f"#/1/subspace?{PAIR}&subspace.control={control}&subspace.seed=7"))
    title = {"random": "Control: random subspaces", "rest": "Control: everything else"}[control]
    command, rows = shown_in(page, title, tmp_path)
    table = [line.split() for line in answer_of(command).splitlines() if re.match("base|counterfactual|swapped", line)]
    fraction = {
        (row["condition"], row["output"]): float(row["value"]) for row in rows if row.get("variable") == "probability"
    }
    conditions = list(dict.fromkeys(condition for condition, _ in fraction))
    assert len(table) == len(conditions) == 3
    for condition, (_, _, base, source) in zip(conditions, table, strict=True):
        assert fraction[condition, "4"] == pytest.approx(float(base), abs=6e-4)
        assert fraction[condition, "3"] == pytest.approx(float(source), abs=6e-4)
