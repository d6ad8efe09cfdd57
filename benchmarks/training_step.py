"""How fast one training step is, ours beside the same model as others write it.

    python benchmarks/training_step.py --size laptop --threads 2
    python benchmarks/training_step.py --size paper --rounds 5 --batch 16

A step is forward, backward, clipping and fused AdamW on the same tokens: 16-line programs with one query each, the
answer trained. All contenders have the same weights and must give the same logits before anything is timed. They take
turns, so that all meet the same machine; medians over the rounds are printed. ``--clock cpu`` counts processor time
instead, for a busy machine (with one thread only). TransformerLens below 4 and Hugging Face transformers take part
where they are installed. ``--profile`` shows instead where the time of our steps goes (``training_profile.py``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.task import Batch
from bindscope.training.config import OptimizerConfig
from bindscope.training.loss import batch_loss
from bindscope.training.memory import keep_freed_memory
from bindscope.training.optimizer import build_optimizer
from peers import HookedStyle, NanoGPT, build_gpt_neox, build_transformer_lens
from training_profile import Product, profile_step
from turns import OURS, choose_clock, compare, fastest, medians, note, time_in_turns

LINES = 16
SIZES = {
    "laptop": dict(n_layers=5, d_model=64, n_heads=4, d_head=16, d_mlp=256),
    "paper": dict(n_layers=12, d_model=512, n_heads=8, d_head=64, d_mlp=2048, bias=False),
}
BATCH = {"laptop": 64, "paper": 16}
PROGRAMS = {"laptop": 32, "paper": 8}  # of the shared-prefix batches, 16 queries each
GEMM_SIZES = (512, 1024, 1536)


@dataclass(frozen=True)
class Contender:
    """Someone who can do a step, and what a step of theirs is worth."""

    name: str
    step: Callable[[], object]
    n_tokens: int
    n_queries: int
    flops: float = 0.0
    products: tuple[Product, ...] = ()  # of the forward pass, attention left out


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # for everyone, as a training run of ours does
    clock = choose_clock(options.clock)
    programs = options.programs or PROGRAMS[options.size]
    n_rows = options.batch or BATCH[options.size]
    ours, peers = build_contenders(options.size, n_rows, with_peers=not options.profile)
    sharing = build_sharing(options.size, programs)
    if options.profile:
        for contender in (ours[0], sharing[0]):
            profile_step(contender.name, contender.step, contender.flops, contender.products, options.rounds, clock)
        return
    gemms = [gemm_contender(size) for size in GEMM_SIZES]
    everyone = {contender.name: contender.step for contender in [*ours, *peers, *sharing, *gemms]}
    turns = time_in_turns(everyone, options.rounds, clock)
    print(f"{options.size}, {options.threads} thread(s), {options.rounds} rounds, {options.clock} time, medians\n")
    report(options.size, ours, peers, sharing, gemms, turns)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="laptop", help="the model of which preset")
    parser.add_argument("--rounds", type=int, default=9, help="how often everyone has a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, help="rows of one program and one query (default 64; paper 16)")
    parser.add_argument("--programs", type=int, help="rows of one program and 16 queries (default 32; paper 8)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--profile", action="store_true", help="show op by op where the time of our steps goes")
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads > 1:
        parser.error("--clock cpu adds up the time of all threads: use it with --threads 1.")
    return options


def build_contenders(size: str, n_rows: int, with_peers: bool) -> tuple[list[Contender], list[Contender]]:
    """Ours, plain and with identity scaling, and all peers, on the same one-query rows."""
    batch = BindingTask(lines=LINES).sample_batch(np.random.default_rng(0), n_rows)
    tokens, answers = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets[:, 0])
    plain = build_ours(size)
    ours = [our_contender("ours", plain, batch)]
    ours.append(our_contender("ours, identity scaling", build_ours(size, identity=True), batch))
    if not with_peers:
        return ours, []
    peers: dict[str, nn.Module | None] = {
        "nanoGPT style": NanoGPT(plain),
        "hooked style": HookedStyle(plain),
        "TransformerLens": build_transformer_lens(plain),
        "GPT-NeoX": build_gpt_neox(plain),
    }
    contenders = []
    for name, peer in peers.items():
        if peer is None:
            print(f"{name}: not installed here, left out", file=sys.stderr)
            continue
        check_same_function(plain, peer, batch, name)
        forward = answer_loss(peer, tokens, answers)
        contenders.append(Contender(name, training_step(peer, forward), tokens.numel(), n_rows))
    return ours, contenders


def build_sharing(size: str, n_programs: int) -> list[Contender]:
    """Ours on rows of one program and 16 queries."""
    task = BindingTask(lines=LINES, queries=LINES, balance="weights")
    batch = task.sample_batch(np.random.default_rng(0), n_programs)
    return [
        our_contender("ours, shared prefix", build_ours(size), batch),
        our_contender("ours, shared prefix, identity scaling", build_ours(size, identity=True), batch),
    ]


def build_ours(size: str, identity: bool = False) -> Transformer:
    task = BindingTask(lines=LINES)
    config = ModelConfig(
        d_vocab=len(task.vocabulary),
        n_positions=task.n_positions,
        identity_qk=identity,
        identity_vo=identity,
        init=InitConfig(scheme="fan_in"),
        **SIZES[size],  # type: ignore[arg-type]
    )
    return Transformer(config, torch.Generator().manual_seed(0))


def our_contender(name: str, model: Transformer, batch: Batch) -> Contender:
    step = training_step(model, lambda: batch_loss(model, batch))
    flops, products = step_flops(model.config, batch), linear_products(model.config, batch)
    return Contender(name, step, batch.tokens.size, batch.targets.size, flops, products)


def answer_loss(model: nn.Module, tokens: Tensor, answers: Tensor) -> Callable[[], Tensor]:
    return lambda: F.cross_entropy(model(tokens), answers)


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """Everyone gets the same optimizer and the same clipping."""
    optimizer, parameters = build_optimizer(model, OptimizerConfig(lr=1e-4)), list(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


@torch.no_grad()
def check_same_function(ours: Transformer, peer: nn.Module, batch: Batch, name: str) -> None:
    tokens = torch.from_numpy(batch.tokens[:2])
    difference = (ours(tokens)[:, -1] - peer(tokens)).abs().max().item()
    if difference > 1e-3:
        raise SystemExit(f"{name} computes something else: its logits differ by {difference:.2g}.")


def gemm_contender(size: int) -> Contender:
    """A float32 matrix product, the most this machine gives."""
    left, right, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    return Contender(f"torch.mm {size}³", lambda: torch.mm(left, right, out=out), 0, 0, 2.0 * size**3)


def step_flops(config: ModelConfig, batch: Batch) -> float:
    """Multiplications and additions that a step needs in its matrix products; backward is twice forward.

    Only visible pairs count in attention, and only the asked columns in the last layer's queries, output and MLP.
    """
    visible = visible_pairs(batch)  # [position]: how many columns each column sees
    per_pair = (
        4 * config.n_heads * config.d_head
        + (2 * int(config.identity_qk) + 2 * int(config.identity_vo)) * config.d_model
    )
    n_pairs = (config.n_layers - 1) * visible.sum() + visible[batch.target_positions].sum()
    linear = sum(product.flops for product in linear_products(config, batch))
    return 3.0 * (linear + len(batch.tokens) * float(n_pairs) * per_pair)


def linear_products(config: ModelConfig, batch: Batch) -> tuple[Product, ...]:
    """Every product of tokens and weights of a forward pass; the last layer's keys and values alone are of all columns."""
    n_rows, n_columns = batch.tokens.shape
    inner, d = config.n_heads * config.d_head, config.d_model
    n_all, n_asked = n_rows * n_columns, n_rows * len(batch.target_positions)
    products = [Product(n_asked, d, config.outputs)]
    for layer in range(config.n_layers):
        last = layer == config.n_layers - 1
        n = n_asked if last else n_all
        products += [Product(n, d, inner), Product(n_all, d, 2 * inner)] if last else [Product(n, d, 3 * inner)]
        products += [Product(n, inner, d)]
        if layer in config.layers_with_mlp:
            products += [Product(n, d, config.d_mlp), Product(n, config.d_mlp, d)]
    return tuple(products)


def visible_pairs(batch: Batch) -> np.ndarray:
    blocks = np.zeros(batch.tokens.shape[1]) if batch.layout.blocks is None else batch.layout.blocks
    return np.tril((blocks[None, :] == 0) | (blocks[None, :] == blocks[:, None])).sum(1)


def report(
    size: str,
    ours: list[Contender],
    peers: list[Contender],
    sharing: list[Contender],
    gemms: list[Contender],
    turns: dict[str, list[float]],
) -> None:
    seconds = medians(turns)
    peak = max(gemm.flops / seconds[gemm.name] for gemm in gemms)
    print(f"{'':40}{'step':>10}{'tokens/s':>11}{'queries/s':>11}{'of GEMM peak':>14}")
    for contender in [*ours, *peers, *sharing]:
        time_ = seconds[contender.name]
        fraction = f"{contender.flops / time_ / peak:13.0%}" if contender.flops else ""
        print(
            f"{contender.name:40}{time_ * 1e3:7.1f} ms{contender.n_tokens / time_:11,.0f}"
            f"{contender.n_queries / time_:11,.0f}{fraction}"
        )
    print(f"\nGEMM peak {peak / 1e9:.1f} GFLOP/s (float32 torch.mm)")
    best = fastest({peer.name: turns[peer.name] for peer in peers})
    for contender in ours:
        ratio, time_ = compare(turns, best, contender.name), seconds[contender.name]
        print(f"{contender.name}: {ratio} the fastest peer ({best}) per token")
        note(
            "training_step",
            f"a training step, {size} size{contender.name.removeprefix(OURS)}",
            ratio=ratio,
            peer=best,
            seconds=time_,
            of_peak=contender.flops / time_ / peak,
        )
    apart_rows = [*zip(sharing, ours), *((each, next(p for p in peers if p.name == best)) for each in sharing)]
    for together, apart in apart_rows:
        ratio = seconds[apart.name] / apart.n_queries * together.n_queries / seconds[together.name]
        print(f"{together.name}: {ratio:.1f}× {apart.name} in separate rows per supervised query (goal ≥ 5×)")
    print(f"ours: {ours[0].flops / seconds[ours[0].name] / peak:.0%} of the GEMM peak (goal ≥ 60 % at paper size)")


if __name__ == "__main__":
    main()
