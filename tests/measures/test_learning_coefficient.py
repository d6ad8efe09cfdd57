"""Chains give the coefficients that are known, say when they cannot, and move only the weights and questions asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from bindscope.errors import BindscopeError
from bindscope.measures.learning_coefficient.calibration import LinearNetwork, Polynomial
from bindscope.measures.learning_coefficient.estimate import estimate_coefficient
from bindscope.measures.learning_coefficient.examples import draw_examples
from bindscope.measures.learning_coefficient.landscape import ModelLandscape
from bindscope.measures.learning_coefficient.measure import measure_coefficient
from bindscope.measures.learning_coefficient.parts import mark_part, name_parts
from bindscope.measures.learning_coefficient.sampling import Chains, Sampling, sample_chains
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import PRESETS
from bindscope.tasks.binding import BindingTask, to_digits
from bindscope.theory.learning_coefficients import linear_network_coefficient, polynomial_coefficient
from bindscope.training.loss import batch_loss

TASK = BindingTask(lines=4, max_depth=2, queries=3)
SHAPE = ModelConfig(
    d_vocab=40, n_positions=19, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=32, positions="rope", identity_qk=True
)  # fmt: skip
QUICK = Sampling(chains=2, draws=8, burn_in=4)


def estimate(landscape, seed=0, **settings):
    sampling = Sampling(**{"chains": 24, "draws": 1500, "burn_in": 300, **settings})
    return estimate_coefficient(sample_chains(landscape, sampling, torch.Generator().manual_seed(seed)))


@pytest.fixture(scope="module")
def model() -> Transformer:
    return Transformer(SHAPE, torch.Generator().manual_seed(0)).eval()


def test_a_regular_model_has_half_its_parameters():
    found = estimate(Polynomial([2] * 8), step_size=2e-4, elasticity=1.0)
    assert found.coefficient == pytest.approx(4, rel=0.05)
    assert found.low <= found.coefficient <= found.high
    assert found.settled
    assert not found.diverged
    assert found.equipartition == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("powers", [(4, 4, 4), (2, 4, 6)])
def test_a_polynomial_has_the_sum_of_its_inverse_powers(powers):
    found = estimate(Polynomial(powers), step_size=4e-4, elasticity=0.0, draws=3000, burn_in=1000)
    assert found.coefficient == pytest.approx(polynomial_coefficient(powers), rel=0.08)


@pytest.mark.parametrize("shape", [((3, 4), 2), ((3, 2, 3), 2)])
def test_a_linear_network_has_what_aoyagis_theorem_says(shape):
    found = estimate(LinearNetwork(*shape), step_size=4e-5, elasticity=10.0)
    assert found.coefficient == pytest.approx(linear_network_coefficient(*shape), rel=0.08)


@pytest.mark.parametrize("elasticity", [0.0, 2e3, 2e4])
def test_the_pull_back_to_the_checkpoint_takes_off_what_an_integral_says(elasticity):
    landscape = Polynomial([4])
    scale = Sampling().scale_for(landscape.n_examples)

    def weight(w):
        return np.exp(-scale * w**4 / 2 - elasticity * w**2 / 2)

    exact = quad(lambda w: scale * w**4 / 2 * weight(w), -1, 1)[0] / quad(weight, -1, 1)[0]
    found = estimate(landscape, step_size=min(4e-4, 1 / (elasticity + 1)), elasticity=elasticity, chains=200, draws=800)
    assert found.coefficient == pytest.approx(exact, rel=0.1)


def test_averaged_noise_is_exact_for_quadratics_where_plain_noise_is_not():
    landscape = Polynomial([2] * 8)
    stiff = 1.5 / landscape.n_examples * np.log(landscape.n_examples)  # ε nβ/2 = 0.75
    averaged, plain = (
        estimate(landscape, step_size=stiff, elasticity=0.0, draws=400, burn_in=50, averaged=choice)
        for choice in (True, False)
    )
    assert averaged.coefficient == pytest.approx(4, rel=0.05)
    assert plain.coefficient > 5.5  # 4 / (1 − 0.75/2)


def test_chains_that_run_away_give_no_number():
    found = estimate(Polynomial([2] * 4), step_size=1.0, elasticity=1.0, draws=400)
    assert found.diverged
    assert not found.settled
    assert np.isnan([found.coefficient, found.low, found.high]).all()


def test_chains_that_still_move_say_so():
    found = estimate(Polynomial([2] * 50), step_size=2e-6, elasticity=1.0, draws=60, burn_in=10)
    assert not found.settled
    assert found.drift > 0.1
    assert found.equipartition < 0.9


def test_chains_along_which_the_loss_rises_far_have_left():
    draws = np.ones((3, 20))
    near, far = (
        estimate_coefficient(Chains(rise * draws, draws, draws, 10_000, 148.0, Sampling(chains=3, draws=20, burn_in=4)))
        for rise in (0.1, 2.0)
    )
    assert (near.left, far.left) == (False, True)
    assert near.rise == pytest.approx(0.1)


def test_a_slope_gives_negative_draws():
    draws = np.broadcast_to(-np.linspace(0, 1, 20), (3, 20))
    chains = Chains(draws, abs(draws), draws, 10, 5.0, Sampling(chains=3, draws=20, burn_in=4))
    assert estimate_coefficient(chains).negative == 1


def test_one_chain_has_no_interval():
    with pytest.raises(BindscopeError, match="at least 2"):
        Sampling(chains=1)


def test_the_loss_and_gradient_of_a_model_are_those_of_training(model):
    examples = draw_examples(TASK, np.random.default_rng(0), 64)
    landscape = ModelLandscape(model, examples)
    losses, gradients = landscape.losses_and_gradients(landscape.start[None], [0])
    loss = batch_loss(model, examples.batches[0])
    exact = torch.autograd.grad(loss, list(model.parameters()))
    assert losses[0] == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(gradients[0], torch.cat([each.flatten() for each in exact]))


def test_measuring_leaves_the_model_as_it_was(model):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    measure_coefficient(model, draw_examples(TASK, np.random.default_rng(0), 64), QUICK)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_layers_embeddings_and_norms_are_all_weights(model):
    total = sum(int(mark_part(model, part).sum()) for part in ("embedding", "unembedding", "L0", "L1"))
    outer = sum(p.numel() for name, p in model.named_parameters() if name.startswith("norm."))
    assert total + outer == int(mark_part(model, "all").sum()) == sum(p.numel() for p in model.parameters())


def test_heads_share_nothing_and_are_their_attention_without_the_output_bias(model):
    heads = torch.stack([mark_part(model, f"L1.H{head}") for head in range(2)])
    assert int(heads.sum(0).max()) == 1
    assert int(heads.sum()) == int(mark_part(model, "L1.attention").sum()) - model.layers[1].attention.out.bias.numel()


def test_a_part_moves_alone(model):
    examples = draw_examples(TASK, np.random.default_rng(0), 64)
    landscape = ModelLandscape(model, examples, "L1.H0")
    assert len(landscape.start) == int(mark_part(model, "L1.H0").sum())
    landscape.losses_and_gradients(landscape.start[None] + 1, [0])
    moved = torch.cat([p.detach().flatten() for p in landscape._model.parameters()])
    still = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert torch.equal(moved != still, mark_part(model, "L1.H0"))


def test_every_named_part_exists_and_others_are_refused_with_the_nearest(model):
    for part in name_parts(model.config):
        assert mark_part(model, part).any()
    with pytest.raises(BindscopeError, match=r"L1\.H7"):
        mark_part(model, "L1.H7")


def test_only_the_questions_asked_for_count(model):
    deep = draw_examples(TASK, np.random.default_rng(0), 64, "depth=2")
    landscape = ModelLandscape(model, deep)
    marks = np.concatenate(deep.counted)
    depths = np.concatenate([batch.labels["depth"] for batch in deep.batches])
    assert (depths[marks] == 2).all()
    assert (depths[~marks] != 2).all()
    assert landscape.n_examples == int(marks.any(1).sum())
    # answers that do not count change neither loss nor gradient
    for batch, counted in zip(deep.batches, deep.counted):
        batch.targets[~counted] = 7
    changed = ModelLandscape(model, deep)
    ours, theirs = (each.losses_and_gradients(each.start[None], [0]) for each in (landscape, changed))
    assert ours[0] == pytest.approx(theirs[0])
    torch.testing.assert_close(ours[1], theirs[1])


def test_misleading_programs_have_no_answer_on_their_first_two_lines():
    chosen = draw_examples(TASK, np.random.default_rng(0), 64, "misleading")
    for batch, counted in zip(chosen.batches, chosen.counted):
        answers = to_digits(batch, batch.targets)
        assert counted.any()
        for rule in ("rule_line_1", "rule_line_2"):
            assert not (counted & (answers == batch.labels[rule])).any()


def test_programs_are_those_of_the_whole_task_also_where_training_is_scheduled():
    task = PRESETS["binding-neutral"].config.task
    for batch in draw_examples(task, np.random.default_rng(0), 32).batches:
        assert (batch.labels["lines"] == task.lines).all()


@pytest.mark.parametrize(
    ("data", "sentence"), [("depth=9", "too few"), ("colour=1", "labels: "), ("depth=deep", "labels: ")]
)
def test_questions_that_are_not_there_are_refused(data, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        draw_examples(TASK, np.random.default_rng(0), 32, data)


@pytest.mark.parametrize("preset", ["binding-tiny", "assign-add-small", "templates-copy"])
def test_every_family_with_a_loss_can_be_measured(preset):
    config = PRESETS[preset].config
    small = draw_examples(config.task, np.random.default_rng(0), 64, loss=config.training.loss)
    fresh = Transformer(config.model, torch.Generator().manual_seed(0))
    found = measure_coefficient(fresh, small, QUICK)
    assert np.isfinite(found.trace).all()
    again = measure_coefficient(fresh, small, QUICK)
    assert float(found.coefficient) == float(again.coefficient)
