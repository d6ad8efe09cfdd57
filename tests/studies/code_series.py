"""A series of small language models with the file layout of Pythia, random weights, made in a second."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from bindscope.model.config import ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from tasks.made_code import N_TOKENS, write_tokenizer

PADDED = N_TOKENS + 20  # a vocabulary with rows that no token has, as Pythia's


def write_series(folder: Path, steps: tuple[int, ...] = (0, 10)) -> Path:
    """``folder/step0/`` …: config.json, model.safetensors and tokenizer.json each; every step goes on from the one before."""
    config = ModelConfig(
        PADDED, 256, n_layers=3, n_heads=2, d_model=32, d_head=16, d_mlp=48, rope_fraction=0.5, parallel=True
    )
    torch.manual_seed(0)
    model = Transformer(config)
    tokenizer = write_tokenizer(folder.parent)
    for step in steps:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        export_hugging_face(model, folder / f"step{step}")
        shutil.copy(tokenizer, folder / f"step{step}")
    tokenizer.unlink()
    return folder
