"""Writes the sections of docs/experiments.md on study 3, and their figures, from the datasets of its experiments.

python docs/figures/experiments.py             # from those that come with Bindscope
python docs/figures/experiments.py runs        # from those made under a directory

What stands between a section's conclusion and its limits was written by hand and stays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from bindscope.studies.framework.experiments import (
    Experiment,
    Variant,
    all_experiments,
    find_experiment_dataset,
    load_experiment_dataset,
)
from bindscope.studies.plots.style import save_figure

HERE = Path(__file__).parent
PAGE = HERE.parent / "experiments.md"
GROUPED = ("task", "width", "setting")  # labels that a row of the table stands for, beside the model


def main(runs_directory: Path) -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    for experiment in all_experiments().values():
        path = find_experiment_dataset(experiment.name, runs_directory)
        if path is None or not any("n" in variant.labels for variant in experiment.variants):
            continue
        dataset = load_experiment_dataset(path)
        save_figure(experiment.draw(dataset), HERE / f"experiment-{experiment.name}.svg")
        position = next((row for row, text in enumerate(sections) if text.startswith(f"{experiment.name}: ")), None)
        written = describe_section(experiment, dataset, "" if position is None else find_comment(sections[position]))
        if position is None:
            sections.append(written)
        else:
            sections[position] = written
        print(experiment.name)
    PAGE.write_text("\n## ".join(section.strip("\n") + "\n" for section in sections), encoding="utf-8")


def describe_section(experiment: Experiment, dataset: xr.Dataset, comment: str = "") -> str:
    """One section: question, command, settings, curves, figure, conclusion, what was written by hand, limits."""
    changes = ", ".join(f"`{key}={_show(value)}`" for key, value in experiment.changes.items())
    parts = [
        f"{experiment.name}: {experiment.question}",
        f"```sh\nbindscope experiment {experiment.name}\n```",
        f"`{experiment.preset}`"
        + (f" with {changes}" if changes else "")
        + "; n training symbols, n training sequences.",
        describe_curves(experiment.variants),
        f"![{experiment.question}](figures/experiment-{experiment.name}.svg)",
        experiment.conclude(dataset),
        comment,
        f"*Limits.* {experiment.limits}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_curves(variants: Sequence[Variant]) -> str:
    """A table of model × n: one row for each model (and task, width or setting), its n in one cell."""
    groups = [name for name in GROUPED if any(name in variant.labels for variant in variants)]
    cells: dict[tuple[str, ...], dict[bool, list[str]]] = {}
    values = "value" if "setting" in groups else "n"
    for variant in variants:
        row = (str(variant.labels["model"]), *(str(variant.labels.get(name, "")) for name in groups))
        row += (f"{variant.labels['n']}",) if values == "value" else ()
        number = f"{float(variant.labels[values]):,g}".replace("e-05", "e-5").replace("e-04", "e-4")
        cells.setdefault(row, {False: [], True: []})[variant.full].append(number)
    has_full = any(found[True] for found in cells.values())
    heads = ["model", *groups, *(["n"] if values == "value" else []), "values" if values == "value" else "n"]
    rows = [heads + (["n with `--full`"] if has_full else [])]
    rows.append(["---"] * len(rows[0]))
    for row, found in cells.items():
        rows.append([*row, ", ".join(found[False]) or "–", *([", ".join(found[True]) or "–"] if has_full else [])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def find_comment(section: str) -> str:
    """The paragraphs of a section between its conclusion and its limits."""
    blocks = section.strip("\n").split("\n\n")
    image = next((row for row, block in enumerate(blocks) if block.startswith("![")), None)
    if image is None:
        return ""
    return "\n\n".join(block for block in blocks[image + 2 :] if not block.startswith("*Limits.*"))


def _show(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("nowhere"))
