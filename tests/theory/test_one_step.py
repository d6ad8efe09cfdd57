"""The theorem's gradient against autograd on every sequence, its numbers by hand, and what the step does to answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.theory.one_step import Population, Setting, Step, measure_step
from bindscope.theory.one_step_model import DisentangledModel, add_by_fourier


def every_sequence(model: DisentangledModel, binding: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tokens [row, 16] of the whole population, written out one by one, and their weights [row].

    Where the asked variable is not the assigned one, the query alone is shuffled: see ``embed_asked``.
    """
    tokens, weights = [], []
    size, n_variables = model.modulus, model.n_variables
    for n1, n2, assigned, asked, place in itertools.product(
        range(size), range(size), range(n_variables), range(n_variables), range(11)
    ):
        if weight := binding[assigned, asked] * pairs[n1, n2] / 11:
            row = [model.pad] * 12 + [model.operator, model.variables.start + asked, n2, model.equals]
            row[place], row[place + 1] = model.variables.start + assigned, n1
            tokens.append(row)
            weights.append(weight)
    return np.array(tokens), np.array(weights)


def gradient_by_autograd(setting: Setting, population: Population) -> np.ndarray:
    """−∇W of the mean cross-entropy over the population: the model in torch, its MLP as a loop."""
    model = setting.model
    tokens, weights = every_sequence(model, population.binding, population.pairs)
    embedded = torch.tensor(model.embed(tokens))
    w = torch.tensor(setting.start, requires_grad=True)
    attention = torch.softmax(torch.einsum("rtk,kq,rq->rt", embedded, w, embedded[:, -1]), 1)
    h = torch.einsum("rt,rtk->rk", attention, embedded)[:, : model.modulus]
    outputs = torch.stack(
        [sum(h[:, a] * h[:, (k - a) % model.modulus] for a in range(model.modulus)) for k in range(model.modulus)], 1
    )
    n1 = torch.tensor([next(token for token in row[:12] if token < model.modulus) for row in tokens])
    answers = (n1 + torch.tensor(tokens[:, 14])) % model.modulus
    losses = torch.nn.functional.cross_entropy(setting.scale * outputs, answers, reduction="none")
    (losses * torch.tensor(weights)).sum().backward()
    assert w.grad is not None
    return -w.grad.numpy()


@pytest.mark.parametrize(
    ("setting", "trained", "shuffled"),
    [
        (Setting(5, 3, 2.0, 0.7), False, False),
        (Setting(6, 2, 3.0, 40.0), False, False),  # an even modulus, and a softmax that has saturated
        (Setting(5, 3, 1.0, 1e-3), True, False),
        (Setting(4, 3, 2.0, 1.0), True, True),
        (Setting(5, 2, 3.0, 2.0, "operator"), False, False),
    ],
)
def test_the_enumerated_gradient_is_that_of_autograd_on_every_sequence(
    setting: Setting, trained: bool, shuffled: bool
) -> None:
    kept = np.random.default_rng(0).random((setting.modulus, setting.modulus)) < 0.6 if trained else None
    population = Population.of(setting, kept, shuffled)
    expected = gradient_by_autograd(setting, population) / setting.scale
    found = measure_step(setting, population).gradient / setting.scale
    assert np.abs(expected).max() > 1e-3
    assert np.abs(found - expected).max() < 1e-10
