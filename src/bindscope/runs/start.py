"""Runs that begin with the weights of a pretrained GPT-2 instead of drawn ones.

The body, the LayerNorms and the first positions are GPT-2's. Its tokens mean nothing to a task, so each token of the task
takes the embedding of one of GPT-2's tokens, drawn without replacement by the run's seed. An unembedding that is not tied
to the embeddings, as where answers are numbers, is drawn again; dropout is what the run says, whatever GPT-2 was trained with.

>>> config = fit_to_start(override(find_preset("templates-gpt2").config, {"start.directory": "gpt2"}))
>>> model, origin = load_start(config)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.described import describe_directory
from bindscope.runs.config import RunConfig, derive_seed

if TYPE_CHECKING:
    import numpy as np

    from bindscope.model.transformer import Transformer

SHAPE = ("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "norm_epsilon", "activation")
FIXED: dict[str, Any] = {
    "positions": "learned", "causal": True, "norm": "layer", "bias": True, "mlp_layers": None, "n_kv_heads": None,
    "parallel": False, "gated": False,
}  # fmt: skip


def fit_to_start(config: RunConfig) -> RunConfig:
    """The same run with a model of the shape that its directory has; unchanged where it starts from no directory."""
    if config.start is None:
        return config
    directory = config.start.directory
    shape = describe_directory(directory, only="gpt2").config
    fitted = {name: getattr(shape, name) for name in SHAPE} | FIXED
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, **fitted))
    _check_fits(config, shape, directory)
    return config


def load_start(config: RunConfig) -> tuple[Transformer, dict[str, Any]]:
    """The model that a run begins with, and what its manifest says of where that came from."""
    import torch

    from bindscope.model.convert.checkpoint import load_into
    from bindscope.model.convert.directory import hash_directory
    from bindscope.model.convert.read import read_model
    from bindscope.model.transformer import Transformer

    assert config.start is not None
    directory = config.start.directory
    read = read_model(directory, only="gpt2")
    shape, state = read.config, read.state_dict()
    _check_fits(config, shape, directory)
    rows = draw_rows(config, shape.d_vocab)
    model = Transformer(config.model, torch.Generator().manual_seed(config.seeds["model"]))
    own = {name: value for name, value in model.state_dict().items() if name == "unembed.weight"}
    body = {name: value for name, value in state.items() if name != "unembed.weight"}
    taken = {"embed.weight": state["embed.weight"][rows], "pos_embed": state["pos_embed"][: config.model.n_positions]}
    load_into(model, {**body, **own, **taken}, directory)
    return model, {"directory": directory, "sha256": hash_directory(directory), "d_vocab": shape.d_vocab}


def draw_rows(config: RunConfig, d_vocab: int) -> np.ndarray:
    """[task token]: the token of GPT-2 whose embedding it takes, none of them twice."""
    import numpy as np

    generator = np.random.default_rng(derive_seed(config.seed, "start"))
    return generator.permutation(d_vocab)[: config.model.d_vocab]


def check_start(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """A run that must begin again begins with the files it began with."""
    if recorded.get("sha256") != found.get("sha256"):
        raise BindscopeError(
            f"start.directory: the files in {found['directory']} are not those that this run began with; put those back, "
            "or train a new run."
        )


def _check_fits(config: RunConfig, shape: ModelConfig, directory: str | Path) -> None:
    model, where = config.model, f"start.directory: {directory}"
    for name, needed in ({name: getattr(shape, name) for name in SHAPE} | FIXED).items():
        if getattr(model, name) != needed:
            raise BindscopeError(f"{where} needs model.{name} = {needed}, got {getattr(model, name)}.")
    if shape.d_vocab < model.d_vocab:
        raise BindscopeError(
            f"{where} has embeddings for {shape.d_vocab:,} tokens and this task needs {model.d_vocab:,}; "
            "lower task.alphabet."
        )
    if shape.n_positions < model.n_positions:
        raise BindscopeError(
            f"{where} has {shape.n_positions} positions and this task needs {model.n_positions}; give it shorter sequences."
        )
