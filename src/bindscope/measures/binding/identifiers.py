"""Binding identifiers: is a name tied to its value by an identifier of their line, or by one holding the other?

Feng and Steinhardt (arXiv 2310.17191) find that language models give a name and its value a common vector, the binding
identifier, added to each. Then, at the layers where it holds,

    factorised       a value (or name) taken from another program answers for whatever name (value) has the same line
    exchanged        moving names, values or whole lines to each other's positions leaves every binding as it was
    mean             adding the mean difference of two lines' names (or values) to one and taking it from the other swaps them
    order            exchanging only the part inside the subspace of the means over lines swaps them (2409.05448)
    random vector    control of ``mean``: a random vector of equal norm
    shuffled order   control of ``order``: the subspace of as many means over randomly chosen lines

Each is done to the *name* (left of '='), the *value* (right of it) or the whole *line* of two direct bindings, and the program is
asked for one of them. ``swapped`` is the fraction that answers as if the two were exchanged (for a value from another program: with
that value), ``kept`` the fraction that answers as before.

A token learns only from those before it. So the earlier line is asked for, whose name the later value can find; of exchanged names
the later line's, whose value can find the earlier name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.interventions.rewriting import Rewrite, read_streams, rewritten_answers
from bindscope.measures.binding.line_means import LineMeans, order_bases
from bindscope.measures.evaluation import read_answers
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, to_digits
from bindscope.tasks.binding.exchanges import ExchangePrograms, sample_exchanges
from bindscope.tasks.binding.sampler import sample_programs
from bindscope.tasks.task import Batch

FACTORISED, EXCHANGED, MEAN, VECTOR = "factorised", "exchanged", "mean", "random vector"
ORDER, SHUFFLED = "order", "shuffled order"
INTERVENTIONS = (FACTORISED, EXCHANGED, MEAN, VECTOR, ORDER, SHUFFLED)
OF_LINES = (EXCHANGED, MEAN, VECTOR)  # what is done to whole lines
PARTS = ("name", "value", "line")
N_MEANS = 400  # programs that the means over lines are taken from
Cell = tuple[str, str]


@dataclass(frozen=True, eq=False)
class IdentifierPrograms:
    """What one measurement is made on: drawn once, and used at every checkpoint."""

    earlier: ExchangePrograms  # asked for the earlier of the two lines
    later: ExchangePrograms
    others: Batch  # programs to take means over lines from
    seed: int


def draw_identifier_programs(task: BindingTask, rng: np.random.Generator, n: int, seed: int = 0) -> IdentifierPrograms:
    """Twice ``n`` programs with two direct bindings to exchange, and ``N_MEANS`` others of the task."""
    programs = sample_programs(rng, task.grammar, N_MEANS, task.lines)
    others = task.ask(programs, np.full((N_MEANS, 1), task.lines - 1))
    earlier, later = (sample_exchanges(task, rng, n, asked_later) for asked_later in (False, True))
    return IdentifierPrograms(earlier, later, others, seed)


def measure_identifiers(model: Transformer, drawn: IdentifierPrograms) -> xr.Dataset:
    """``swapped`` and ``kept`` over (intervention, part, layer) with Wilson intervals; ``accuracy`` of the unchanged programs;
    and over (part, layer) how much of the activations' variance the line's number explains (``explained``), and how much of
    that lies in two directions (``in_two``).
    """
    n_layers, n = model.config.n_layers, len(drawn.earlier)
    swapped, kept = (np.full((len(INTERVENTIONS), len(PARTS), n_layers), np.nan) for _ in range(2))
    means = LineMeans(model, drawn.others)
    for (name, part), exchanges, found in intervene(model, drawn, means):
        cell = INTERVENTIONS.index(name), PARTS.index(part)
        swapped[cell] = (found == expected_digits(exchanges, name, part)).sum(1)
        kept[cell] = (found == own_digits(exchanges)).sum(1)
    variables: dict[str, Any] = {}
    for name, hits in (("swapped", swapped), ("kept", kept)):
        trials = np.where(np.isnan(hits), 0, n)
        variables |= fraction_variables(name, ("intervention", "part", "layer"), np.nan_to_num(hits), trials)
    for name in ("explained", "in_two"):
        values = np.stack([getattr(means, name)(part) for part in PARTS])
        variables[name] = (("part", "layer"), values, {"units": "fraction"})
    right = [answers_right(model, exchanges) for exchanges in (drawn.earlier, drawn.later)]
    variables["accuracy"] = ((), float(np.mean(right)), {"units": "fraction"})
    coords = {"intervention": list(INTERVENTIONS), "part": list(PARTS), "layer": np.arange(n_layers)}
    return xr.Dataset(variables, coords, {"n": n, "interval": "95 %, Wilson"})


def intervene(
    model: Transformer, drawn: IdentifierPrograms, means: LineMeans
) -> Iterator[tuple[Cell, ExchangePrograms, np.ndarray]]:
    """Each intervention and part, the programs it is done to, and the digits [layer, program] that they answer."""
    of_names = tuple(name for name in INTERVENTIONS if name != EXCHANGED)
    for part, exchanges, names in (
        ("name", drawn.earlier, of_names),
        ("name", drawn.later, (EXCHANGED,)),
        ("value", drawn.earlier, INTERVENTIONS),
        ("line", drawn.earlier, OF_LINES),
    ):
        built = build_rewrites(model, exchanges, part, means, drawn.seed)
        rewrites = {name: built[name] for name in names}
        first = torch.from_numpy(np.minimum(*(columns.min(1) for columns in exchanges.columns(part))))
        at, tokens = int(exchanges.base.target_positions[0]), torch.from_numpy(exchanges.base.tokens)
        outputs = rewritten_answers(model, tokens, at, rewrites, first)
        for name, digits in zip(rewrites, to_digits(exchanges.base, outputs)):
            yield (name, part), exchanges, digits


def expected_digits(exchanges: ExchangePrograms, name: str, part: str) -> np.ndarray:
    """What a program answers [program] whose two bindings are exchanged; of a value from elsewhere, that value."""
    rows = np.arange(len(exchanges))
    if name == FACTORISED and part == "value":
        return exchanges.source_values[rows, exchanges.asked]
    return exchanges.values[rows, exchanges.other]


def own_digits(exchanges: ExchangePrograms) -> np.ndarray:
    """The true answers [program]."""
    return exchanges.values[np.arange(len(exchanges)), exchanges.asked]


def answers_right(model: Transformer, exchanges: ExchangePrograms) -> np.ndarray:
    """Whether the unchanged programs [program] are answered correctly."""
    return to_digits(exchanges.base, read_answers(model, exchanges.base).argmax(1)) == own_digits(exchanges)


def build_rewrites(
    model: Transformer, exchanges: ExchangePrograms, part: str, means: LineMeans, seed: int
) -> dict[str, Rewrite]:
    """Every intervention on one part of the two lines."""
    mine, other = (torch.from_numpy(columns) for columns in exchanges.columns(part))  # [program, k]
    lines = torch.from_numpy(np.stack([exchanges.asked, exchanges.other])).long()
    by_line, generator = means.at(part), torch.Generator().manual_seed(seed)
    noise = torch.randn(len(by_line), len(exchanges), *by_line.shape[2:], generator=generator).to(by_line.device)
    source = exchanges.exchanged if part == "name" else exchanges.renamed
    taken = read_streams(model, torch.from_numpy(source.tokens), int(source.target_positions[0]))

    def take(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
        from_there = (_get(taken[layer][rows], columns[rows]) for columns in (mine, other))
        return _put(stream, mine[rows], other[rows], *from_there)

    def exchange(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
        return _put(stream, mine[rows], other[rows], _get(stream, other[rows]), _get(stream, mine[rows]))

    def mean(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
        return _add(stream, mine[rows], other[rows], by_line[layer, lines[1, rows]] - by_line[layer, lines[0, rows]])

    def vector(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
        size = (by_line[layer, lines[1, rows]] - by_line[layer, lines[0, rows]]).norm(dim=-1, keepdim=True)
        drawn = noise[layer, rows]
        return _add(stream, mine[rows], other[rows], drawn / drawn.norm(dim=-1, keepdim=True) * size)

    def project(bases: Tensor) -> Rewrite:
        def rewrite(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
            gap = _get(stream, other[rows]) - _get(stream, mine[rows])  # [row, k, d_model]
            inside = torch.einsum("rkd,kbd,kbe->rke", gap, bases[layer], bases[layer])
            return _add(stream, mine[rows], other[rows], inside)

        return rewrite

    order, shuffled = (project(order_bases(each)) for each in (by_line, means.shuffled(part, generator)))
    return dict(zip(INTERVENTIONS, (take, exchange, mean, vector, order, shuffled)))


def _get(stream: Tensor, columns: Tensor) -> Tensor:
    """[row, k, d_model] at columns [row, k]."""
    return stream[torch.arange(len(stream))[:, None], columns]


def _put(stream: Tensor, mine: Tensor, other: Tensor, at_mine: Tensor, at_other: Tensor) -> Tensor:
    rows = torch.arange(len(stream))[:, None]
    stream[rows, mine], stream[rows, other] = at_mine, at_other
    return stream


def _add(stream: Tensor, mine: Tensor, other: Tensor, shift: Tensor) -> Tensor:
    """The shift added to my line and taken from the other."""
    rows = torch.arange(len(stream))[:, None]
    stream[rows, mine] += shift
    stream[rows, other] -= shift
    return stream
