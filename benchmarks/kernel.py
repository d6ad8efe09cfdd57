"""How much faster the template kernel is than a plain NumPy Monte Carlo, at equal standard error.

    python benchmarks/kernel.py
    python benchmarks/kernel.py --beta 1 --rounds 16

The peer is what one would write first: a loop over pairs of templates, for each pair Gaussians for the symbols and the
positions of both sequences, two softmaxes and a mean, all samples of a pair at once. K of a sequence with itself is sampled
once for each template. ``common`` is the same with one set of Gaussians for all pairs, which makes differences between
templates, and so the smallest eigenvalue, more precise.

All sides are run in turns in one process. Each round gives one estimate a side and its CPU time; the variance of a side
is that of its estimates over rounds, and time × variance is what a fixed precision costs. Printed are the
standard errors of one round, and the ratio of time × variance to ours: how many times longer the peer takes at equal
standard error, of entries of N (root mean square over them) and of the smallest eigenvalue. The goal is a ratio of 20.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.theory.kernel import KernelSettings, template_kernel
from turns import Ratio, note

TASKS: tuple[tuple[str, ...], ...] = (
    ("AA", "AB"),
    ("ABA", "ABB"),
    ("AABB", "ABAB"),
    ("AAAA", "AAAB", "AABA", "AABB", "ABAA", "ABAB", "ABBA", "ABBB"),
)


@dataclass
class Side:
    """One contender: how it makes N from a seed, and what came of it."""

    make: Callable[[int], np.ndarray]
    matrices: list[np.ndarray]
    seconds: list[float]

    @property
    def cost(self) -> float:
        return float(np.mean(self.seconds))

    def variance(self) -> float:
        return float(np.var(self.matrices, axis=0, ddof=1).mean())

    def eigenvalue_variance(self) -> float:
        return float(np.var([np.linalg.eigvalsh(matrix)[0] for matrix in self.matrices], ddof=1))


def main() -> None:
    options = read_options()
    settings = KernelSettings(beta=options.beta)
    print(f"β = {options.beta:g}, {options.rounds} rounds, peers with {options.samples:,} samples a pair")
    print(
        f"{'templates':<26}{'side':<10}{'ms':>8}{'error of N':>12}{'of λ_min':>10}{'λ_min':>11}{'N ×':>9}{'λ_min ×':>10}"
    )
    for templates in TASKS:
        compare(templates, settings, options.samples, options.rounds)


def compare(templates: Sequence[str], settings: KernelSettings, n_samples: int, n_rounds: int) -> None:
    """Run all sides in turns, then print a line for each."""
    sides = {
        "ours": Side(lambda seed: template_kernel(templates, replace(settings, seed=seed)).matrix.value, [], []),
        "plain": Side(lambda seed: sample_plainly(templates, settings, n_samples, seed), [], []),
        "common": Side(lambda seed: sample_plainly(templates, settings, n_samples, seed, common=True), [], []),
    }
    for side in sides.values():
        side.make(0)
    for turn in range(1, n_rounds + 1):
        for side in sides.values():
            start = time.process_time()
            side.matrices.append(side.make(turn))
            side.seconds.append(time.process_time() - start)
    ours = sides["ours"]
    title = " ".join(templates) if len(templates) < 4 else f"{len(templates)} of {len(templates[0])} tokens"
    for name, side in sides.items():
        ratios = (
            side.cost * side.variance() / (ours.cost * ours.variance()),
            side.cost * side.eigenvalue_variance() / (ours.cost * ours.eigenvalue_variance()),
        )
        smallest = np.mean([np.linalg.eigvalsh(matrix)[0] for matrix in side.matrices])
        errors = np.sqrt(side.variance()), np.sqrt(side.eigenvalue_variance())
        print(
            f"{title:<26}{name:<10}{1e3 * side.cost:>8.0f}{errors[0]:>12.1e}{errors[1]:>10.1e}{smallest:>11.3e}"
            f"{ratios[0]:>9,.0f}{ratios[1]:>10,.0f}",
            flush=True,
        )
        if name == "plain":
            what = f"kernel of {title}, β {settings.beta:g}, at equal error"
            ratio = Ratio(ratios[0], ratios[0], ratios[0], n_rounds)
            note("kernel", what, ratio=ratio, peer="plain Monte Carlo", seconds=ours.cost, goal=20)


def sample_plainly(
    templates: Sequence[str], settings: KernelSettings, n_samples: int, seed: int, common: bool = False
) -> np.ndarray:
    """N by Monte Carlo, one pair after the other."""
    strings = [[f"{letter}1" for letter in template] + ["end"] for template in templates]
    others = [[f"{letter}2" for letter in template] + ["end"] for template in templates]
    rng = np.random.default_rng(seed)
    n = len(templates)

    def attention(first: list[str], second: list[str]) -> float:
        return sample_attention(first, second, settings, n_samples, np.random.default_rng(seed) if common else rng)

    with_itself = [attention(string, string) for string in strings]
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            apart = with_itself[i] + with_itself[j]
            cross = attention(strings[i], others[j])
            near, far = np.exp(-(apart - 2 * cross) / 2), np.exp(-(apart + 2 * cross) / 2)  # b₁ = 1
            matrix[i, j] = matrix[j, i] = (near + np.cos(2 * settings.b2) * far) / 2
    return matrix


def sample_attention(
    first: list[str], second: list[str], settings: KernelSettings, n_samples: int, rng: np.random.Generator
) -> float:
    """K_attn of one pair of sequences."""
    symbols = sorted({*first, *second})
    x = np.array([[token == symbol for symbol in symbols] for token in first], float)
    y = np.array([[token == symbol for symbol in symbols] for token in second], float)
    w = rng.standard_normal((n_samples, len(symbols)))
    p = settings.gamma * rng.standard_normal((n_samples, len(first)))
    s, t = softmax(settings.beta * (w @ x.T + p)), softmax(settings.beta * (w @ y.T + p))
    common = x @ y.T + settings.gamma**2 * np.eye(len(first))
    return float((s @ common * t).sum(1).mean())


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The template kernel against a plain Monte Carlo.")
    parser.add_argument("--beta", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--samples", type=int, default=20_000, help="samples a pair, of the peers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
