"""The circuit for modular addition without each of its parts: which splits fall when an attention edge or an output is taken away.

Edges are taken away in two ways: *zero* hides the looked-at position (score −∞, the rest of the row renormalised), and
*average* spreads the whole row evenly over what can be seen (so it is missing where other edges of the row are needed
too). Outputs become zero, or their mean over the sums.

>>> measure_ablations(model, task, ask_splits(task, rng, 200)).accuracy.sel(part="layer 2: = → values", kind="zero")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.measures.transplanting import Asked, OnProgress
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS, N_PREFIX, OPERAND_POSITIONS
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    from torch import Tensor

    from bindscope.interventions.answers import Edits
    from bindscope.model.transformer import Transformer

KINDS = ("zero", "average")
INTACT = "nothing"


@dataclass(frozen=True, eq=False)
class Ablation:
    """What is taken away: some edges of one layer, or what is written at some positions."""

    name: str
    layer: int
    edges: np.ndarray | None = None  # [sum, query, key] bool
    output: str = ""  # the name of a site, such as attn_out
    positions: tuple[int, ...] = ()
    whole: bool = False  # the edges are all that the looking position needs: only then is its row made even
    control: bool = False  # the circuit does not need it


def measure_ablations(
    model: Transformer, task: AssignAddTask, asked: Asked, on_progress: OnProgress | None = None
) -> xr.Dataset:
    """``accuracy`` over (part, kind, split) with Wilson intervals; the part ``nothing`` is the model as it is."""
    ablations = list_ablations(model, task, asked.batch)
    names, kinds = [INTACT, *(ablation.name for ablation in ablations)], KINDS
    n = np.array([len(asked.batch.targets[split]) for split in asked.splits.values()])
    hits, n_asked = np.zeros((2, len(names), len(kinds), len(n)))

    def count(right: np.ndarray) -> np.ndarray:
        return np.array([right[split].sum() for split in asked.splits.values()])

    n_asked[0] = n
    hits[0] = count(_answer(model, asked.batch, lambda rows: {}))
    for done, ablation in enumerate(ablations, start=1):
        for index, kind in enumerate(kinds):
            if kind == "zero" or ablation.whole or ablation.output:
                hits[done, index] = count(_answer(model, asked.batch, _edits(model, asked.batch, ablation, kind)))
                n_asked[done, index] = n
        if on_progress is not None:
            on_progress(done, len(ablations))
    variables: dict[str, Any] = fraction_variables("accuracy", ["part", "kind", "split"], hits, n_asked)
    control = ("part", [False, *(ablation.control for ablation in ablations)])
    coordinates = {"part": names, "kind": list(kinds), "split": list(asked.splits), "control": control}
    return xr.Dataset({**variables, "n": ("split", n)}, coordinates)


def list_ablations(model: Transformer, task: AssignAddTask, batch: Batch) -> list[Ablation]:
    """The parts of the circuit that a two-layer model is said to have, and for each layer what it does not need."""
    if model.config.n_layers != 2:
        raise BindscopeError("the circuit for modular addition has two layers; this model has another number of them.")
    first, second = OPERAND_POSITIONS
    values = task.sequences.value_positions(batch.tokens)  # [sum, 2]
    to_variable = _variable_edges(batch, task)
    looks = {name: _from_equals(batch, columns) for name, columns in _columns_of(values).items()}
    seen = _from_equals(batch, np.tile(np.arange(N_POSITIONS), (len(batch), 1)))
    last_mlp = [layer for layer in model.config.layers_with_mlp if layer == 1]
    return [
        Ablation("layer 1: number → its variable", 0, to_variable, whole=True),
        Ablation("layer 1: = → 13", 0, looks["13"]),
        Ablation("layer 1: = → 14", 0, looks["14"]),
        Ablation("layer 1: = → 13 and 14", 0, looks["13"] | looks["14"], whole=True),
        Ablation("layer 1: = → elsewhere", 0, seen & ~looks["13"] & ~looks["14"], control=True),
        Ablation("layer 2: = → first value", 1, looks["first"]),
        Ablation("layer 2: = → second value", 1, looks["second"]),
        Ablation("layer 2: = → values", 1, looks["first"] | looks["second"], whole=True),
        Ablation("layer 2: = → elsewhere", 1, seen & ~looks["first"] & ~looks["second"], control=True),
        Ablation("layer 1 output at assignments", 0, output="attn_out", positions=tuple(range(N_PREFIX))),
        Ablation("layer 1 output at operands", 0, output="attn_out", positions=(first, second), control=True),
        Ablation("layer 1 output at =", 0, output="attn_out", positions=(ANSWER_POSITION,)),
        Ablation("layer 2 output at =", 1, output="attn_out", positions=(ANSWER_POSITION,)),
        *(Ablation("MLP at =", layer, output="mlp_out", positions=(ANSWER_POSITION,)) for layer in last_mlp),
    ]


def _columns_of(values: np.ndarray) -> Mapping[str, np.ndarray]:
    first, second = OPERAND_POSITIONS
    fixed = {str(index): np.full((len(values), 1), index) for index in (first, second)}
    return {**fixed, "first": values[:, :1], "second": values[:, 1:]}


def _from_equals(batch: Batch, columns: np.ndarray) -> np.ndarray:
    """Edges from = to these columns [sum, k] of each sum: [sum, query, key]."""
    edges = np.zeros((len(batch), N_POSITIONS, N_POSITIONS), bool)
    np.put_along_axis(edges[:, ANSWER_POSITION], columns, True, axis=1)
    return edges


def _variable_edges(batch: Batch, task: AssignAddTask) -> np.ndarray:
    """From each assigned number to the variable before it."""
    edges = np.zeros((len(batch), N_POSITIONS, N_POSITIONS), bool)
    row, column = np.nonzero(batch.tokens[:, :N_PREFIX] >= task.sequences.first_variable_token)
    edges[row, column + 1, column] = True
    return edges


def _edits(model: Transformer, batch: Batch, ablation: Ablation, kind: str) -> Callable[[slice], Edits]:
    if ablation.edges is not None:
        return lambda rows: {f"L{ablation.layer}.scores": _hide(ablation.edges[rows], kind)}  # type: ignore[index]
    site = f"L{ablation.layer}.{ablation.output}@{','.join(map(str, ablation.positions))}"
    mean = _mean_of(model, batch, site) if kind == "average" else None
    return lambda rows: {site: lambda old: old * 0 if mean is None else mean.expand_as(old)}


def _hide(edges: np.ndarray, kind: str) -> Callable[[Tensor], Tensor]:
    """Scores [row, head, query, key] with these edges hidden, or with the rows that have such an edge made even."""
    import torch

    marked = torch.from_numpy(edges)[:, None]

    def edit(scores: Tensor) -> Tensor:
        if kind == "zero":
            return scores.masked_fill(marked.to(scores.device), float("-inf"))
        even = torch.where(torch.isneginf(scores), scores, torch.zeros_like(scores))
        return torch.where(marked.any(-1, keepdim=True).to(scores.device), even, scores)

    return edit


def _mean_of(model: Transformer, batch: Batch, site: str) -> Tensor:
    import torch

    from bindscope.model.run import run

    with torch.no_grad():
        return run(model, torch.from_numpy(batch.tokens), read=[site], layout=batch.layout)[site].mean(0, keepdim=True)


def _answer(model: Transformer, batch: Batch, edits: Callable[[slice], Edits]) -> np.ndarray:
    from bindscope.interventions.answers import read_changed

    return read_changed(model, batch, edits)["correct"] > 0
