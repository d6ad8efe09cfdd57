"""How many sums a second training takes, ours beside the same model as the authors of the study train it.

    python benchmarks/sums_training.py --rounds 15
    python benchmarks/sums_training.py --rounds 15 --clock cpu

A step is forward, backward and fused AdamW on the same 512 sums, with the loss at the last column; the model is that of
the preset ``assign-add``. All contenders have the same weights, and must give the same logits before anything is timed.
They take turns, so that all meet the same machine; medians over the rounds are printed. *Hooked style* is written here
in the manner of TransformerLens: a weight a head, materialised patterns, a hook point at every step, logits at every
column. TransformerLens itself (below 4, which has its HookedTransformer) takes part where it is installed; its first
layer's MLP, which this model does not have, is left out of its computation too.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.model.convert.transformer_lens import state_to_transformer_lens
from bindscope.model.lean import Lean, shorten
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.task import Batch
from bindscope.training.loss import batch_loss
from bindscope.training.memory import keep_freed_memory
from bindscope.training.optimizer import build_optimizer
from turns import choose_clock, compare, fastest, medians, note, time_in_turns

GOAL = 3.0
PRESET = "assign-add"
Step = Callable[[], object]


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # for everyone, as a training run of ours does
    config = find_preset(PRESET).config
    batch = config.task.sample_batch(np.random.default_rng(0), options.batch)
    contenders = build_contenders(Transformer(config.model, torch.Generator().manual_seed(0)), batch)
    turns = time_in_turns(contenders, options.rounds, choose_clock(options.clock))
    seconds = medians(turns)
    print(
        f"{PRESET}, batch {options.batch}, {options.threads} thread(s), {options.rounds} rounds, {options.clock} time\n"
    )
    print(f"{'':34}{'step':>10}{'examples/s':>13}{'ours is':>10}")
    for name, time_ in seconds.items():
        ratio = "" if name == "ours" else f"{time_ / seconds['ours']:9.1f}×"
        print(f"{name:34}{time_ * 1e3:7.1f} ms{options.batch / time_:13,.0f}{ratio}")
    peer = fastest(turns)
    ratio = compare(turns, peer)
    print(f"\nours: {ratio} the examples a second of the fastest peer ({peer}; goal ≥ {GOAL:g}×)")
    note("sums_training", f"a training step of {PRESET}", ratio=ratio, peer=peer, seconds=seconds["ours"], goal=GOAL)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often everyone has a turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads > 1:
        parser.error("--clock cpu adds up the time of all threads: use it with --threads 1.")
    return options


def build_contenders(ours: Transformer, batch: Batch) -> dict[str, Step]:
    """A training step of each, all starting from the same weights."""
    tokens, answers = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets[:, 0])
    peers: dict[str, nn.Module | None] = {"hooked style": HookedStyle(ours), "TransformerLens": build_lens(ours)}
    answering = shorten(ours)  # as training calls it
    assert isinstance(answering, Lean)
    steps = {"ours": training_step(ours, lambda: batch_loss(answering, batch))}
    whole = copy.deepcopy(ours)
    steps["ours, logits at every column"] = training_step(whole, whole_sequence_loss(whole, tokens, answers))
    for name, peer in peers.items():
        if peer is None:
            print(f"{name}: not installed here, left out", file=sys.stderr)
            continue
        check_same_function(ours, peer, tokens, name)
        steps[name] = training_step(peer, whole_sequence_loss(peer, tokens, answers))
    return steps


def whole_sequence_loss(model: nn.Module, tokens: Tensor, answers: Tensor) -> Callable[[], Tensor]:
    """Logits at every column, the loss at the last."""
    return lambda: F.cross_entropy(model(tokens)[:, -1], answers)


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Step:
    """Everyone gets the same optimizer."""
    optimizer = build_optimizer(model, find_preset(PRESET).config.training.optimizer)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def build_lens(ours: Transformer) -> nn.Module | None:
    """TransformerLens's own HookedTransformer; None where it, or its version below 4, is not installed."""
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        return None
    config = ours.config
    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=config.n_layers,
            d_model=config.d_model,
            d_head=config.d_head,
            n_heads=config.n_heads,
            d_mlp=config.d_mlp,
            d_vocab=config.d_vocab,
            d_vocab_out=config.outputs,
            n_ctx=config.n_positions,
            act_fn="relu",
            normalization_type=None,
            device="cpu",
        )
    )
    model.load_state_dict(state_to_transformer_lens(ours), strict=False)
    for layer, block in enumerate(model.blocks):
        if layer not in config.layers_with_mlp:
            block.cfg = copy.deepcopy(block.cfg)
            block.cfg.attn_only = True
            del block.mlp
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".b_" not in name)  # the model has no biases
    return model


class HookPoint(nn.Module):
    """A named position that lets hooks see and change what passes."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class HookedBlock(nn.Module):
    """A block without norm or biases, with a weight a head and a hook point at every step."""

    def __init__(self, source: nn.Module) -> None:
        super().__init__()
        attention, mlp = source.attention, source.mlp
        for letter in "QKVO":
            weight = getattr(attention, f"W_{letter}").detach().clone()  # [head, d_model, d_head], O the other way
            self.register_parameter(f"W_{letter}", nn.Parameter(weight.contiguous()))
        self.has_mlp = mlp is not None
        if self.has_mlp:
            self.W_in = nn.Parameter(mlp.up.weight.detach().T.clone().contiguous())  # type: ignore[union-attr]
            self.W_out = nn.Parameter(mlp.down.weight.detach().T.clone().contiguous())  # type: ignore[union-attr]
        names = "resid_pre q k v attn_scores pattern z attn_out resid_mid pre post mlp_out resid_post"
        self.hooks = nn.ModuleDict({name: HookPoint() for name in names.split()})

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hook = self.hooks
        x = hook["resid_pre"](x)
        q = hook["q"](torch.einsum("bpd,hde->bphe", x, self.W_Q))
        k = hook["k"](torch.einsum("bpd,hde->bphe", x, self.W_K))
        v = hook["v"](torch.einsum("bpd,hde->bphe", x, self.W_V))
        scores = torch.einsum("bqhe,bkhe->bhqk", q, k) / q.shape[-1] ** 0.5
        pattern = hook["pattern"](hook["attn_scores"](torch.where(mask, scores, -torch.inf)).softmax(-1))
        z = hook["z"](torch.einsum("bhqk,bkhe->bqhe", pattern, v))
        x = hook["resid_mid"](x + hook["attn_out"](torch.einsum("bqhe,hed->bqd", z, self.W_O)))
        if self.has_mlp:
            x = x + hook["mlp_out"](hook["post"](F.relu(hook["pre"](x @ self.W_in))) @ self.W_out)
        return hook["resid_post"](x)


class HookedStyle(nn.Module):
    """A model in the manner of TransformerLens 1 to 3, as small as it can be: logits at every column."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        self.W_E = nn.Parameter(ours.W_E.detach().clone())
        self.W_pos = nn.Parameter(ours.pos_embed.detach().clone())
        self.W_U = nn.Parameter(ours.W_U.detach().clone().contiguous())
        self.blocks = nn.ModuleList(HookedBlock(block) for block in ours.layers)
        self.hook_embed, self.hook_pos_embed = HookPoint(), HookPoint()
        n = ours.config.n_positions
        self.register_buffer("mask", torch.ones(n, n, dtype=torch.bool).tril())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.hook_embed(self.W_E[tokens]) + self.hook_pos_embed(self.W_pos)
        for block in self.blocks:
            x = block(x, self.mask)
        return x @ self.W_U


@torch.no_grad()
def check_same_function(ours: Transformer, peer: nn.Module, tokens: Tensor, name: str) -> None:
    difference = (ours(tokens[:8])[:, -1] - peer(tokens[:8])[:, -1]).abs().max().item()
    if difference > 1e-4:
        raise SystemExit(f"{name} computes something else: its logits differ by {difference:.2g}.")


if __name__ == "__main__":
    main()
