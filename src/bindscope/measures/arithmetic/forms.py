"""The weights of a model of modular addition by what they are for: embeddings by kind, and each layer's two bilinear forms.

Vectors are rows. In layer 1 position i attends to position j with the score x_i · QK1 · x_jᵀ (the scale 1/√d_head is in
QK), and takes from it x_j · OV1; likewise in layer 2. Everything is float64, so measures of weights have no rounding.

>>> forms = SumForms.of(model, task)
>>> forms.positions @ forms.qk1 @ forms.positions.T   # which position prefers which, by position alone
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.model.transformer import Attention, Transformer
    from bindscope.tasks.assign_add import AssignAddTask


@dataclass(frozen=True, eq=False)
class SumForms:
    """All weights of a two-layer, one-head model without LayerNorm or biases, as float64 arrays."""

    numbers: np.ndarray  # [modulus, d_model]
    operator: np.ndarray  # [d_model]
    equals: np.ndarray  # [d_model]
    pad: np.ndarray  # [d_model]
    variables: np.ndarray  # [variable, d_model]
    positions: np.ndarray  # [position, d_model]
    qk1: np.ndarray  # [d_model, d_model]; query on the left
    ov1: np.ndarray
    qk2: np.ndarray
    ov2: np.ndarray
    up: np.ndarray  # [d_model, d_mlp] of the last MLP
    down: np.ndarray  # [d_mlp, d_model]
    unembed: np.ndarray  # [d_model, modulus]

    @classmethod
    def of(cls, model: Transformer, task: AssignAddTask) -> SumForms:
        """Take a model apart; refuse one that has not this shape."""
        refuse_other_shapes(model)
        first, last = model.layers
        embeddings, sums = _array(model.W_E), task.sequences
        (qk1, ov1), (qk2, ov2) = (_forms_of(block.attention) for block in (first, last))
        assert last.mlp is not None
        return cls(
            numbers=embeddings[: task.modulus],
            operator=embeddings[sums.operator_token],
            equals=embeddings[sums.equals_token],
            pad=embeddings[sums.pad_token],
            variables=embeddings[sums.first_variable_token :],
            positions=_array(model.pos_embed),
            qk1=qk1,
            ov1=ov1,
            qk2=qk2,
            ov2=ov2,
            up=_array(last.mlp.up.weight).T,
            down=_array(last.mlp.down.weight).T,
            unembed=_array(model.W_U),
        )

    @property
    def tokens(self) -> np.ndarray:
        """The embeddings of all tokens in the order of the vocabulary, [token, d_model]."""
        signs = np.stack([self.operator, self.equals, self.pad])
        return np.concatenate([self.numbers, signs, self.variables])

    def mlp(self, x: np.ndarray) -> np.ndarray:
        """What the last MLP adds to x [..., d_model]."""
        return np.maximum(x @ self.up, 0) @ self.down


def refuse_other_shapes(model: Transformer) -> None:
    """The circuit is that of the published model: two layers of one head, ReLU, no LayerNorm, no biases."""
    config = model.config
    fits = (
        config.n_layers == 2
        and config.n_heads == 1
        and config.layers_with_mlp == (1,)
        and config.norm == "none"
        and config.activation == "relu"
        and config.positions == "learned"
        and not (config.bias or config.parallel or config.gated)
        and not (config.identity_qk or config.identity_vo)
    )
    if not fits:
        raise BindscopeError(
            "the circuit for modular addition is read off models of the published shape (two layers of one head, an MLP in the "
            "second, ReLU, learned positions, no LayerNorm, no biases, no identity scaling); this model has another."
        )


def _forms_of(attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    q, k, v, o = (_array(part[0]) for part in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O))
    return q @ k.T * attention.config.d_head**-0.5, v @ o


def _array(weights: torch.Tensor) -> np.ndarray:
    return weights.detach().cpu().double().numpy()
