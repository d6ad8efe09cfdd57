"""Which checkpoints descend from one another, on small trainings whose history is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.runs.lineage import LINEAGE, Descent, Lineage, compare_weights, describe_lineage
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.schema import to_mapping

SHAPE = ModelConfig(12, 8, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=32)
SAVED = (0, 1, 2, 4, 8, 16, 32, 64)
Weights = Mapping[str, Tensor]


def train(initial: int, data: int, lr: float = 1e-2) -> list[Weights]:
    """Weights at SAVED steps of learning to repeat the token before, from initial weights and data by their seeds."""
    model = Transformer(SHAPE, torch.Generator().manual_seed(initial))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    random, saved = torch.Generator().manual_seed(data), []
    for step in range(SAVED[-1] + 1):
        if step in SAVED:
            saved.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        tokens = torch.randint(12, (16, 8), generator=random)
        loss = functional.cross_entropy(model(tokens)[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return saved


@pytest.fixture(scope="module")
def one() -> list[Weights]:
    return train(initial=1, data=1)


@pytest.fixture(scope="module")
def another() -> list[Weights]:
    return train(initial=2, data=2)


def read_lineage(series: Iterable[Weights]) -> dict[int, Descent]:
    """What is recorded of a series whose steps are 0, 100, 200 …"""
    lineage = Lineage()
    found = {100 * index: lineage.add(100 * index, weights) for index, weights in enumerate(series)}
    return {step: descent for step, descent in found.items() if descent is not None}


def describe(found: Mapping[int, Descent]) -> list[str]:
    return describe_lineage({LINEAGE: {str(step): to_mapping(descent) for step, descent in found.items()}})


def independent_steps(found: Mapping[int, Descent]) -> list[int]:
    return [step for step, descent in found.items() if descent.is_independent]


def set_back(found: Mapping[int, Descent]) -> dict[int, int]:
    return {step: descent.nearest for step, descent in found.items() if descent.nearest != descent.before}


def test_a_training_is_one_lineage_even_early_and_where_its_weights_move_fast(one) -> None:
    fast = train(initial=1, data=1, lr=5e-2)
    late = [descent.distance for step, descent in read_lineage(fast).items() if step >= 400]
    assert (
        max(late) > 0.3
    )  # it does move: by a third of its length between two checkpoints; which ones hangs on the machine
    for series in (one, fast, [one[0], one[-1]], [fast[0], fast[-1]]):
        found = read_lineage(series)
        assert (independent_steps(found), set_back(found), describe(found)) == ([], {}, [])


@pytest.mark.parametrize("name", ["assign-add", "binding-plain", "binding-laptop", "binding-deep"])
def test_shipped_runs_are_one_lineage(name: str) -> None:
    run = Run.open(SHIPPED_DIRECTORY / name)
    found = read_lineage(run.weights(step) for step in run.steps)
    assert describe(found) == []
    assert min(descent.cosine for descent in found.values()) > 0.85
    assert compare_weights(0, run.weights("first"), run.weights("last")).cosine > 0.44


@pytest.mark.parametrize("pair", [("assign-add", "binding-deep"), ("binding-laptop", "binding-plain")])
@pytest.mark.parametrize("step", ["first", "last"])
def test_two_shipped_runs_are_independent_in_what_they_have_in_common(pair: tuple[str, str], step: str) -> None:
    one, other = (Run.open(SHIPPED_DIRECTORY / name).weights(step) for name in pair)
    common = {name: tensor for name, tensor in one.items() if name in other and tensor.shape == other[name].shape}
    found = compare_weights(0, common, other)
    assert found.cosine < 0.01
    assert found.is_independent


def test_two_runs_that_are_mixed_break_at_every_step_and_each_step_is_nearest_to_its_own_run(one, another) -> None:
    found = read_lineage([one[4], another[4], one[5], another[5]])
    assert independent_steps(found) == [100, 200, 300]
    assert set_back(found) == {200: 0, 300: 100}
    said = describe(found)
    assert said[0].startswith("Steps 100, 200 and 300 do not descend from the step before each: the cosine similarity")
    assert "(step 200 to step 0 and step 300 to step 100)" in said[1]
    assert len(said) == 2


def test_two_runs_one_after_the_other_break_once(one, another) -> None:
    found = read_lineage([*one[3:], *another[3:]])
    assert (independent_steps(found), set_back(found)) == ([500], {})
    (said,) = describe(found)
    assert said.startswith("Step 500 does not descend from step 400: the cosine similarity of the weights is")


def test_training_that_began_again_with_the_same_weights_and_other_data_is_set_back(one) -> None:
    again = train(initial=1, data=3)
    found = read_lineage([*one, *again[1:]])
    assert independent_steps(found) == []
    assert set_back(found) == {800: 0}
    (said,) = describe(found)
    assert said.startswith(
        "Step 800 does not go on from step 700 but from an earlier one, whose weights are much nearer"
    )


@pytest.mark.parametrize("width", [8, 16, 48])
def test_weights_drawn_independently_are_never_taken_for_descendants(width: int) -> None:
    shape = ModelConfig(12, 8, n_layers=2, n_heads=2, d_model=width, d_head=width // 2, d_mlp=width)
    drawn = [Transformer(shape, torch.Generator().manual_seed(seed)).state_dict() for seed in range(30)]
    found = read_lineage(drawn)
    assert len(independent_steps(found)) == 29
    assert set_back(found) == {}
    assert "Steps 100, 200, 300 and 26 more do not descend" in describe(found)[0]


def test_embeddings_that_two_runs_share_make_neither_the_others_descendant(one, another) -> None:
    mixed = {**another[-1], "embed.weight": 50 * one[-1]["embed.weight"]}
    assert compare_weights(0, one[-1], mixed).is_independent


def test_distance_and_similarity_are_what_is_worked_out_by_hand() -> None:
    before = {"a": torch.tensor([[3.0, 0.0]]), "b": torch.tensor([[0.0, 4.0]]), "bias": torch.tensor([0.0])}
    after = {"a": torch.tensor([[3.0, 3.0]]), "b": torch.tensor([[0.0, 8.0]]), "bias": torch.tensor([12.0])}
    found = compare_weights(7, before, after)
    assert found.distance == pytest.approx((9 + 16 + 144) ** 0.5 / 5)
    assert found.cosine == pytest.approx(median([2**-0.5, 1.0]))
    assert found.before == found.nearest == 7


def test_weights_that_were_saved_twice_are_said(one) -> None:
    assert describe(read_lineage([one[0], one[5], one[5], one[6]])) == [
        "Step 200 has the very weights of step 100; was one file saved twice?"
    ]


def test_a_model_without_matrices_is_not_judged() -> None:
    found = compare_weights(0, {"bias": torch.zeros(3)}, {"bias": torch.ones(3)})
    assert (found.cosine, found.distance, found.is_independent) == (None, 0.0, False)


@pytest.mark.parametrize("damage", [[], {"x": {}}, {"3": {"before": "no"}}, {"3": 4}, {"9" * 5000: {}}])
def test_a_damaged_record_is_refused_with_a_sentence(damage) -> None:
    with pytest.raises(BindscopeError, match="lineage"):
        describe_lineage({LINEAGE: damage})
