"""The theorem's gradient against autograd on every sequence, its numbers by hand, and what the step does to answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.theory.one_step import Population, Setting, measure_step
from bindscope.theory.one_step_accuracy import accuracy_over_sizes, count_assignments, sample_sums
from bindscope.theory.one_step_model import DisentangledModel, add_by_fourier


def every_sequence(model: DisentangledModel, binding: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tokens [row, 16] of the whole population, written out one by one, and their weights [row]."""
    tokens, weights = [], []
    size, n_variables = model.modulus, model.n_variables
    for n1, n2, assigned, asked, position in itertools.product(
        range(size), range(size), range(n_variables), range(n_variables), range(11)
    ):
        if weight := binding[assigned, asked] * pairs[n1, n2] / 11:
            row = [model.pad] * 12 + [model.operator, model.variables.start + asked, n2, model.equals]
            row[position], row[position + 1] = model.variables.start + assigned, n1
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


@pytest.mark.parametrize("modulus", [2, 5, 12, 31])
def test_the_mlp_of_fourier_vectors_is_the_circular_convolution(modulus: int) -> None:
    numbers = np.random.default_rng(modulus).normal(size=(3, modulus))
    expected = np.zeros((3, modulus))
    for a, b in itertools.product(range(modulus), repeat=2):
        expected[:, (a + b) % modulus] += numbers[:, a] * numbers[:, b]
    assert np.allclose(add_by_fourier(numbers), expected, atol=1e-12)


def test_values_carry_their_variable_and_the_equals_sign_both_operands() -> None:
    task = AssignAddTask(7, 4)
    model = DisentangledModel(7, 4)
    embedded = model.embed(task.parse("_ c=1 b=5 | b+6")[None])[0]  # PAD c 1 b 5 PAD … + b 6 =
    held = [set(np.flatnonzero(row)) for row in embedded]
    first = model.variables.start
    bound = model.bound_variables.start
    assert held[1] == {first + 2, model.position(1)}
    assert held[2] == {1, model.position(2), bound + 2}
    assert held[4] == {5, model.position(4), bound + 1}
    assert held[14] == {6, model.position(14)}
    assert held[15] == {model.equals, model.position(15), bound + 1, model.bound_numbers.start + 6}


@pytest.mark.parametrize(
    ("beta", "memory", "predicted", "slot", "predicted_slot"),
    [(3.0, "2.33e-03", "2.72e-03", "-4.58e-03", "-4.73e-03"), (6.0, "3.68e-04", "3.84e-04", None, None)],
)
def test_the_known_readings_at_31_numbers_and_12_variables(
    beta: float, memory: str, predicted: str, slot: str | None, predicted_slot: str | None
) -> None:
    """Sixteen tokens of which '=' attends to itself too; coefficients over λ as λ goes to 0."""
    step = measure_step(Setting(31, 12, beta))
    assert f"{step.per_scale['associative']:.2e}" == f"{step.per_scale['spurious']:.2e}" == memory
    assert f"{step.predicted_per_scale['associative']:.2e}" == predicted
    assert abs(step.off_diagonal) < 1e-15
    if slot is not None:
        assert f"{step.per_scale['slot']:.2e}" == slot
        assert f"{step.predicted_per_scale['slot']:.2e}" == predicted_slot


@pytest.mark.parametrize(("modulus", "n_variables", "beta"), [(7, 3, 1.0), (31, 12, 3.0), (58, 5, 6.0)])
def test_for_small_scales_the_gap_is_known_exactly(modulus: int, n_variables: int, beta: float) -> None:
    step = measure_step(Setting(modulus, n_variables, beta, scale=1e-7))
    kept = 1 - 1 / modulus
    for term, ratio in (("associative", kept * (1 - 4 * step.setting.epsilon)), ("slot", kept)):
        assert step.coefficients[term] / step.predicted[term] == pytest.approx(ratio, rel=1e-5)


def test_the_parts_add_up_and_are_orthogonal() -> None:
    step = measure_step(Setting(7, 3, 2.0, 1.0))
    assert np.allclose(sum(step.parts.values()), step.gradient)
    assert sum(step.norm_fractions.values()) == pytest.approx(1)
    assert np.allclose(np.diag(np.diag(step.memory)), step.memory)
    flat = np.stack([part.ravel() for part in step.parts.values()])
    products = flat @ flat.T
    assert np.allclose(products, np.diag(np.diag(products)))


def test_large_logits_break_the_prediction_for_the_slot_first() -> None:
    ratios = {}
    for scale in (1e-3, 0.3, 1e3):
        step = measure_step(Setting(59, 12, 3.0, scale))
        ratios[scale] = [step.coefficients[term] / step.predicted[term] for term in ("associative", "slot")]
    assert np.allclose(ratios[1e-3], [0.871, 0.983], atol=1e-3)
    assert abs(ratios[0.3][0] / ratios[1e-3][0] - 1) < 0.01 < 0.1 < ratios[0.3][1] / ratios[1e-3][1] - 1
    assert ratios[1e3][1] > 50  # the wrong double has all the probability, and its number is pushed away


def test_a_shuffled_binding_or_attention_elsewhere_leaves_no_memory() -> None:
    setting = Setting(31, 6, 3.0)
    memory = measure_step(setting).coefficients["associative"]
    shuffled = measure_step(setting, Population.of(setting, shuffled=True))
    assert shuffled.coefficients["associative"] - shuffled.off_diagonal <= 0
    elsewhere = measure_step(Setting(31, 6, 3.0, focus="operator"))
    assert 0 < elsewhere.coefficients["associative"] < 0.1 * memory


def test_answers_before_and_after_are_those_of_one_sequence_by_hand() -> None:
    task, setting = AssignAddTask(31, 6), Setting(31, 6, 3.0)
    tokens = np.stack([task.parse("a=4 b=20 | a+7"), task.parse("c=3 a=4 b=20 | a+b")])
    model = setting.model
    literal = model.outputs(model.scores(setting.start, model.embed(tokens[:1])), tokens[:1])[0]
    assert literal.argmax() == 14  # 7 + 7
    assert literal[11] == pytest.approx(2 * setting.alpha * setting.epsilon)
    memory = measure_step(setting).parts["associative"]
    right = accuracy_over_sizes(setting, memory, tokens, np.array([0.0, 3.0 / 0.857, 9.0]))
    assert right[0] == pytest.approx([0, 1 / 3])  # the value is not seen; three pairs of values are as likely
    assert right[1] == pytest.approx([1, 1])
    assert right[2] == pytest.approx([0, 1])  # too far: now the literal is not seen


def test_one_step_composes_and_needs_its_memory() -> None:
    task, setting = AssignAddTask(31, 6), Setting(31, 6, 3.0)
    sums = sample_sums(task, np.random.default_rng(0), 150)
    trained = task.pairs.is_trained
    assert set(count_assignments(31, sums["1 unseen"])) == set(range(1, 7))
    values = task.sequences.operand_values(sums["2 unseen"])
    assert not trained[values[:, 0], values[:, 1]].any()
    step = measure_step(setting, Population.of(setting, trained))
    sizes = np.array([0.0, 1.0])
    whole = accuracy_over_sizes(setting, step.gradient, sums["2 unseen"], sizes).mean(1)
    without = accuracy_over_sizes(setting, step.gradient - step.parts["associative"], sums["2 unseen"], sizes).mean(1)
    assert whole[0] == without[0] < 0.5
    assert whole[1] > 0.8
    assert without[1] < without[0] + 0.05


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"modulus": 1}, "modulus"),
        ({"n_variables": 0}, "variables"),
        ({"beta": 1000.0}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"scale": 0.0}, "scale"),
        ({"focus": "left"}, "focus"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict, word: str) -> None:
    with pytest.raises(BindscopeError, match=word):
        Setting(**arguments)
    with pytest.raises(BindscopeError, match="pairs"):
        Population.of(Setting(5, 3), trained=np.zeros((5, 5)))
