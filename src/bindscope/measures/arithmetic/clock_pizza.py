"""Clock or pizza: two ways to add on a circle, told apart by how logits depend on the distance of the operands.

The measures are those of Zhong et al. 2023. A *clock* multiplies the operands' Fourier components, so that the right answer's logit
does not care how far apart they are, and the gradient to either operand depends on the other. A *pizza* works on the sum
of the two embeddings: logits shrink with the distance, and both gradients are the same.

- Distance irrelevance: the standard deviation of the right answer's logit among pairs of one distance, averaged over
  distances, over its standard deviation among all pairs. About 1 for a clock, 0 for a pizza.
- Gradient symmetricity: the cosine between the gradients of one logit with respect to the two operands' embeddings,
  averaged over random (n1, n2, output). 1 for a pizza, 0 on average for a pure clock.

>>> distance_irrelevance(correct_logits(sums.logits, CyclicNumbers.of(task)))
>>> embedding_gradient_cosines(model, task, triples).mean()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from bindscope.measures.arithmetic.literal_sums import literal_sums
from bindscope.model.run import Edit, run, to_host
from bindscope.model.sites import Site
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, OPERAND_POSITIONS

if TYPE_CHECKING:
    from torch import Tensor

    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask


def correct_logits(logits: np.ndarray, numbers: CyclicNumbers) -> np.ndarray:
    """[position 1, position 2]: the right answer's logit of every pair, from logits [n1, n2, number] by value."""
    placed = numbers.arrange(logits)
    answers = numbers.answer[numbers.sums]
    right: np.ndarray = np.take_along_axis(placed, answers[..., None], axis=-1)[..., 0]
    return right


def distance_irrelevance(correct: np.ndarray) -> float:
    """How little the right answer's logit [position 1, position 2] depends on the distance; NaN if it does not vary at all."""
    indices = np.arange(len(correct))
    by_distance = correct[indices, (indices + indices[:, None]) % len(correct)]  # [distance, position 1]
    spread = correct.std()
    if spread <= 1e-9 * abs(correct).max():
        return float("nan")
    return float(by_distance.std(axis=1).mean() / spread)


def gradient_cosines(
    logits_of: Callable[[Tensor, Tensor], Tensor], first: Tensor, second: Tensor, outputs: Tensor
) -> np.ndarray:
    """[example]: the cosine between the gradients of ``logits_of(first, second)[example, output]`` to either operand.

    ``first`` and ``second`` are embeddings [example, d_model].
    """
    first, second = (operand.detach().requires_grad_() for operand in (first, second))
    chosen = logits_of(first, second).gather(1, outputs[:, None].to(first.device)).sum()
    to_first, to_second = torch.autograd.grad(chosen, (first, second))
    return torch.cosine_similarity(to_host(to_first), to_host(to_second), dim=1, eps=1e-30).numpy()


def embedding_gradient_cosines(
    model: Transformer, task: AssignAddTask, triples: np.ndarray, fixed_attention: bool = False
) -> np.ndarray:
    """The same for a model on literal sums behind PADs: triples (n1, n2, output) [example, 3] to cosines [example].

    Part of a gradient goes through attention, which one operand takes from the other whatever is then done with their
    values; with ``fixed_attention`` patterns stay as they are, and only the path of the values counts.
    """
    numbers = torch.from_numpy(np.ascontiguousarray(triples))
    tokens = torch.from_numpy(literal_sums(task, triples[:, :2]))

    layers = range(model.config.n_layers) if fixed_attention else ()
    held: dict[Site | str, Edit] = {f"L{layer}.pattern": torch.Tensor.detach for layer in layers}

    def logits_of(first: Tensor, second: Tensor) -> Tensor:
        operands = torch.stack([first, second], dim=1)  # [example, operand, d_model]
        site = f"embed@{OPERAND_POSITIONS[0]},{OPERAND_POSITIONS[1]}"
        return run(model, tokens, write={site: operands, **held}).logits[:, ANSWER_POSITION]

    with torch.no_grad():
        first, second = (model.W_E[numbers[:, operand]] for operand in (0, 1))
    return gradient_cosines(logits_of, first, second, numbers[:, 2])


def draw_triples(numbers: CyclicNumbers, rng: np.random.Generator, n: int) -> np.ndarray:
    """[example, 3]: n1, n2 and an output, each uniformly among the numbers on the circle."""
    return np.stack([rng.choice(order, n) for order in (numbers.first, numbers.second, numbers.answer)], axis=1)
