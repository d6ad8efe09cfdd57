"""The routing circuit for modular addition as matrices of its weights, before any sequence is run.

>>> matrices = circuit_matrices(SumForms.of(model, task), task)
>>> matrices.qk1.sel(query="=", key="position 13")
>>> matrices.variable_identity.sel(query_variable="b")

- ``qk1`` (query, key): the score that each embedding, token or position, gives each other in layer 1;
- ``positions`` (query_position, key_position): its position–position block; ``allowed`` says where a number's variable
  can stand (before it, and not two before it), and so which entries compete;
- ``variable_identity`` (query_variable, key_variable): (v OV1) QK2 (v OV1)ᵀ, the score in layer 2 between the copy of a
  variable that ``=`` holds and the copy that an assigned number holds;
- ``equals_to`` (embedding): the row of ``=`` in ``qk1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr

from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.progress import allowed_positions, prefers_previous, variable_identity
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import N_PREFIX

CONTESTED = range(3, N_PREFIX)  # numbers whose variable could stand at more than one position
N_FRESH = 20  # models without training
N_SHUFFLES = 200
KINDS = ("number", "operator", "equals", "pad", "variable", "position")


def circuit_matrices(forms: SumForms, task: AssignAddTask) -> xr.Dataset:
    """Every matrix of the routing circuit, labelled."""
    labels, kinds = name_embeddings(task, len(forms.positions))
    vectors = np.concatenate([forms.tokens, forms.positions])  # [embedding, d_model]
    qk1 = vectors @ forms.qk1 @ vectors.T
    index = np.arange(len(forms.positions))
    variables = list(task.sequences.variables)
    dataset = xr.Dataset(
        {
            "qk1": (("query", "key"), qk1),
            "positions": (("query_position", "key_position"), qk1[-len(index) :, -len(index) :]),
            "allowed": (("query_position", "key_position"), allowed_positions()),
            "variable_identity": (("query_variable", "key_variable"), variable_identity(forms)),
            "equals_to": (("embedding",), qk1[task.sequences.equals_token]),
        },
        {
            "query": labels,
            "key": labels,
            "query_kind": ("query", kinds),
            "key_kind": ("key", kinds),
            "embedding": labels,
            "kind": ("embedding", kinds),
            "query_position": index,
            "key_position": index,
            "query_variable": variables,
            "key_variable": variables,
        },
    )
    for name in ("qk1", "positions", "variable_identity", "equals_to"):
        dataset[name].attrs["units"] = "score"
    return dataset


def name_embeddings(task: AssignAddTask, n_positions: int) -> tuple[list[str], list[str]]:
    """A label and a kind for each token of the vocabulary, then for each position."""
    symbols = list(task.vocabulary.symbols)
    token_kinds = ["number"] * task.modulus + ["operator", "equals", "pad"] + ["variable"] * task.n_variables
    labels = [*symbols, *(f"position {index}" for index in range(n_positions))]
    return labels, [*token_kinds, *["position"] * n_positions]


def identity_margin(matrix: np.ndarray) -> np.ndarray:
    """By how much each row's diagonal exceeds the largest other entry of the row; [row, column] to [row]."""
    diagonal = np.eye(len(matrix), dtype=bool)
    margin: np.ndarray = matrix[diagonal] - np.where(diagonal, -np.inf, matrix).max(1)
    return margin


def position_margin(positions: np.ndarray) -> np.ndarray:
    """By how much each position prefers the one before to the best other allowed one, [query, key] to [query].

    NaN where nothing competes: outside 3 to 11.
    """
    rows = np.array(CONTESTED)
    others = allowed_positions()
    others[np.arange(1, len(others)), np.arange(len(others) - 1)] = False
    best = np.where(others, positions, -np.inf).max(1)
    margin = np.full(len(positions), np.nan)
    margin[rows] = positions[rows, rows - 1] - best[rows]
    return margin


def mean_by_kind(qk1: np.ndarray, query_kinds: np.ndarray, key_kinds: np.ndarray) -> xr.DataArray:
    """The mean score that each kind of embedding gives each kind, over (query_kind, key_kind)."""
    cells = [[qk1[np.ix_(query_kinds == a, key_kinds == b)].mean() for b in KINDS] for a in KINDS]
    return xr.DataArray(cells, {"query_kind": list(KINDS), "key_kind": list(KINDS)}, ("query_kind", "key_kind"))


def shuffled_identity(matrix: np.ndarray, rng: np.random.Generator, n_shuffles: int) -> np.ndarray:
    """[shuffle]: the fraction of rows with the largest entry at their match, when rows and columns are matched at random."""
    best = matrix.argmax(1)
    return np.array([(best == rng.permutation(len(matrix))).mean() for _ in range(n_shuffles)])


def shuffled_previous(positions: np.ndarray, rng: np.random.Generator, n_shuffles: int) -> np.ndarray:
    """[shuffle]: the fraction of contested positions that prefer the one before, with the keys 0 to 11 in a random order."""
    fractions = []
    for _ in range(n_shuffles):
        order = np.arange(len(positions))
        order[:N_PREFIX] = rng.permutation(N_PREFIX)
        fractions.append(contested_fraction(positions[:, order]))
    return np.array(fractions)


def contested_fraction(positions: np.ndarray) -> float:
    """The fraction of positions 3 to 11, those with a choice, that prefer the one before."""
    preferred = prefers_previous(positions)  # [position 1 to 11]
    return float(preferred[CONTESTED.start - 1 :].mean())


def summarise_matrices(matrices: xr.Dataset) -> xr.Dataset:
    """What is saved of one checkpoint's matrices: the small ones, and a number for each variable, position and kind."""
    variables, positions = matrices.query_variable.values, matrices.query_position.values
    scores = {kind: matrices.equals_to.values[matrices.kind.values == kind] for kind in ("variable", "position")}
    kinds = mean_by_kind(matrices.qk1.values, matrices.query_kind.values, matrices.key_kind.values)
    summary = xr.Dataset(
        {
            "equals_to_variable": ("variable", scores["variable"]),
            "equals_to_position": ("position", scores["position"]),
            "identity_margin": ("variable", identity_margin(matrices.variable_identity.values)),
            "position_margin": ("position", position_margin(matrices.positions.values)),
            "variable_identity": matrices.variable_identity,
            "positions": matrices.positions,
            "kind_score": (("from_kind", "to_kind"), kinds.values),
        },
        {
            "variable": variables,
            "position": positions,
            "from_kind": kinds.query_kind.values,
            "to_kind": kinds.key_kind.values,
        },
    )
    return summary.astype(np.float32)


def circuit_controls(config: ModelConfig, task: AssignAddTask, last: xr.Dataset) -> dict[str, Any]:
    """The same patterns in models that were never trained, and with rows and columns of ``last`` matched at random."""

    identity, previous = [], []
    for seed in range(N_FRESH):
        model = Transformer(config, torch.Generator().manual_seed(seed))
        fresh = circuit_matrices(SumForms.of(model, task), task)
        identity.append(float((fresh.variable_identity.values.argmax(1) == np.arange(task.n_variables)).mean()))
        previous.append(contested_fraction(fresh.positions.values))
    rng = np.random.default_rng(0)
    return {
        "fresh_identity": ("fresh", identity),
        "fresh_previous": ("fresh", previous),
        "shuffled_identity": ("shuffle", shuffled_identity(last.variable_identity.values, rng, N_SHUFFLES)),
        "shuffled_previous": ("shuffle", shuffled_previous(last.positions.values, rng, N_SHUFFLES)),
    }
