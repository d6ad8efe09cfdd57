"""A subspace put to work on one typed program or pair: swapped, and looked at along saved axes.

>>> swap_pair(model, pair_programs(base, other), search, subspace.swap).probability.sel(condition="swapped")
>>> project_program(model, program, search, kept_axes(projections, "values", "frozen", step=3700)).coordinate
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import student_interval
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.metrics import UNITS
from bindscope.interventions.outcome import measure_outcomes
from bindscope.measures.binding.projections import KINDS
from bindscope.model.run import run as run_model
from bindscope.model.run import to_host
from bindscope.model.transformer import Transformer
from bindscope.subspaces import Axes, Search, find_columns, label_columns, read_stream, swap_stream
from bindscope.subspaces.stream import Change
from bindscope.tasks.binding import BindingTask, CounterfactualPairs, Program, columns_of, pair_programs, to_digits
from bindscope.tasks.binding.program import LETTERS

CONDITIONS = ("base", "counterfactual", "swapped")


def swap_pair(
    model: Transformer, pairs: CounterfactualPairs, search: Search, change: Change, task: BindingTask | None = None
) -> xr.Dataset:
    """One pair whose stream is changed at the search's layer and position.

    ``probability`` (condition, output) of the base run, the counterfactual run and the changed run; every metric as one
    number.
    """
    at = torch.tensor([pairs.colon_position])
    with torch.no_grad():
        tokens = (torch.from_numpy(rows) for rows in (pairs.base_tokens, pairs.counterfactual_tokens))
        base, source = (run_model(model, rows, at=at).logits[:, 0] for rows in tokens)  # each [1, output]
    swapped = swap_stream(model, pairs, search.layer, find_columns(pairs, search.position), change)
    measured = measure_outcomes(swapped, base, source, contrast_pairs(pairs))
    fractions = torch.stack([to_host(base[0]), to_host(source[0]), swapped[0]]).double().softmax(-1).numpy()
    task = task or BindingTask()
    shown = task.gather_outputs(fractions)
    dataset = xr.Dataset({"probability": (("condition", "output"), shown, {"units": "fraction"})})
    for name, values in measured.items():
        dataset[name] = ((), float(values[0]), {"units": UNITS[name]})
    outputs = task.show_outputs(fractions.shape[1])
    base_answer, source_answer = to_digits(
        pairs.base, np.array([pairs.base_answers[0], pairs.counterfactual_answers[0]])
    )
    answers = {"base_answer": base_answer, "source_answer": source_answer}
    where = {"of": search.of, "rank": search.size, "layer": search.layer, "position": search.position}
    return dataset.assign_coords(condition=list(CONDITIONS), output=outputs).assign_attrs(
        {**{name: str(answer) for name, answer in answers.items()}, **where}
    )


def average_draws(swapped: Sequence[xr.Dataset]) -> xr.Dataset:
    """One pair swapped inside several subspaces: means over the draws, 95 % intervals of them, and how often it succeeded.

    ``probability_low`` and ``probability_high`` (output) are Student's interval of the swapped run's probability over draws;
    ``n_success`` counts the draws whose likeliest output is the counterfactual's answer.
    """
    draws = xr.concat(swapped, "draw", combine_attrs="override")
    dataset = draws.mean("draw", keep_attrs=True)
    after = draws.probability.sel(condition="swapped").transpose("draw", "output").values
    ends = np.clip([student_interval(column) for column in after.T], 0, 1).T
    for name, values in zip(("low", "high"), ends, strict=True):
        dataset[f"probability_{name}"] = ("output", values, {"units": "fraction"})
    tops = draws.output.values[after.argmax(1)]
    return dataset.assign_attrs(n_success=int((tops == swapped[0].attrs["source_answer"]).sum()))


def kept_axes(projections: xr.Dataset, quality: str, kind: str, step: int) -> Axes:
    """The axes of a saved result ``projections``; refitted ones are those of the nearest step that it has."""
    if kind not in KINDS:
        raise BindscopeError(f"'{kind}': axes are {', '.join(KINDS)}.")
    one = projections.sel(quality=quality)
    if kind == "random":
        centre, directions = one.random_centre.values, one.random_direction.values
    else:
        at = one.isel(step=-1) if kind == "frozen" else one.sel(step=step, method="nearest")
        centre, directions = at.centre.values, at.direction.values
    return Axes(*(torch.from_numpy(np.array(values, np.float32)) for values in (centre, directions)))


def project_program(
    model: Transformer, program: Program, search: Search, axes: Axes, task: BindingTask | None = None
) -> xr.Dataset:
    """Where a program's own columns lie: ``coordinate`` over (point, axis), with what each column stands for."""
    task = task or BindingTask()
    other = program.with_root_constant((program.answer + 1) % task.n_constants)  # only the base is read
    pairs = pair_programs(program, other, task)
    columns = find_columns(pairs, search.position)  # [1, column]
    known = columns[0] >= 0
    stream = read_stream(model, pairs.base_tokens, search.layer, columns)[0, torch.from_numpy(known)]
    coordinates = axes.coordinates(stream).numpy()
    positions = np.searchsorted(columns_of(pairs.base), columns[0][known])
    value, name = (label_columns(pairs.base, columns, of)[0][known] for of in ("values", "names"))
    dataset = xr.Dataset({"coordinate": (("point", "axis"), coordinates, {"units": "1"})})
    labels = {
        "position": positions,
        "token": [task.show_tokens(program)[position] for position in positions],
        "value": value,
        "name": [LETTERS[letter] for letter in name],
    }
    dataset = dataset.assign_coords(axis=np.arange(1, coordinates.shape[1] + 1))
    dataset = dataset.assign_coords({label: ("point", values) for label, values in labels.items()})
    return dataset.assign_attrs(of=search.of, layer=search.layer, position=search.position, depth=program.depth)
