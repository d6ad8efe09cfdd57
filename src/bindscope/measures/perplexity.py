"""How well a model predicts a text: the loss of every token, perplexity, and its interval.

Perplexity is exp of the mean loss. Per token it depends on the tokenizer; per word, the same total loss is divided by the
number of words that the text has whatever its tokens are, so that tokenizers can be compared.

A long text is read in windows of ``context`` tokens that begin ``stride`` tokens apart. Every token but the first is
scored once: in the first window all are, in a later one those that the windows before have not reached. So with
stride = context a token sees what its own window holds before it (0 to context − 1 tokens), with a smaller stride at
least context − stride tokens, at the cost of more windows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bindscope.errors import BindscopeError
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

LOGITS_AT_ONCE = 1 << 23  # how many go through memory together; never changes a number but by rounding
N_RESAMPLES = 2000


@dataclass(frozen=True)
class Perplexity:
    """A perplexity with its 95 % interval, from drawing the blocks of the text again."""

    value: float
    low: float
    high: float
    n_tokens: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}–{self.high:.2f}]"


@torch.no_grad()
def score_text(model: Transformer, batch: Batch) -> dict[str, Any]:
    """Loss, perplexity and accuracy over all targets of a batch of windows, ready for JSON.

    ``chance`` is the accuracy of always giving the most frequent token.
    """
    losses, right = [], []
    n_rows = _rows_at_once(model, batch.tokens.shape[1])
    for start in range(0, len(batch), n_rows):
        part = batch.take(slice(start, start + n_rows))
        logits, targets = _predict(model, part.tokens, part.targets)
        losses.append(_token_losses(logits, targets))
        right.append((logits.argmax(-1) == targets).cpu().numpy())
    loss = float(np.concatenate(losses).mean())
    _, counts = np.unique(batch.targets, return_counts=True)
    return {
        "n": int(batch.targets.size),
        "accuracy": round(float(np.concatenate(right).mean()), 6),
        "chance": round(float(counts.max() / batch.targets.size), 6),
        "loss": round(loss, 6),
        "perplexity": round(math.exp(min(loss, 700.0)), 4),
    }


@torch.no_grad()
def text_losses(model: Transformer, tokens: np.ndarray, context: int, stride: int | None = None) -> np.ndarray:
    """The loss of every token of a text but the first, in nats: [token − 1] float64.

    >>> losses = text_losses(model, task.corpus.splits["test"].tokens, context=128)
    >>> float(np.exp(losses.mean()))
    """
    stride = context if stride is None else stride
    if not 1 <= stride <= context:
        raise BindscopeError(f"stride: must lie between 1 and the context of {context} tokens, got {stride}.")
    if len(tokens) < 2:
        raise BindscopeError("a text of fewer than two tokens has nothing to predict.")
    tokens = tokens.astype(np.int64)
    losses = np.full(len(tokens) - 1, np.nan)
    whole, rest = _plan_windows(len(tokens) - 1, context, stride)
    n_rows = _rows_at_once(model, context)
    was_training = model.training
    model.eval()
    for at in range(0, len(whole), n_rows):
        starts = whole[at : at + n_rows]
        rows = tokens[starts[:, None] + np.arange(context + 1)]  # [window, context + 1]
        for start, row in zip(starts, _token_losses(*_predict(model, rows[:, :-1], rows[:, 1:]))):
            _fill(losses, int(start), row)
    if rest is not None:
        row = tokens[None, rest:]
        _fill(losses, rest, _token_losses(*_predict(model, row[:, :-1], row[:, 1:]))[0])
    model.train(was_training)
    return losses


def sum_blocks(losses: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of losses in each run of ``block`` tokens, and how many tokens that are: two arrays [block]."""
    starts = np.arange(0, len(losses), block)
    return np.add.reduceat(losses, starts), np.diff([*starts, len(losses)])


def estimate_perplexity(sums: np.ndarray, counts: np.ndarray, n_resamples: int = N_RESAMPLES) -> Perplexity:
    """Perplexity from sums of losses over blocks and what they are divided by, with a bootstrap over blocks.

    ``counts`` are tokens, or words for perplexity per word. Tokens side by side are alike, blocks nearly independent.

    >>> str(estimate_perplexity(*sum_blocks(losses, 128)))
    '41.20 [39.85–42.61]'
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(sums), size=(n_resamples, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return Perplexity(float(np.exp(sums.sum() / counts.sum())), float(low), float(high), int(counts.sum()))


def _plan_windows(n_targets: int, context: int, stride: int) -> tuple[np.ndarray, int | None]:
    """Where whole windows begin, and where a last shorter one does, if any token is left."""
    if n_targets < context:
        return np.array([], dtype=np.int64), 0
    whole = np.arange(0, n_targets - context + 1, stride)
    reached = int(whole[-1]) + context
    return whole, None if reached >= n_targets else int(whole[-1]) + stride


def _fill(losses: np.ndarray, start: int, row: np.ndarray) -> None:
    """Keep those losses of a window that no earlier window gave."""
    here = losses[start : start + len(row)]
    here[:] = np.where(np.isnan(here), row, here)


def _predict(model: Transformer, tokens: np.ndarray, targets: np.ndarray) -> tuple[Tensor, Tensor]:
    device = next(model.parameters()).device
    logits = model(torch.from_numpy(np.ascontiguousarray(tokens)).to(device))  # [window, position, output]
    return logits.float(), torch.from_numpy(np.ascontiguousarray(targets)).to(device)


def _token_losses(logits: Tensor, targets: Tensor) -> np.ndarray:
    losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view_as(targets).double().cpu().numpy()


def _rows_at_once(model: Transformer, n_positions: int) -> int:
    return max(1, LOGITS_AT_ONCE // (n_positions * model.config.outputs))
