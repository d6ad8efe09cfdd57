"""Why ``=`` attends in layer 2 to an operand's value: its score, split by what both ends are made of.

Before layer 2 the residual stream at ``=`` is E₌ + P₁₅ + h₌, its token, its position and what layer 1 brought there; at a
value it is, say, E₇ + P₄ + h₄. The score is bilinear, so it is the sum of nine terms:

    {E₌, P₁₅, h₌} · QK2 · {E₇, P₄, h₄}ᵀ

of which the last, h₌ with h₄, is the match of variables (AA9). Two more ways to look at the same weights: what each token
becomes under OV, E·OV·Eᵀ, and [E; E·OV1]·QK2·[E; E·OV1]ᵀ, the scores between tokens and copies of tokens.

>>> terms = score_terms(SumForms.of(model, task), task, tokens, "second")   # [sequence, 3, 3]
>>> terms.sum((1, 2))                                                       # the scores themselves
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.by_variable import OPERANDS
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS

PARTS = ("token", "position", "layer 1")
SEEN = np.tril(np.ones((N_POSITIONS, N_POSITIONS), dtype=bool))  # [query, key]


def score_terms(forms: SumForms, task: AssignAddTask, tokens: np.ndarray, operand: str) -> np.ndarray:
    """The nine terms of the score that ``=`` gives, in layer 2, the value of one operand: [sequence, query part, key part]."""
    if operand not in OPERANDS:
        raise BindscopeError(f"operand: '{operand}' is unknown; use {' or '.join(OPERANDS)}.")
    position = task.sequences.value_positions(tokens)[:, OPERANDS.index(operand)]  # [sequence]
    parts, rows = _stream_parts(forms, tokens), np.arange(len(tokens))
    queries = np.stack([part[:, ANSWER_POSITION] for part in parts], 1)  # [sequence, part, d_model]
    keys = np.stack([part[rows, position] for part in parts], 1)
    terms: np.ndarray = queries @ forms.qk2 @ keys.transpose(0, 2, 1)
    return terms


def _stream_parts(forms: SumForms, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the residual stream before layer 2 is the sum of: token, position and layer 1's output, [sequence, position, d_model] each."""
    embedded = forms.tokens[tokens]
    positions = np.broadcast_to(forms.positions, embedded.shape)
    x = embedded + positions
    scores = np.where(SEEN, x @ forms.qk1 @ x.transpose(0, 2, 1), -np.inf)
    pattern = np.exp(scores - scores.max(-1, keepdims=True))
    pattern /= pattern.sum(-1, keepdims=True)
    return embedded, positions, pattern @ (x @ forms.ov1)


def describe_scores(forms: SumForms, task: AssignAddTask, sums: dict[tuple[str, str], np.ndarray]) -> xr.Dataset:
    """Over (variable, operand): ``term`` (…, query_part, key_part), the mean nine terms over sums of that variable as that
    operand; and over (variable) ``last_position_to_variable``, P₁₅·QK1·v.

    ``sums`` are token rows by (variable, operand).
    """
    variables = list(task.sequences.variables)
    terms = [
        [score_terms(forms, task, sums[variable, operand], operand).mean(0) for operand in OPERANDS]
        for variable in variables
    ]
    return xr.Dataset(
        {
            "term": (("variable", "operand", "query_part", "key_part"), np.array(terms), {"units": "score"}),
            "last_position_to_variable": (
                "variable",
                forms.positions[ANSWER_POSITION] @ forms.qk1 @ forms.variables.T,
                {"units": "score"},
            ),
        },
        {"variable": variables, "operand": list(OPERANDS), "query_part": list(PARTS), "key_part": list(PARTS)},
    )


def token_matrices(forms: SumForms, task: AssignAddTask) -> xr.Dataset:
    """``token_ov`` (layer, token, becomes): E·OV·Eᵀ of both layers; ``token_qk2`` (query, key): [E; E·OV1]·QK2·[E; E·OV1]ᵀ,
    where ``OV1 b`` is the copy of b that layer 1 makes.
    """
    names = list(task.vocabulary.symbols)
    both = np.concatenate([forms.tokens, forms.tokens @ forms.ov1])
    labels = [*names, *(f"OV1 {name}" for name in names)]
    becomes = [forms.tokens @ ov @ forms.tokens.T for ov in (forms.ov1, forms.ov2)]
    return xr.Dataset(
        {
            "token_ov": (("layer", "token", "becomes"), np.array(becomes), {"units": "1"}),
            "token_qk2": (("query", "key"), both @ forms.qk2 @ both.T, {"units": "score"}),
        },
        {"layer": [1, 2], "token": names, "becomes": names, "query": labels, "key": labels},
    )
