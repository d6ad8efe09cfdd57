"""Learned rotations stay orthonormal, find the constructed value subspace, and far less in shuffled answers."""

from __future__ import annotations

import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.subspaces import learn_rotation, principal_angles, random_subspace
from bindscope.subspaces.rotation import RotationPlan
from subspaces.constructed_space import VALUE_AT_QUERY, Known
from subspaces.test_subspace import generator, success

PLAN = RotationPlan(n_steps=90, batch_size=32)


@pytest.fixture(scope="module")
def learned(known: Known, root_pairs):
    before = [weight.clone() for weight in known.model.parameters()]
    rotation = learn_rotation(
        known.model, root_pairs[0], layer=VALUE_AT_QUERY, position="query", rank=10, generator=generator(), plan=PLAN
    )
    assert all(torch.equal(old, new) and new.grad is None for old, new in zip(before, known.model.parameters()))
    return rotation


def test_the_directions_are_orthonormal_after_training(learned) -> None:
    product = learned.subspace.basis.double() @ learned.subspace.basis.double().T
    torch.testing.assert_close(product, torch.eye(10, dtype=torch.float64), atol=1e-5, rtol=0)


def test_the_value_subspace_is_learned(learned, known: Known, root_pairs) -> None:
    assert learned.losses[-5:].mean() < 0.2 * learned.losses[:3].mean()
    assert success(known.model, root_pairs[1], VALUE_AT_QUERY, "query", learned.subspace.swap) > 0.9
    overlap = principal_angles(learned.subspace, known.value).cos().square().sum()  # 10 when they are the same
    by_chance = principal_angles(random_subspace(known.model.config.d_model, 10, generator(1)), known.value)
    assert overlap > 5
    assert overlap > 4 * by_chance.cos().square().sum()


@pytest.mark.slow
def test_shuffled_answers_teach_far_less(known: Known, root_pairs) -> None:
    fit, test = root_pairs
    order = torch.randperm(len(fit), generator=generator(2))
    control = learn_rotation(
        known.model,
        fit,
        layer=VALUE_AT_QUERY,
        position="query",
        rank=10,
        generator=generator(),
        plan=PLAN,
        answers=torch.from_numpy(fit.counterfactual_answers)[order],
    )
    assert success(known.model, test, VALUE_AT_QUERY, "query", control.subspace.swap) < 0.5


def test_impossible_rotations_are_refused(known: Known, root_pairs) -> None:
    with pytest.raises(BindscopeError, match="rank 999"):
        learn_rotation(known.model, root_pairs[0], layer=0, position="query", rank=999, generator=generator())
    with pytest.raises(BindscopeError, match="at least 1"):
        RotationPlan(n_steps=0)
