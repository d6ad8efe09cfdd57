"""A small GPT-2 trained on made text, written as a Hugging Face directory: it stands in where no pretrained GPT-2 is at hand.

    python benchmarks/stand_in.py stand-in --steps 2000
    bindscope experiment gpt2 --pretrained stand-in

The text is made: tokens drawn at random, and every now and then a piece that stood before comes again. What such a text
has in common with a written one is that tokens recur, and that is all a model can learn from it: to find where a token
stood before, and what followed. It is no GPT-2, and says nothing about what a GPT-2 learns from the web.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.training.config import OptimizerConfig
from bindscope.training.optimizer import build_optimizer

D_VOCAB = 1024
LENGTH = 16
P_COPY, P_STOP = 0.5, 0.2  # a copy begins; a copy ends

SHAPE = ModelConfig(
    d_vocab=D_VOCAB,
    n_positions=LENGTH,
    n_layers=4,
    n_heads=4,
    d_model=128,
    d_head=32,
    d_mlp=512,
    positions="learned",
    activation="gelu_tanh",
    tied=True,
    init=InitConfig("gpt2", std=0.02, scale_residual=True),
)


def draw_text(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens [row, LENGTH + 1], and where a token follows from those before: it goes on with a piece that comes again."""
    tokens = rng.integers(D_VOCAB, size=(n_rows, LENGTH + 1))
    follows = np.zeros(tokens.shape, dtype=bool)
    source = np.full(n_rows, -1)  # the position being copied, −1 while nothing is
    for index in range(1, LENGTH + 1):
        goes_on = (source >= 0) & (rng.random(n_rows) >= P_STOP)
        begins = ~goes_on & (rng.random(n_rows) < P_COPY)
        source = np.where(goes_on, source + 1, np.where(begins, rng.integers(index, size=n_rows), -1))
        rows = np.flatnonzero(source >= 0)
        tokens[rows, index] = tokens[rows, source[rows]]
        follows[:, index] = goes_on
    return tokens, follows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="the directory to write, which must not exist yet")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this much processor time")
    given = parser.parse_args()
    model = Transformer(SHAPE, torch.Generator().manual_seed(given.seed))
    optimizer = build_optimizer(model, OptimizerConfig("muon", lr=given.lr))
    rng, began = np.random.default_rng(given.seed), time.process_time()
    for step in range(given.steps):
        minutes = (time.process_time() - began) / 60
        last = step == given.steps - 1 or minutes > given.minutes
        optimizer.scale_rates(min(1.0, (step + 1) / 50))
        tokens, follows = draw_text(rng, given.batch)
        logits = model(torch.from_numpy(tokens[:, :-1]))
        losses = F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(tokens[:, 1:]).flatten(), reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        if step % 50 == 0 or last:
            copied = losses[torch.from_numpy(follows[:, 1:]).flatten()].mean().item()
            print(f"step {step + 1:5,}  loss {losses.mean().item():.3f}  where it follows {copied:.3f}  "
                  f"{minutes:.1f} min", flush=True)  # fmt: skip
        if last:
            break
    export = export_hugging_face(model.eval(), given.directory)
    sys.stdout.write(f"{export.architecture} in {export.directory}\n")


if __name__ == "__main__":
    main()
