"""Clock and pizza on models that are one or the other by construction, and the sums as the model itself runs them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.measures.arithmetic.clock_pizza import (
    correct_logits,
    distance_irrelevance,
    draw_triples,
    embedding_gradient_cosines,
    gradient_cosines,
)
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.literal_sums import run_literal_sums
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.assign_add import AssignAddTask

P, FREQUENCY = 59, 7
CONFIG = find_preset("assign-add").config
ANGLES = torch.from_numpy(2 * np.pi * FREQUENCY * np.arange(P) / P)
CIRCLE = torch.polar(torch.ones(P, dtype=torch.float64), ANGLES)  # [number] complex
EMBEDDINGS = torch.view_as_real(CIRCLE)  # [number, 2]
WEIGHTS = 1 + 0.2 * torch.cos(3 * ANGLES)  # of the outputs, so that a clock's right logits differ at all


def clock(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The operands' Fourier components multiplied, and compared with every output's."""
    product = torch.view_as_complex(first) * torch.view_as_complex(second)
    return (product[:, None] * CIRCLE.conj()).real * WEIGHTS


def pizza(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The square of the operands' sum over its length: |cos(half the distance)| times the Fourier component of n1 + n2."""
    middle = torch.view_as_complex(first + second)
    return ((middle**2 / middle.abs())[:, None] * CIRCLE.conj()).real


def all_logits(model) -> np.ndarray:
    n1, n2 = np.indices((P, P)).reshape(2, -1)
    return model(EMBEDDINGS[n1], EMBEDDINGS[n2]).numpy().reshape(P, P, P)


def test_distance_is_irrelevant_to_a_clock_and_everything_to_a_pizza():
    numbers = CyclicNumbers.of(CONFIG.task)
    assert distance_irrelevance(correct_logits(all_logits(clock), numbers)) == pytest.approx(1)
    assert distance_irrelevance(correct_logits(all_logits(pizza), numbers)) == pytest.approx(0, abs=1e-9)


def test_logits_that_never_vary_have_no_irrelevance():
    assert np.isnan(distance_irrelevance(np.ones((5, 5))))


def test_distance_irrelevance_is_its_definition_as_a_loop():
    correct = np.random.default_rng(0).normal(size=(7, 7))
    within = [np.std([correct[i, (i + d) % 7] for i in range(7)]) for d in range(7)]
    assert distance_irrelevance(correct) == pytest.approx(np.mean(within) / np.std(correct))


def test_a_difference_is_at_the_distance_of_the_sum_with_the_negative():
    task = AssignAddTask(operator="-")
    n = np.arange(P)
    by_value = np.broadcast_to(np.cos(2 * np.pi * (n[:, None] + n) / P)[..., None], (P, P, P))  # of n1 − (−n2)
    assert distance_irrelevance(correct_logits(by_value, CyclicNumbers.of(task))) == pytest.approx(0, abs=1e-9)


def test_gradients_are_alike_in_a_pizza_and_turned_by_the_distance_in_a_clock():
    triples = draw_triples(CyclicNumbers.of(CONFIG.task), np.random.default_rng(0), 50)
    n1, n2, outputs = torch.from_numpy(triples).T
    given = (EMBEDDINGS[n1], EMBEDDINGS[n2], outputs)
    np.testing.assert_allclose(gradient_cosines(pizza, *given), 1)
    np.testing.assert_allclose(gradient_cosines(clock, *given), torch.cos(ANGLES[n1] - ANGLES[n2]), atol=1e-9)


@pytest.fixture(scope="module")
def model() -> Transformer:
    return Transformer(CONFIG.model, torch.Generator().manual_seed(4)).double()


def test_sums_behind_one_prefix_are_those_of_separate_sequences(model):
    task = CONFIG.task
    sums = run_literal_sums(model, task)
    for n1, n2 in ((0, 0), (3, 40), (58, 17)):
        tokens = torch.from_numpy(task.parse(f"| {n1}+{n2}"))[None]
        with torch.no_grad():
            trace = run(model, tokens, read=["L1.resid_mid", "L1.pre"])
        np.testing.assert_allclose(sums.residual[n1, n2], trace["L1.resid_mid"][0, -1], atol=1e-12)
        np.testing.assert_allclose(sums.pre[n1, n2], trace["L1.pre"][0, -1], atol=1e-12)
        np.testing.assert_allclose(sums.logits[n1, n2], trace.logits[0, -1], atol=1e-12)


def test_a_models_gradients_are_those_of_finite_differences(model):
    triples = np.array([[3, 40, 5]])
    found = embedding_gradient_cosines(model, CONFIG.task, triples)
    tokens = torch.from_numpy(CONFIG.task.parse("| 3+40")).expand(256, -1)
    change = (
        1e-4 * torch.cat([torch.eye(128), -torch.eye(128)]).double()[:, None]
    )  # there and back, one direction a row

    def slopes(position: int) -> np.ndarray:
        with torch.no_grad():
            there, back = (
                run(model, tokens, write={f"embed@{position}": lambda old: old + change}).logits[:, -1, 5].chunk(2)
            )
        return (there - back).numpy()

    first, second = slopes(13), slopes(14)
    assert found[0] == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second), abs=1e-5)
