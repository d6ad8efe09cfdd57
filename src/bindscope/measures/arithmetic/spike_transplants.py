"""What a spike is: which part of the later model brings the earlier one over it, and which variable rises most.

>>> dataset = transplant_across(run.checkpoint(5300), run.checkpoint(5400), None, task, ("1tr", "2tr"), rng, n=200)
>>> dataset.total_fraction.sel(part="routing", direction="reproduce")
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.asked import ask_splits, with_split
from bindscope.measures.arithmetic.by_variable import OPERANDS, ask_by_variable, ask_one_variable, right_by_variable
from bindscope.measures.transplanting import (
    Asked,
    answer_control,
    answer_right,
    answer_transplanted,
    find_row,
    label_fractions,
    label_transplants,
)
from bindscope.tasks.assign_add import AssignAddTask

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

ITS_VARIABLE = "its variable"
FOCUS = "focus"
CONTROLLED = ("routing", "pattern 2")  # rows whose control is drawn many times
N_RANDOM = 20
DIRECTIONS = ("reproduce", "undo")
ROWS = (
    "everything", "routing", "computing", "embeddings", "numbers", "variables", ITS_VARIABLE, "positions",
    "position 13", "position 14", "QK1", "OV1", "QK2", "QK2·OV1", "OV2", "MLP", "unembedding", "QK1 + QK2·OV1",
    "QK1 + QK2·OV1 + variables", "QK1 + QK2·OV1 + variables + positions", "pattern 1", "pattern 1 of =", "pattern 2",
)  # fmt: skip  # fmt: skip


def transplant_across(
    before: Transformer,
    after: Transformer,
    earlier: Transformer | None,
    task: AssignAddTask,
    jumped: Collection[str],
    rng: np.random.Generator,
    n: int,
    seed: int = 0,
    on_cell: Callable[[], None] = lambda: None,
) -> xr.Dataset:
    """Everything about one spike between two models: over (direction, part) what each part carries of the jump of the
    splits ``jumped``, and the controls; ``earlier`` is a model as many steps before, if there is one.
    """
    variable, operand = find_focus(before, after, task, rng, n)
    name = task.sequences.variables[variable]
    nine = ask_splits(task, rng, n)
    asked = with_split(nine, FOCUS, ask_one_variable(task, rng, n, variable, operand), task)
    rows = [find_row(before, row.replace(ITS_VARIABLE, f"variable {name}"), asked) for row in ROWS]
    right = {"before": answer_right(before, asked.batch), "after": answer_right(after, asked.batch)}

    def measure(receiver: Transformer, donor: Transformer) -> np.ndarray:
        answered = []
        for row in rows:
            answered.append(answer_transplanted(receiver, donor, row, asked.batch))
            on_cell()
        return np.array(answered)

    both = [
        _label(right["before"], right["after"], measure(before, after), asked, seed, jumped),
        _label(right["after"], right["before"], measure(after, before), asked, seed, jumped),
    ]
    dataset = xr.concat(both, xr.IndexVariable("direction", list(DIRECTIONS)))
    controls = {"random": np.array([answer_control(before, after, row, asked.batch, rng) for row in rows], float)}
    if earlier is not None:  # each part carried over as many steps where nothing spikes, held against the jump
        moved = measure(earlier, before).astype(float) - answer_right(earlier, asked.batch)
        controls["drift"] = right["before"] + moved
    dataset = dataset.assign(_label_controls(right["before"], right["after"], controls, asked, seed, jumped))
    dataset["random_draws"] = _draw_controls(before, after, right, asked, rng, jumped)
    kinds = ["pattern" if any(part.looks for part in row) else "weights" for row in rows]
    dataset = dataset.assign(
        focus_variable=name, focus_operand=operand, jumped=("split", np.isin(dataset.split.values, list(jumped)))
    )
    return dataset.assign_coords(kind=("part", kinds))


def find_focus(
    before: Transformer, after: Transformer, task: AssignAddTask, rng: np.random.Generator, n: int
) -> tuple[int, str]:
    """The variable, and the operand it is, whose sums gain most between two checkpoints."""
    sums = ask_by_variable(task, rng, max(20, n // 4))
    (old, count), (new, _) = (right_by_variable(model, sums, task) for model in (before, after))
    gain = (new - old) / np.maximum(count, 1)  # [variable, position]
    variable, operand = np.unravel_index(int(gain.argmax()), gain.shape)
    return int(variable), OPERANDS[operand]


def _draw_controls(
    before: Transformer,
    after: Transformer,
    right: Mapping[str, np.ndarray],
    asked: Asked,
    rng: np.random.Generator,
    jumped: Collection[str],
) -> xr.DataArray:
    """Over (controlled, draw): the fraction of the jump that follows from each of many controls drawn at random."""
    nine = {name: rows for name, rows in asked.splits.items() if name != FOCUS}
    names = [str(draw) for draw in range(N_RANDOM)]
    fractions = []
    for row in CONTROLLED:
        parts = find_row(before, row, asked)
        changed = np.array([answer_control(before, after, parts, asked.batch, rng) for _ in names], float)
        drawn = label_fractions(names, right["before"], right["after"], changed, nine, 0, jumped)
        fractions.append(drawn.total_fraction.values)
    return xr.DataArray(
        np.array(fractions), {"controlled": list(CONTROLLED), "draw": range(N_RANDOM)}, ("controlled", "draw")
    )


def _label(
    receiver: np.ndarray, donor: np.ndarray, changed: np.ndarray, asked: Asked, seed: int, jumped: Collection[str]
) -> xr.Dataset:
    """The nine splits as they are, and the sums of the spike's variable beside them."""
    nine = {name: rows for name, rows in asked.splits.items() if name != FOCUS}
    dataset = label_transplants(ROWS, receiver, donor, changed, nine, seed, jumped)
    focus = label_transplants(ROWS, receiver, donor, changed, {FOCUS: asked.splits[FOCUS]}, seed).isel(
        split=0, drop=True
    )
    names = [name for name in focus.data_vars if name != "n" and not str(name).startswith("total")]
    return dataset.assign({f"focus_{name}": focus[name] for name in names})


def _label_controls(
    before: np.ndarray,
    after: np.ndarray,
    controls: Mapping[str, np.ndarray],
    asked: Asked,
    seed: int,
    jumped: Collection[str],
) -> dict[str, xr.DataArray]:
    """``NAME_fraction`` of the jump for each control, over all splits that jump and as ``focus_NAME_fraction``."""
    nine = {name: rows for name, rows in asked.splits.items() if name != FOCUS}
    found = {}
    for name in ("random", "drift"):
        changed = controls.get(name, np.full((len(ROWS), len(before)), np.nan))
        total = label_fractions(ROWS, before, after, changed, nine, seed, jumped)
        focus = label_fractions(ROWS, before, after, changed, {FOCUS: asked.splits[FOCUS]}, seed)
        for end in ("", "_low", "_high"):
            found[f"{name}_fraction{end}"] = total[f"total_fraction{end}"]
            found[f"focus_{name}_fraction{end}"] = focus[f"total_fraction{end}"]
    return found
