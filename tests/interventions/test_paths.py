from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.model.run import run
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, identity_model, random_model, sample_pairs

PAIRS = sample_pairs(6)
CONTRAST = contrast_pairs(PAIRS)
POSITIONS = named_positions(PAIRS)


def sent_directly(model, sender: str, entry: str) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """The residual stream at ``entry`` when only what the sender adds to it differs: base plus the sender's difference."""
    base, source = (run(model, tokens, [sender, entry]) for tokens in (CONTRAST.base, CONTRAST.source))
    return base[entry] + source[sender] - base[sender]


def outcome_of(model, write) -> dict[str, np.ndarray]:  # type: ignore[no-untyped-def]
    logits = [run(model, CONTRAST.base, write=write).logits, model(CONTRAST.base), model(CONTRAST.source)]
    return measure_outcomes(*(values[:, CONTRAST.at] for values in logits), CONTRAST)


@torch.no_grad()
@pytest.mark.parametrize("side", ["q", "k", "v"])
@pytest.mark.parametrize("sender", ["L0.H1.result", "L0.mlp_out", "embed"])
def test_a_head_hears_the_sender_through_one_of_its_inputs(sender: str, side: str) -> None:
    """Oracle: the residual stream by hand, through LayerNorm and the head's own weights, written at q, k or v by ``run``."""
    model = random_model(n_layers=4)
    attention = model.layers[2].attention
    stream = model.layers[2].norm1(sent_directly(model, sender, "L2.resid_pre"))
    weight, bias = (getattr(attention, f"W_{side.upper()}")[1], attention.qkv.bias.view(3, 2, 8)["qkv".index(side), 1])
    expected = outcome_of(model, {f"L2.H1.{side}": stream @ weight + bias})
    found = patch_path(model, CONTRAST, sender, f"L2.H1.{side}")
    np.testing.assert_allclose(found.logit_difference, expected["logit_difference"], atol=1e-6)
    assert np.abs(found.logit_difference).max() > 1e-6


@torch.no_grad()
def test_the_direct_way_to_the_logits_is_the_senders_difference_unembedded() -> None:
    """Without a last LayerNorm the logits are linear in the residual stream."""
    model = random_model(norm="none")
    sender = "L1.H0.result"
    base, source = (run(model, tokens, [sender]) for tokens in (CONTRAST.base, CONTRAST.source))
    changed = (base.logits + (source[sender] - base[sender]) @ model.W_U)[:, CONTRAST.at]
    unchanged = (values.logits[:, CONTRAST.at] for values in (base, source))
    expected = measure_outcomes(changed, *unchanged, CONTRAST)
    found = patch_path(model, CONTRAST, "L1.H0", "final")
    np.testing.assert_allclose(found.logit_difference, expected["logit_difference"], atol=1e-6)
    assert found.attrs["frozen"] == "L1.mlp_out, L2.attn_out, L2.mlp_out"


@torch.no_grad()
@pytest.mark.parametrize("receiver", ["L2.resid_pre", "L1.pre", "L1.mlp_out", "L2.H0.result"])
def test_any_site_receives_what_it_would_compute_from_the_changed_stream(receiver: str) -> None:
    model = identity_model()
    entry = {"L2.resid_pre": "L2.resid_pre", "L2.H0.result": "L2.resid_pre"}.get(receiver, "L1.resid_mid")
    stream = sent_directly(model, "L0.H1.result", entry)
    value = run(model, CONTRAST.base, [receiver], {entry: stream})[receiver]
    expected = outcome_of(model, {receiver: value})
    found = patch_path(model, CONTRAST, "L0.H1", receiver)
    np.testing.assert_allclose(found.kl, expected["kl"], rtol=1e-4, atol=1e-7)


@torch.no_grad()
def test_a_scaled_heads_identity_path_hears_too() -> None:
    """Oracle for one head at one position: scores and output of a scaled head written out entry by entry."""
    model, head = identity_model(positions="none"), 1
    attention = model.layers[2].attention
    base = model.layers[2].norm1(run(model, CONTRAST.base, ["L2.resid_pre"])["L2.resid_pre"])
    new = model.layers[2].norm1(sent_directly(model, "L0.mlp_out", "L2.resid_pre"))
    bias = attention.qkv.bias.view(3, 2, 8)[:, head]
    for side in "qkv":
        x = {name: new if name == side else base for name in "qkv"}
        q, k, v = (x[n] @ getattr(attention, f"W_{n.upper()}")[head] + bias[i] for i, n in enumerate("qkv"))
        scores = q @ k.mT / 8**0.5 + 1.5 * attention.identity_a[head] * x["q"] @ x["k"].mT / 16**0.5
        pattern = (scores + torch.full(scores.shape[-2:], -torch.inf).triu(1)).softmax(-1)
        value = pattern @ v @ attention.W_O[head] + 1.5 * attention.identity_b[head] * pattern @ x["v"]
        expected = outcome_of(model, {f"L2.H{head}.result": value})
        found = patch_path(model, CONTRAST, "L0.mlp_out", f"L2.H{head}.{side}")
        np.testing.assert_allclose(found.kl, expected["kl"], rtol=1e-4, atol=1e-9)


def test_a_path_with_nothing_between_its_ends_is_plain_patching() -> None:
    model = identity_model()
    path = patch_path(model, CONTRAST, "L1.mlp_out", "L2.resid_pre")
    np.testing.assert_allclose(path.kl, patch_sites(model, CONTRAST, ["L1.mlp_out"]).kl, rtol=1e-5, atol=1e-9)


def test_a_path_from_another_checkpoint_is_measured_by_that_checkpoints_source_run() -> None:
    """Oracle: with nothing between its ends the path is plain patching from the other checkpoint."""
    model, other = identity_model(), identity_model(seed=3)
    path = patch_path(model, CONTRAST, "L1.mlp_out", "L2.resid_pre", source_model=other)
    whole = patch_sites(model, CONTRAST, ["L1.mlp_out"], source_model=other)
    for name in ("logit_difference", "new_logit", "kl"):
        np.testing.assert_allclose(path[name], whole[name], rtol=1e-5, atol=1e-9)


def test_the_dereferencers_value_travels_from_head_to_head_by_value_only() -> None:
    model, pairs = dereferencer(), sample_pairs(8, depth=3)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)

    def success(sender: str, receiver: str, position: str) -> float:
        return float(
            patch_path(model, contrast, sender, receiver, receiver_positions=positions[position]).success.mean()
        )

    assert success("L1.H0", "L2.H0.v", "rhs 2") == 1
    assert success("L2.H0", "L3.H0.v", "rhs 3") == 1
    assert success("L3.H0", "L4.H0.v", "query") == 1
    for other in ("L2.H0.q", "L2.H0.k", "L2.H1.v", "final"):
        assert success("L1.H0", other, "rhs 2") == 0
    assert success("L1.H0", "L3.H0.v", "rhs 3") == 0  # the value must be handed on, not skip a link


def test_positions_narrow_both_ends() -> None:
    model, pairs = dereferencer(), sample_pairs(8, depth=2)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    arguments = dict(sender="L1.H0", receiver="L2.H0.v")
    right = patch_path(model, contrast, **arguments, sender_positions=positions["rhs 2"])
    wrong = patch_path(model, contrast, **arguments, sender_positions=positions["query"])
    assert right.success.all()
    assert not wrong.success.any()


@pytest.mark.parametrize(("sender", "receiver"), [("L2.H0", "L1.H0.q"), ("L1.H0", "L1.H1.k"), ("final", "L2.mlp_out")])
def test_a_receiver_before_its_sender_is_refused(sender: str, receiver: str) -> None:
    with pytest.raises(BindscopeError, match="must be computed after the sender"):
        patch_path(random_model(), CONTRAST, sender, receiver)
