"""Where the time of a training step goes, op by op, and what its matrix products take alone; for ``training_step.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

KINDS = {  # the beginning of an op's name → what it is
    "matrix products": ("aten::mm", "aten::addmm"),
    "attention": ("aten::_scaled_dot_product", "aten::bmm", "aten::baddbmm", "aten::_softmax", "aten::softmax"),
    "activation": ("aten::gelu", "aten::silu", "aten::relu"),
    "LayerNorm": ("aten::native_layer_norm",),
    "copies and fills": ("aten::copy_", "aten::cat", "aten::fill_", "aten::zero_", "aten::index", "aten::embedding"),
    "sums and elementwise": ("aten::add", "aten::mul", "aten::sum", "aten::neg", "aten::addcmul"),
    "optimizer, clipping": ("aten::_fused_adamw", "aten::linalg_vector_norm", "aten::_foreach", "Optimizer"),
}
OTHERS = "calls and the rest"
SHOWN = 0.01  # ops below this fraction are summed up with their kind only


@dataclass(frozen=True)
class Product:
    """A matrix product of ``n`` tokens with a weight."""

    n: int
    d_in: int
    d_out: int

    @property
    def flops(self) -> float:
        return 2.0 * self.n * self.d_in * self.d_out


def profile_step(
    name: str,
    step: Callable[[], object],
    flops: float,
    products: Sequence[Product],
    rounds: int,
    clock: Callable[[], float],
) -> None:
    """Print the table of a step, and how fast its matrix products are in it and alone."""
    seconds, peak = time_alone(step, rounds, clock), max(time_gemm(size, rounds, clock) for size in (512, 1024))
    fractions = op_fractions(step, rounds)
    print(f"{name}: {seconds * 1e3:.1f} ms, {flops / 1e9:.2f} GFLOP counted, {flops / seconds / peak:.0%} of GEMM peak")
    by_kind: Counter[str] = Counter()
    for op, fraction in fractions.items():
        by_kind[kind_of(op)] += fraction
    for kind, fraction in by_kind.most_common():
        print(f"  {kind:46}{fraction:7.1%}{fraction * seconds * 1e3:9.1f} ms")
        for op, part in sorted(fractions.items(), key=lambda item: -item[1]):
            if kind_of(op) == kind != OTHERS and part >= SHOWN:
                print(f"    {op[:44]:44}{part:7.1%}{part * seconds * 1e3:9.1f} ms")
    inside, alone = by_kind["matrix products"] * seconds, time_products(products, rounds, clock)
    linear = 3 * sum(product.flops for product in products)
    print(f"  of weights and tokens: {linear / 1e9:.2f} GFLOP, {linear / inside / peak:.0%} of peak in the step,")
    print(f"  {linear / alone / peak:.0%} alone in the same shapes ({alone * 1e3:.1f} ms)")
    needed = alone + sum(by_kind[kind] for kind in ("attention", "activation", "LayerNorm")) * seconds
    print(f"  these, attention, activation and LayerNorm alone: {flops / needed / peak:.0%} of peak")
    print(f"  GEMM peak {peak / 1e9:.1f} GFLOP/s (float32 torch.mm)\n", flush=True)


def op_fractions(step: Callable[[], object], rounds: int) -> dict[str, float]:
    """The fraction of the time of ``rounds`` steps that each op takes by itself, without those it calls."""
    step()
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(rounds):
            step()
    times = {event.key: event.self_cpu_time_total for event in recorded.key_averages()}
    return {op: time / sum(times.values()) for op, time in times.items()}


def kind_of(op: str) -> str:
    return next((kind for kind, beginnings in KINDS.items() if op.startswith(beginnings)), OTHERS)


def time_products(products: Sequence[Product], rounds: int, clock: Callable[[], float]) -> float:
    """What all products of a step take alone: forward, and backward to the tokens and to the weight."""
    total = 0.0
    for product, times in Counter(products).items():
        x, weight = torch.randn(product.n, product.d_in), torch.randn(product.d_out, product.d_in)
        gradient = torch.randn(product.n, product.d_out)
        total += times * time_alone(lambda: (x @ weight.T, gradient @ weight, gradient.T @ x), rounds, clock)  # noqa: B023
    return total


def time_gemm(size: int, rounds: int, clock: Callable[[], float]) -> float:
    """Multiplications and additions a second of a large product."""
    left, right, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    return 2.0 * size**3 / time_alone(lambda: torch.mm(left, right, out=out), rounds, clock)


def time_alone(call: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    call()
    times = []
    for _ in range(rounds):
        start = clock()
        call()
        times.append(clock() - start)
    return median(times)
