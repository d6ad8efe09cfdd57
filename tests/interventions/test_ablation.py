from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.interventions.ablation import ablate_heads, ablate_mlps, ablate_sets, ablate_together
from bindscope.interventions.answers import accuracy_by
from bindscope.model.run import run
from bindscope.tasks.binding.structure import named_positions
from bindscope.tasks.task import Batch
from interventions.causal_cases import TASK, dereferencer, identity_model, random_model, sample_pairs

BATCH = sample_pairs(12).base
OTHER = sample_pairs(20, seed=5).base


def test_a_zeroed_head_is_a_head_whose_output_weights_are_zero() -> None:
    """Oracle: the same model with the head's columns of W_O, and its identity scale, set to 0."""
    model = identity_model()
    dataset = ablate_heads(model, BATCH, kind="zero")
    for layer, head in ((0, 1), (2, 0)):
        cut = identity_model()
        attention = cut.layers[layer].attention
        with torch.no_grad():
            attention.out.weight.view(16, 2, 8)[:, head] = 0
            attention.identity_b[head] = 0  # type: ignore[index]
            logits = cut(torch.from_numpy(BATCH.tokens))[:, BATCH.target_positions[0]]
        right = logits.log_softmax(-1)[torch.arange(12), torch.from_numpy(BATCH.targets[:, 0])]
        np.testing.assert_allclose(dataset.log_probability.sel(layer=layer, head=head), right, atol=1e-4)
        np.testing.assert_array_equal(dataset.answer.sel(layer=layer, head=head), logits.argmax(-1))


@pytest.mark.parametrize("reference", [None, OTHER])
def test_the_mean_is_that_of_the_reference_at_each_position(reference: Batch | None) -> None:
    model = random_model()
    of = BATCH if reference is None else reference
    with torch.no_grad():
        mean = run(model, torch.from_numpy(of.tokens), ["L1.H1.result"])["L1.H1.result"].mean(0)  # [position, d_model]
        write = {"L1.H1.result": lambda old: mean.expand_as(old)}
        logits = run(model, torch.from_numpy(BATCH.tokens), write=write).logits[:, BATCH.target_positions[0]]
    dataset = ablate_heads(model, BATCH, kind="mean", reference=reference, heads=[(1, 1)])
    np.testing.assert_array_equal(dataset.answer.sel(layer=1, head=1), logits.argmax(-1))
    right = logits.log_softmax(-1)[torch.arange(12), torch.from_numpy(BATCH.targets[:, 0])]
    np.testing.assert_allclose(dataset.log_probability.sel(layer=1, head=1), right, atol=1e-4)
    assert (dataset.answer.sel(layer=0) == -1).all()
    assert dataset.correct.sel(layer=0).isnull().all()


def test_programs_of_another_length_give_one_mean_for_all_positions() -> None:
    model = random_model(n_positions=40)
    short = sample_pairs(9, task=type(TASK)(lines=3, max_depth=2)).base
    with torch.no_grad():
        mean = run(model, torch.from_numpy(short.tokens), ["L1.mlp_out"])["L1.mlp_out"].mean((0, 1))
        logits = run(
            model, torch.from_numpy(BATCH.tokens), write={"L1.mlp_out": lambda old: mean.expand_as(old)}
        ).logits
    dataset = ablate_mlps(model, BATCH, kind="mean", reference=short)
    np.testing.assert_array_equal(dataset.answer.sel(layer=1), logits[:, BATCH.target_positions[0]].argmax(-1))


def test_resampling_takes_whole_outputs_of_other_programs() -> None:
    """One other program in the reference: the outputs are exactly its own."""
    model, one = random_model(), OTHER.take(slice(0, 1))
    with torch.no_grad():
        value = run(model, torch.from_numpy(one.tokens), ["L0.H0.result"])["L0.H0.result"]
        logits = run(
            model, torch.from_numpy(BATCH.tokens), write={"L0.H0.result": lambda old: value.expand_as(old)}
        ).logits
    dataset = ablate_heads(model, BATCH, kind="resample", reference=one, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(dataset.answer.sel(layer=0, head=0), logits[:, BATCH.target_positions[0]].argmax(-1))


def test_resampling_a_batch_from_itself_never_keeps_a_program_its_own() -> None:
    """Ten programs with ten different answers: whoever takes another's stream gives a wrong one."""
    drawn = sample_pairs(200).base
    batch = drawn.take(np.unique(drawn.targets[:, 0], return_index=True)[1])
    dataset = ablate_together(dereferencer(), batch, ["final"], "resample", rng=np.random.default_rng(0))
    assert len(batch) == 10
    assert dataset.base_correct.all()
    assert not dataset.correct.any()


def test_the_dereferencer_needs_its_mechanism_and_not_its_decoy() -> None:
    model, batch = dereferencer(), sample_pairs(60).base
    seen = []
    dataset = ablate_heads(model, batch, kind="mean", on_progress=lambda done, total: seen.append((done, total)))
    accuracy = accuracy_by(dataset, "depth")
    assert (accuracy.base_accuracy == 1).all()
    assert (accuracy.accuracy.sel(head=1) == 1).all()
    assert (accuracy.accuracy.sel(head=0, layer=0) < 0.5).all()
    assert (accuracy.accuracy.sel(head=0, layer=4) < 0.5).all()
    assert accuracy.n.sum("depth").max() == 60
    assert seen[-1] == (60, 60)


def test_accuracy_by_depth_counts_and_brackets_each_group() -> None:
    dataset = ablate_heads(random_model(), BATCH, kind="zero")
    accuracy = accuracy_by(dataset, "depth")
    depth = BATCH.labels["depth"][:, 0]
    for group in np.unique(depth):
        right = dataset.correct.values[1, 0, depth == group]
        cell = accuracy.sel(layer=1, head=0, depth=group)
        assert cell.accuracy == pytest.approx(right.mean())
        low, high = wilson_interval(right.sum(), len(right))
        assert (cell.accuracy_low, cell.accuracy_high) == (low, high)
    with pytest.raises(BindscopeError, match="no label 'colour'"):
        accuracy_by(dataset, "colour")


def test_parts_can_be_ablated_together_and_at_positions_only() -> None:
    model, pairs = dereferencer(), sample_pairs(30, depth=3)
    positions = named_positions(pairs)
    at_link = ablate_together(model, pairs.base, ["L1.H0"], "mean", positions=positions["rhs 2"])
    elsewhere = ablate_together(model, pairs.base, ["L1.H0"], "mean", positions=positions["distractor"])
    assert at_link.correct.mean() < 0.6
    assert elsewhere.correct.all()
    together = ablate_together(random_model(), BATCH, ["L1.H0", "L1.H1"], "zero")
    heads = ablate_together(random_model(), BATCH, ["L1.result"], "zero")
    assert together.log_probability.equals(heads.log_probability)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kind": "median"}, "choose one of zero, mean, resample"),
        ({"kind": "resample"}, "generator"),
        ({"heads": [(0, 5)]}, "heads 0 to 1"),
    ],
)
def test_impossible_ablations_are_refused(arguments: dict, sentence: str) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        ablate_heads(random_model(), BATCH, **arguments)


def test_a_model_without_mlps_has_none_to_ablate() -> None:
    with pytest.raises(BindscopeError, match="has an MLP"):
        ablate_mlps(dereferencer(), BATCH)


def test_sets_of_sites_are_ablated_as_each_set_alone_is() -> None:
    model, batch, reference = random_model(), BATCH, OTHER
    sets = [["L0.H1"], [], ["L0.H0", "L1.H1", "L1.mlp_out"]]
    ticks: list[tuple[int, int]] = []
    found = ablate_sets(model, batch, sets, reference=reference, on_progress=lambda *done: ticks.append(done))
    assert found.answer.dims == ("set", "example")
    assert ticks == [(1, 3), (2, 3), (3, 3)]
    for index, sites in enumerate(sets):
        alone = ablate_together(model, batch, sites, reference=reference)
        np.testing.assert_array_equal(found.answer.isel(set=index), alone.answer)
        np.testing.assert_allclose(found.log_probability.isel(set=index), alone.log_probability, atol=1e-6)
    np.testing.assert_array_equal(found.log_probability.isel(set=1), found.base_log_probability)
    assert not np.allclose(found.log_probability.isel(set=0), found.base_log_probability)


def test_no_set_at_all_is_refused() -> None:
    with pytest.raises(BindscopeError, match="no set of sites"):
        ablate_sets(random_model(), BATCH, [])
