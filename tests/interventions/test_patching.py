from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import patch_logits, patch_sites, take_dimensions
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, identity_model, random_model, sample_pairs

PAIRS = sample_pairs(6)
CONTRAST = contrast_pairs(PAIRS)
AT = torch.tensor([CONTRAST.at])
WHOLE = ["embed", "L0.resid_pre", "L1.resid_mid", "L2.resid_post", "final"]


@pytest.mark.parametrize("make", [random_model, identity_model])
@pytest.mark.parametrize("site", WHOLE)
def test_patching_the_whole_stream_gives_the_source_run(make, site: str) -> None:  # type: ignore[no-untyped-def]
    outcome = patch_sites(make(), CONTRAST, [site])
    np.testing.assert_allclose(outcome.logit_difference, 1, atol=1e-4)
    np.testing.assert_allclose(outcome.new_logit, 1, atol=1e-3)


@pytest.mark.parametrize(
    "site",
    ["L1.q", "L1.k", "L1.v", "L1.H1.rot_q", "L1.rot_k", "L1.H0.scores", "L1.pattern", "L1.H1.z", "L1.H0.result",
     "L1.attn_out", "L1.pre", "L1.post", "L1.mlp_out", "L1.resid_mid", "embed"],
)  # fmt: skip
def test_each_pair_alone_by_plain_writes_gives_the_same(site: str) -> None:
    """Oracle: pair by pair, whole values written by ``run``, columns replaced by hand."""
    model, positions = identity_model(), named_positions(PAIRS)["rhs 1"]
    outcome = patch_sites(model, CONTRAST, [site], positions=positions)
    for pair in range(len(CONTRAST)):
        one = CONTRAST.take(slice(pair, pair + 1))
        with torch.no_grad():
            source = run(model, one.source, [f"{site}@{positions[pair]}"])[f"{site}@{positions[pair]}"]
            changed = run(model, one.base, write={f"{site}@{positions[pair]}": source}, at=AT).logits[:, 0]
            unchanged = [model(tokens, at=AT)[:, 0] for tokens in (one.base, one.source)]
        expected = measure_outcomes(changed, *unchanged, one)
        for name, value in expected.items():
            np.testing.assert_allclose(outcome[name][pair], value[0], rtol=1e-4, atol=1e-5, equal_nan=True)


def test_common_positions_behind_the_site_and_beside_it_mean_the_same() -> None:
    model, n_pairs = random_model(), len(CONTRAST)
    behind = patch_sites(model, CONTRAST, ["L1.resid_pre@2,6", "L1.resid_pre@10"])
    beside = patch_sites(model, CONTRAST, ["L1.resid_pre"], positions=np.tile([2, 6, 10], (n_pairs, 1)))
    by_site = patch_sites(
        model, CONTRAST, ["L1.resid_pre"], positions={"L1.resid_pre": np.tile([10, 6, 2], (n_pairs, 1))}
    )
    assert behind.logit_difference.equals(beside.logit_difference)
    assert behind.logit_difference.equals(by_site.logit_difference)
    assert not behind.logit_difference.equals(patch_sites(model, CONTRAST, ["L1.resid_pre@2,6"]).logit_difference)


def test_a_pair_without_the_position_is_missing_and_the_others_do_not_notice() -> None:
    model, positions = random_model(), named_positions(PAIRS)["rhs 1"]
    some = np.where(np.arange(len(positions)) == 2, -1, positions)
    full, partial = (patch_sites(model, CONTRAST, ["L1.resid_pre"], positions=p) for p in (positions, some))
    others = np.arange(len(positions)) != 2
    assert partial.attrs["n_untouched"] == 1
    assert np.isnan(partial.success[2])
    assert full.kl[others].equals(partial.kl[others])


def test_heads_in_an_identity_model_are_patched_with_their_identity_path() -> None:
    """All heads of a layer together are the attention's output; their z together are not."""
    model = identity_model()
    heads = patch_sites(model, CONTRAST, ["L1.H0", "L1.H1"])
    together = patch_sites(model, CONTRAST, ["L1.attn_out"])
    without = patch_sites(model, CONTRAST, ["L1.H0.z", "L1.H1.z"])
    np.testing.assert_allclose(heads.logit_difference, together.logit_difference, atol=1e-4)
    assert np.abs(heads.logit_difference - without.logit_difference).max() > 1e-3
    assert "includes its identity-scaling term" in heads.attrs["heads"]
    assert "leaves out" in without.attrs["heads"]


def test_neurons_together_are_the_whole_layer_and_one_alone_is_less() -> None:
    model = random_model()
    every = patch_sites(model, CONTRAST, ["L1.post"], edit=take_dimensions(range(model.config.d_mlp)))
    assert every.kl.equals(patch_sites(model, CONTRAST, ["L1.post"]).kl)
    assert not every.kl.equals(patch_sites(model, CONTRAST, ["L1.post"], edit=take_dimensions([3])).kl)
    with pytest.raises(BindscopeError, match="dimensions 0 to 23"):
        patch_sites(model, CONTRAST, ["L1.post"], edit=take_dimensions([24]))


def test_an_edit_that_keeps_the_base_changes_nothing() -> None:
    outcome = patch_sites(random_model(), CONTRAST, ["L1.resid_pre"], edit=lambda base, source: base)
    np.testing.assert_allclose(outcome.kl, 0, atol=1e-9)


def test_activations_of_another_checkpoint_are_those_of_its_own_run() -> None:
    model, other = random_model(0), random_model(1)
    outcome = patch_sites(model, CONTRAST, ["L2.resid_post"], source_model=other)
    with torch.no_grad():
        stream = run(other, CONTRAST.source, ["L2.resid_post"])["L2.resid_post"]
        expected = model.to_logits(stream)[:, CONTRAST.at].argmax(-1)
    np.testing.assert_array_equal(outcome.success, expected == CONTRAST.source_answers)


def test_the_dereferencers_value_can_be_moved_in_both_directions() -> None:
    model, pairs = dereferencer(), sample_pairs(8, depth=3)
    positions = named_positions(pairs)
    for direction in ("noising", "denoising"):
        contrast = contrast_pairs(pairs, direction)  # type: ignore[arg-type]
        assert patch_sites(model, contrast, ["L2.H0"], positions=positions["rhs 3"]).success.all()
        assert not patch_sites(model, contrast, ["L2.H1"]).success.any()


@pytest.mark.parametrize(
    ("sites", "sentence"),
    [
        (["L9.resid_pre"], "layers L0 to L2 with heads H0 to H1"),
        (["L1.H7"], "^site 'L1.H7': .* heads H0 to H1"),
        (["L1.foo"], "^site 'L1.foo': unknown name 'foo'; this model has embed"),
        (
            ["L1.residpre"],
            "Did you mean 'resid_pre'\\? This model has embed, final and, in layers .* resid_pre, q, k, v, rot_q",
        ),
        (["L1.resid_pre@99"], "positions 0 to 22"),
        (["pos_embed"], "adds no position embeddings"),
        ([], "no site"),
        (["L1.H0", "L1.H0.result"], "named twice"),
    ],
)
def test_sites_that_the_model_lacks_are_refused_with_those_it_has(sites: list[str], sentence: str) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        patch_sites(random_model(), CONTRAST, sites)


def test_positions_that_fit_no_row_or_site_are_refused() -> None:
    model = random_model()
    with pytest.raises(BindscopeError, match="positions 0 to 22"):
        patch_sites(model, CONTRAST, ["L1.resid_pre"], positions=np.full(6, 40))
    with pytest.raises(BindscopeError, match="6 rows"):
        patch_sites(model, CONTRAST, ["L1.resid_pre"], positions=np.full(5, 4))
    with pytest.raises(BindscopeError, match="not among the sites"):
        patch_sites(model, CONTRAST, ["L1.resid_pre"], positions={"L2.resid_pre": np.full(6, 4)})
    with pytest.raises(BindscopeError, match="another shape"):
        patch_sites(model, CONTRAST, ["L1.resid_pre"], source_model=identity_model())


def test_the_source_is_run_once_and_gives_values_and_logits_alike(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    model, other = random_model(), random_model(seed=4)
    calls = []
    forward = Transformer.forward

    def count(self, tokens, *arguments, **named):  # type: ignore[no-untyped-def]
        calls.append(self)
        return forward(self, tokens, *arguments, **named)

    monkeypatch.setattr(Transformer, "forward", count)
    patch_logits(model, CONTRAST, ["L1.resid_pre"], source_model=other)
    assert [made is other for made in calls].count(True) == 1
    assert len(calls) == 3
