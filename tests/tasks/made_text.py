"""Text from a small grammar, for tests that need one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NOUNS = ("the cat", "a dog", "my sister", "every child", "the naïve poet")
VERBS = ("sees", "likes", "follows", "hears")


def made_text(n_lines: int = 600, seed: int = 0) -> str:
    """Sentences of noun, verb and noun, one a line and numbered, so that no two lines are the same."""
    rng = np.random.default_rng(seed)
    return "".join(
        f"{number}: {NOUNS[rng.integers(5)]} {VERBS[rng.integers(4)]} {NOUNS[rng.integers(5)]}.\n"
        for number in range(n_lines)
    )


def write_text(path: Path, n_lines: int = 600, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made_text(n_lines, seed).encode())
    return path
