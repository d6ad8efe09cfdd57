"""The constructed dereferencer and the subspaces its stream is made of, as its documentation lists them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bindscope.model.transformer import Transformer
from bindscope.subspaces import Subspace
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer

TASK = BindingTask(lines=6, max_depth=2)
N_TOKENS, N_DIGITS, N_LETTERS = 40, 10, 26


@dataclass(frozen=True)
class Known:
    """The model and where its stream keeps what."""

    model: Transformer
    letters: Subspace  # among the tokens
    position: Subspace
    name: Subspace
    value: Subspace


def build_known() -> Known:
    model = construct_dereferencer(TASK.lines, TASK.max_depth)
    axes = torch.eye(model.config.d_model)
    position_end = N_TOKENS + model.config.n_positions
    name_end = position_end + N_LETTERS
    return Known(
        model,
        letters=Subspace(axes[N_DIGITS : N_DIGITS + N_LETTERS]),
        position=Subspace(axes[N_TOKENS:position_end]),
        name=Subspace(axes[position_end:name_end]),
        value=Subspace(axes[name_end : name_end + N_DIGITS]),
    )


VALUE_AT_QUERY = TASK.max_depth + 1  # every queried value has reached the query when this layer begins
