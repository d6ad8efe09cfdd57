"""Metrics of one's own for every patch grid.

    bindscope patch binding-laptop --metric examples/metrics.py:source_probability

A metric is given the logits [pair, output] of the patched, the base and the source run, and the true answers [pair] of
the base and the source programs. It returns one number a pair.
"""

from torch import Tensor


def source_probability(patched: Tensor, base: Tensor, source: Tensor, answers: tuple[Tensor, Tensor]) -> Tensor:
    """How probable the patched run finds the source's answer."""
    _, new = answers  # or answers.base, answers.source
    return patched.softmax(-1).gather(-1, new[:, None])[:, 0]


def margin(patched: Tensor, base: Tensor, source: Tensor, answers: tuple[Tensor, Tensor]) -> Tensor:
    """By how many logits the source's answer is above the base's: not normalised, unlike ``logit_difference``."""
    old, new = (patched.gather(-1, each[:, None])[:, 0] for each in answers)
    return new - old


def disruption(patched: Tensor, base: Tensor, source: Tensor, answers: tuple[Tensor, Tensor]) -> Tensor:
    """The probability of what neither program answers: high where a patch breaks the model instead of steering it."""
    probability = patched.softmax(-1)
    old, new = (probability.gather(-1, each[:, None])[:, 0] for each in answers)
    return 1 - old - new
