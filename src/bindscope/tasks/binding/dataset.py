"""Fixed sets of binding programs, split so that no program is in two of them.

>>> splits = make_splits(BindingTask(), seed=0)
>>> {name: len(split) for name, split in splits.items()}
{'train': 450000, 'validation': 1000, 'test': 49000}
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.positions import LINE_WIDTH, QUERY_WIDTH
from bindscope.tasks.binding.programs import Programs, ask_questions, tokens_to_programs
from bindscope.tasks.task import Batch

PAPER_SPLITS: Mapping[str, int] = {"train": 450_000, "validation": 1_000, "test": 49_000}
CHUNK = 2048  # programs drawn at a time
LEAST_NEW = 0.001  # the fraction of new programs in a round of draws below which the language counts as exhausted


class DrawsPrograms(Protocol):
    """What splits are drawn from: a binding task."""

    @property
    def lines(self) -> int: ...

    @property
    def min_lines(self) -> int | None: ...

    def sample_questions(
        self, rng: np.random.Generator, n_programs: int, n_lines: int, n_queries: int = 1
    ) -> tuple[Programs, np.ndarray]: ...


@dataclass(frozen=True, eq=False)
class BindingDataset:
    """One split, kept as one byte a token; structure and labels are read back from the tokens of a batch."""

    tokens: np.ndarray  # [example, position] uint8
    n_queries: int = 1

    def __len__(self) -> int:
        return len(self.tokens)

    def batch(self, indices: np.ndarray | slice) -> Batch:
        """These examples with layout, answers and labels, as the sampler would have given them."""
        return ask_questions(*tokens_to_programs(self.tokens[indices], self.n_queries))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the tokens and their shape: equal hashes, equal data."""
        digest = hashlib.sha256(f"{self.tokens.shape} {self.n_queries}\n".encode())
        digest.update(np.ascontiguousarray(self.tokens).data)
        return digest.hexdigest()


def make_splits(
    task: DrawsPrograms, seed: int, sizes: Mapping[str, int] = PAPER_SPLITS, n_queries: int = 1
) -> dict[str, BindingDataset]:
    """Splits of the given sizes, the same for the same arguments. All programs in all splits are different.

    Programs count as the same when their assignments are, whatever they are asked.
    """
    if task.min_lines is not None:
        raise BindscopeError("task.min_lines: a fixed dataset has one program length; leave min_lines out.")
    if seed < 0 or any(size < 0 for size in sizes.values()):
        raise BindscopeError(f"dataset: seed and sizes must not be negative, got seed {seed} and {dict(sizes)}.")
    tokens = _sample_distinct(task, seed, sum(sizes.values()), n_queries)
    ends = np.cumsum(list(sizes.values()))[:-1]
    return {name: BindingDataset(part, n_queries) for name, part in zip(sizes, np.split(tokens, ends))}


def hash_rows(rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each row of bytes [row, byte]: equal rows hash equally, different ones almost never."""
    padding = -rows.shape[1] % 8
    words = np.pad(rows.astype(np.uint8), ((0, 0), (0, padding))).view(np.uint64)  # [row, word]
    hashes = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for word in words.T:
        hashes = (hashes ^ word) * np.uint64(0xBF58476D1CE4E5B9)  # a multiply–shift mix, as in splitmix64
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _sample_distinct(task: DrawsPrograms, seed: int, n_wanted: int, n_queries: int) -> np.ndarray:
    """``n_wanted`` token rows [example, position] no two of which have the same assignments."""
    rng = np.random.default_rng(seed)
    n_prefix = LINE_WIDTH * task.lines
    tokens = np.empty((0, n_prefix + QUERY_WIDTH * n_queries), np.uint8)
    while len(tokens) < n_wanted:
        n_found, n_drawn = len(tokens), max(CHUNK, n_wanted - len(tokens))
        tokens = np.concatenate([tokens, _sample_rows(task, rng, n_drawn, n_queries)])
        distinct = np.unique(hash_rows(tokens[:, :n_prefix]), return_index=True)[1]
        tokens = tokens[np.sort(distinct)]
        if len(tokens) < n_wanted and len(tokens) - n_found < LEAST_NEW * n_drawn:
            raise BindscopeError(
                f"dataset: {n_wanted:,} different programs of {task.lines} lines were asked for and only about "
                f"{len(tokens):,} were found; ask for fewer or use more lines."
            )
    return tokens[:n_wanted]


def _sample_rows(task: DrawsPrograms, rng: np.random.Generator, n_rows: int, n_queries: int) -> np.ndarray:
    """Token rows [example, position] one byte a token, drawn chunk by chunk."""
    tokens = np.empty((n_rows, LINE_WIDTH * task.lines + QUERY_WIDTH * n_queries), np.uint8)
    for start in range(0, n_rows, CHUNK):
        drawn = task.sample_questions(rng, min(CHUNK, n_rows - start), task.lines, n_queries)
        tokens[start : start + CHUNK] = ask_questions(*drawn).tokens
    return tokens
