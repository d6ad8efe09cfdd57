"""The subspaces that a study keeps, put to work on one typed program or pair: swapped, and looked at along kept axes.

A subspace is found once for a checkpoint, on the same pairs and in the same place as the kept results ``subspaces`` and
``projections``, and then used on any program.

>>> found = find_kept_subspace(run, run.checkpoint("last"), "values")
>>> swap_pair(model, pair_programs(base, other), found.search, found.subspace.swap).probability.sel(condition="swapped")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.outcome import UNITS, measure_outcomes
from bindscope.model.run import run as run_model
from bindscope.model.transformer import Transformer
from bindscope.studies.binding.representation.measure import N_PAIRS, sample_halves
from bindscope.studies.binding.representation.projections import KINDS
from bindscope.subspaces import (
    Axes,
    Search,
    Subspace,
    default_search,
    find_columns,
    find_subspace,
    label_columns,
    random_subspace,
    read_stream,
    swap_stream,
)
from bindscope.subspaces.places import Quality
from bindscope.subspaces.stream import Change
from bindscope.tasks.binding import Program, pair_programs
from bindscope.tasks.binding.program import LETTERS, VOCABULARY

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.tasks.binding import CounterfactualPairs

Control = Literal["found", "random", "rest"]
CONDITIONS = ("base", "counterfactual", "swapped")
SEED = 0  # of the kept results


@dataclass(frozen=True, eq=False)
class Kept:
    """A subspace and where it was found."""

    search: Search
    subspace: Subspace

    def change(self, control: Control, seed: int = 0) -> Change:
        """What is swapped: the part inside, the part inside a random subspace of equal rank, or all but the part inside."""
        if control == "rest":
            return self.subspace.swap_rest
        if control == "random":
            generator = torch.Generator().manual_seed(seed)
            return random_subspace(self.subspace.d_model, self.subspace.rank, generator).swap
        return self.subspace.swap


def find_kept_subspace(run: Run, model: Transformer, quality: Quality) -> Kept:
    """The subspace of a checkpoint, fitted to the pairs of the kept results; at the last step it is theirs."""
    fit, _ = sample_halves(run, np.random.default_rng(SEED), N_PAIRS // 2)[quality]
    search = default_search(model, quality)
    found = find_subspace(model, fit, of=quality, layer=search.layer, place=search.place, rank=search.size)
    return Kept(search, found.subspace)


def swap_pair(model: Transformer, pairs: CounterfactualPairs, search: Search, change: Change) -> xr.Dataset:
    """One pair whose stream is changed at the search's layer and position.

    ``probability`` (condition, output) of the base run, the counterfactual run and the changed run; every metric as one
    number.
    """
    at = torch.tensor([pairs.colon_position])
    with torch.no_grad():
        tokens = (torch.from_numpy(rows) for rows in (pairs.base_tokens, pairs.counterfactual_tokens))
        base, source = (run_model(model, rows, at=at).logits[:, 0] for rows in tokens)  # each [1, output]
    swapped = swap_stream(model, pairs, search.layer, find_columns(pairs, search.place), change)
    measured = measure_outcomes(swapped, base, source, contrast_pairs(pairs))
    shares = torch.stack([base[0], source[0], swapped[0]]).double().softmax(-1).numpy()
    dataset = xr.Dataset({"probability": (("condition", "output"), shares, {"units": "share"})})
    for name, values in measured.items():
        dataset[name] = ((), float(values[0]), {"units": UNITS[name]})
    outputs = VOCABULARY.shown(shares.shape[1])
    answers = {"base_answer": int(pairs.base_answers[0]), "source_answer": int(pairs.counterfactual_answers[0])}
    where = {"of": search.of, "rank": search.size, "layer": search.layer, "place": search.place}
    return dataset.assign_coords(condition=list(CONDITIONS), output=outputs).assign_attrs(
        {**{name: str(answer) for name, answer in answers.items()}, **where}
    )


def kept_axes(projections: xr.Dataset, quality: str, kind: str, step: int) -> Axes:
    """The axes of a kept result ``projections``; refitted ones are those of the nearest step that it has."""
    if kind not in KINDS:
        raise BindscopeError(f"'{kind}': axes are {', '.join(KINDS)}.")
    one = projections.sel(quality=quality)
    if kind == "random":
        centre, directions = one.random_centre.values, one.random_direction.values
    else:
        at = one.isel(step=-1) if kind == "frozen" else one.sel(step=step, method="nearest")
        centre, directions = at.centre.values, at.direction.values
    return Axes(*(torch.from_numpy(np.array(values, np.float32)) for values in (centre, directions)))


def project_program(model: Transformer, program: Program, search: Search, axes: Axes) -> xr.Dataset:
    """Where a program's own columns lie: ``coordinate`` over (point, axis), with what each column stands for."""
    pairs = pair_programs(program, program.with_root_constant((program.answer + 1) % 10))  # only its base is read
    columns = find_columns(pairs, search.place)  # [1, column]
    known = columns[0] >= 0
    stream = read_stream(model, pairs.base_tokens, search.layer, columns)[0, torch.from_numpy(known)]
    coordinates = axes.coordinates(stream).numpy()
    positions = columns[0][known]
    value, name = (label_columns(pairs.base_tokens, columns, of)[0][known] for of in ("values", "names"))
    dataset = xr.Dataset({"coordinate": (("point", "axis"), coordinates, {"units": "1"})})
    labels = {
        "position": positions,
        "token": [program.shown_tokens[position] for position in positions],
        "value": value,
        "name": [LETTERS[letter] for letter in name],
    }
    dataset = dataset.assign_coords(axis=np.arange(1, coordinates.shape[1] + 1))
    dataset = dataset.assign_coords({label: ("point", values) for label, values in labels.items()})
    return dataset.assign_attrs(of=search.of, layer=search.layer, place=search.place, depth=program.depth)
