"""Lookbacks: where the address, the pointer and the payload of a lookup are, layer by layer.

In a lookback (arXiv 2505.14685) a token holds a *payload* beside an *address*; a later token holds a *pointer*, attends to where
the address equals it, and takes the payload over. Each patch has several possible answers here, and the answer says what came
along:

``end``      the end of another program (query, colon, or hash, query and colon), whose value no line of the base holds:
             its *pointer* is looked up in the base (the base's value of the other name), its *payload* is the other value itself
``binding``  the right-hand sides of two lines, from a program with their names exchanged and other digits:
             *address* alone (the other line's digit of the base), *payload* alone (the same line's new digit), or *both*
             (the other line's new digit)
``source``   the names themselves from that program: *none* frozen, with the right-hand sides frozen as they were (*address*),
             or with everything else in the program frozen (*rest*). A name that acts through the address alone exchanges the
             answers in the first and last and in no other
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.interventions.rewriting import Rewrite, read_streams, rewritten_answers
from bindscope.measures.binding.mixture.measure import patch_ends
from bindscope.measures.binding.mixture.reading import POSITIONS
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, to_digits
from bindscope.tasks.binding.accounts import AccountPairs, sample_account_pairs
from bindscope.tasks.binding.exchanges import ExchangePrograms, sample_exchanges
from bindscope.tasks.binding.positions import QUERY_WIDTH

END_LABELS = ("pointer", "payload", "unchanged", "other")
BINDING_LABELS = ("address", "payload", "both", "unchanged", "other")
FROZEN = ("none", "address", "rest")


@dataclass(frozen=True, eq=False)
class LookbackPairs:
    """What one measurement is made on: drawn once, and used at every checkpoint."""

    ends: AccountPairs
    bindings: ExchangePrograms


def draw_lookback_pairs(task: BindingTask, rng: np.random.Generator, n: int) -> LookbackPairs:
    """``n`` pairs for the end and ``n`` programs for the bindings."""
    return LookbackPairs(
        sample_account_pairs(task, rng, n, absent=True), sample_exchanges(task, rng, n, asked_later=False)
    )


def measure_lookbacks(model: Transformer, drawn: LookbackPairs) -> xr.Dataset:
    """Fractions of answers with Wilson intervals: ``end`` over (position, layer, moved), ``binding`` over (layer, moved),
    ``source`` over (frozen, layer). Layers count what enters them.
    """
    n_layers = model.config.n_layers
    ends, bindings = label_ends(model, drawn.ends), label_bindings(model, drawn.bindings)
    sources = np.stack([exchange_names(model, drawn.bindings, frozen) for frozen in FROZEN])  # [frozen, layer, program]
    variables: dict[str, Any] = {}
    for name, dims, hits in (
        ("end", ("position", "layer", "came"), _count(ends[:, :n_layers], len(END_LABELS))),
        ("binding", ("layer", "moved"), _count(bindings, len(BINDING_LABELS))),
        ("source", ("frozen", "layer"), sources.sum(-1)),
    ):
        variables |= fraction_variables(name, dims, hits, len(drawn.bindings))
    coords = {
        "position": list(POSITIONS), "layer": np.arange(n_layers), "came": list(END_LABELS), "moved": list(BINDING_LABELS),
        "frozen": list(FROZEN),
    }  # fmt: skip
    return xr.Dataset(variables, coords, {"n": len(drawn.bindings), "interval": "95 %, Wilson"})


def label_ends(model: Transformer, drawn: AccountPairs) -> np.ndarray:
    """Which of ``END_LABELS`` each patched answer has [position, layer, pair]."""
    rows = np.arange(len(drawn))
    digits = patch_ends(model, drawn)
    payload = to_digits(drawn.pairs.base, drawn.pairs.counterfactual_answers)
    return _label(digits, drawn.values[rows, drawn.lexical], payload, drawn.values[rows, drawn.asked])


def label_bindings(model: Transformer, exchanges: ExchangePrograms) -> np.ndarray:
    """Which of ``BINDING_LABELS`` each answer has [layer, program] with both right-hand sides from the exchanged program."""
    rows = np.arange(len(exchanges))
    digits = _take_parts(model, exchanges, "value")
    mine, other = ((values[rows, exchanges.asked], values[rows, exchanges.other]) for values in (exchanges.values, exchanges.source_values))  # fmt: skip
    return _label(digits, mine[1], other[0], other[1], mine[0])


def exchange_names(model: Transformer, exchanges: ExchangePrograms, frozen: str) -> np.ndarray:
    """Whether the answer [layer, program] is the other line's, with both names from the exchanged program."""
    rows = np.arange(len(exchanges))
    marks = None
    if frozen != "none":
        n_columns = exchanges.base.tokens.shape[1]
        addresses = np.zeros((len(exchanges), n_columns), bool)
        for columns in exchanges.columns("value"):
            addresses[rows, columns[:, 0]] = True
        end = np.arange(n_columns) >= int(exchanges.base.target_positions[0]) - QUERY_WIDTH + 1
        marks = torch.from_numpy(addresses if frozen == "address" else ~addresses & ~end)
    digits = _take_parts(model, exchanges, "name", marks)
    found: np.ndarray = digits == exchanges.values[rows, exchanges.other]
    return found


def _take_parts(model: Transformer, exchanges: ExchangePrograms, part: str, frozen: Tensor | None = None) -> np.ndarray:
    """Digits [layer, program] with one part of both lines taken from the exchanged program."""
    at, source = int(exchanges.base.target_positions[0]), exchanges.exchanged
    columns = torch.from_numpy(np.concatenate(exchanges.columns(part), 1))  # [program, 2]
    streams = read_streams(model, torch.from_numpy(source.tokens), at)
    answers = rewritten_answers(
        model, torch.from_numpy(exchanges.base.tokens), at, {part: _taking(streams, columns)}, columns.min(1).values, frozen
    )  # fmt: skip
    return to_digits(exchanges.base, answers[0])


def _taking(streams: Tensor, columns: Tensor) -> Rewrite:
    def rewrite(layer: int, rows: Tensor, stream: Tensor) -> Tensor:
        at = torch.arange(len(rows))[:, None], columns[rows]
        stream[at] = streams[layer][rows][at]
        return stream

    return rewrite


def _label(digits: np.ndarray, *wanted: np.ndarray) -> np.ndarray:
    """The index of the digit that was answered among those wanted [row], their number where it is none of them."""
    labels = np.full(digits.shape, len(wanted))
    for index, digit in enumerate(wanted):
        labels = np.where(digits == digit, index, labels)
    return labels


def _count(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """How often each label occurs along the last axis: [..., label]."""
    found: np.ndarray = (labels[..., None] == np.arange(n_labels)).sum(-2)
    return found
