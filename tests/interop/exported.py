"""Models of every shape that the Hugging Face formats can express, written to a directory."""

from pathlib import Path

import torch
from torch import Tensor

from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.tasks.vocabulary import Vocabulary
from model.test_convert import make_perturbed_model

CHARACTERS = Vocabulary(tuple("ab01 =\n#:?é"))
REALISTIC = {"d_model": 64, "d_head": 16, "n_heads": 4, "d_mlp": 256, "n_positions": 68}
NEOX = {
    "rope": {},
    "partial rope": {"rope_fraction": 0.5},
    "another rope base": {"rope_base": 500.0},
    "tied rope without biases": {"tied": True, "bias": False},
    "relu rope": {"activation": "relu"},
    "parallel": {"parallel": True, "activation": "silu", "norm_epsilon": 0.01},
    "rope at a realistic size": REALISTIC,
}
GPT2 = {
    "learned positions": {"positions": "learned"},
    "tanh gelu": {"positions": "learned", "activation": "gelu_tanh", "norm_epsilon": 0.01},
    "tied positions without biases": {"positions": "learned", "tied": True, "bias": False},
    "one wide head": {"positions": "learned", "n_heads": 1, "d_head": 12, "activation": "relu"},
    "learned positions at a realistic size": {"positions": "learned", **REALISTIC},
}
RMS_GATED = {"norm": "rms", "gated": True, "activation": "silu"}
LLAMA = {
    "llama": {**RMS_GATED, "bias": False},
    "llama with biases, tied": {**RMS_GATED, "tied": True, "norm_epsilon": 0.01},
    "llama, grouped and wide heads": {**RMS_GATED, "bias": False, "n_heads": 4, "n_kv_heads": 2, "rope_base": 500.0},
    "llama at a realistic size": {**RMS_GATED, "bias": False, **REALISTIC, "n_kv_heads": 1, "activation": "gelu"},
}
CASES = NEOX | GPT2 | LLAMA


def make_exported(directory: Path, changes: dict) -> Transformer:
    """A model whose every parameter was moved, biases and LayerNorm included, and its directory."""
    model = make_perturbed_model(**{"n_heads": 3, **changes})
    export_hugging_face(model, directory, CHARACTERS)
    return model


def assert_same_activation(theirs: Tensor, ours: Tensor, site: object, rounding: float = 2e-6) -> None:
    """Equal up to float32 rounding, which grows with the largest value that was summed."""
    tolerance = rounding * max(5.0, ours.abs().max().item())
    torch.testing.assert_close(theirs, ours, atol=tolerance, rtol=0, msg=lambda text: f"{site}: {text}")
