"""TransformerLens reads an exported model and sees at each of our sites what we see there."""

import pytest
import torch

pytest.importorskip("transformers")
model_bridge = pytest.importorskip("transformer_lens.model_bridge")

from bindscope.model.run import run  # noqa: E402
from bindscope.model.sites import Site  # noqa: E402
from interop.exported import GPT2, LLAMA, NEOX, make_exported  # noqa: E402
from model.test_run import all_sites  # noqa: E402
from model.test_transformer import random_tokens  # noqa: E402

WITHOUT_HOOK = {"rot_q", "rot_k"}  # TransformerLens 4 has no hook after the rotation


@pytest.mark.parametrize("changes", (NEOX | GPT2).values(), ids=(NEOX | GPT2).keys())
@torch.no_grad()
def test_activations_agree_site_by_site(changes, tmp_path):
    model, tokens = make_exported(tmp_path / "out", changes).double(), random_tokens()
    bridge = model_bridge.TransformerBridge.boot_transformers(str(tmp_path / "out"), device="cpu").double()
    bridge.set_use_attn_result(True)
    logits, cache = bridge.run_with_cache(tokens)
    sites = list(all_sites(model))
    trace = run(model, tokens, read=sites)
    torch.testing.assert_close(logits, trace.logits, atol=1e-6, rtol=1e-6)
    compared = {site for site in sites if site.transformer_lens in cache}
    assert {site.name for site in sites if site not in compared} <= WITHOUT_HOOK
    for site in compared:
        ours, theirs = trace[site], cache[site.transformer_lens]
        seen = ours.isfinite()  # hidden keys score −∞ here and a very large negative number there
        assert (theirs[~seen] < -1e9).all(), site
        torch.testing.assert_close(
            theirs[seen], ours[seen], atol=1e-6, rtol=1e-6, msg=lambda text, at=site: f"{at}: {text}"
        )


OF_GROUPS = {"k", "v", "rot_k"}  # of which ours has a copy for each head


@pytest.mark.parametrize("changes", LLAMA.values(), ids=LLAMA.keys())
@torch.no_grad()
def test_a_llama_agrees_site_by_site(changes, tmp_path):
    """In single precision, in which ``transformers`` computes an RMSNorm."""
    model, tokens = make_exported(tmp_path / "out", changes), random_tokens()
    bridge = model_bridge.TransformerBridge.boot_transformers(str(tmp_path / "out"), device="cpu")
    bridge.set_use_attn_result(True)
    _, cache = bridge.run_with_cache(tokens)
    sites = list(all_sites(model))
    trace = run(model, tokens, read=sites)
    for site in sites:
        ours, found = trace[site], cache[site.transformer_lens]
        if site.name in OF_GROUPS:
            found = found.repeat_interleave(ours.shape[2] // found.shape[2], 2)
        seen = ours.isfinite()
        torch.testing.assert_close(
            found[seen], ours[seen], atol=1e-4, rtol=1e-4, msg=lambda text, at=site: f"{at}: {text}"
        )


@torch.no_grad()
def test_an_edit_there_is_the_same_edit_here(tmp_path):
    model, tokens = make_exported(tmp_path / "out", {}), random_tokens()
    bridge = model_bridge.TransformerBridge.boot_transformers(str(tmp_path / "out"), device="cpu")
    other = run(model, random_tokens(seed=9), read=["L1.resid_pre", "L2.z"])
    for text in ("L1.resid_pre@4", "L2.H1.z@4,7"):
        site = Site.parse(text)
        source = other[f"L{site.layer}.{site.name}"][site.index]

        def patch(value, hook, site=site, source=source):
            value = value.clone()
            value[site.index] = source
            return value

        theirs = bridge.run_with_hooks(tokens, fwd_hooks=[(site.transformer_lens, patch)])
        ours = run(model, tokens, write={site: source}).logits
        assert (ours - model(tokens)).abs().max() > 1e-3
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-4)
