"""Reading and writing at sites: identities that hold for any model."""

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.model.run import run
from bindscope.model.sites import KINDS, Site
from model.test_transformer import VARIANTS, make_model, random_tokens


def all_sites(model):
    names = [Site(name) for name, kind in KINDS.items() if not kind.in_layer]
    for layer in range(model.config.n_layers):
        names += [Site(name, layer) for name, kind in KINDS.items() if kind.in_layer]
    for site in names:
        try:
            run(model, random_tokens(1, 2), read=[site])
            yield site
        except BindscopeError:
            continue


site_texts = st.builds(
    Site,
    name=st.sampled_from([name for name, kind in KINDS.items() if kind.in_layer and kind.has_heads]),
    layer=st.integers(0, 99),
    head=st.none() | st.integers(0, 99),
    positions=st.none() | st.lists(st.integers(0, 999), min_size=1, max_size=4).map(tuple),
)


@given(site_texts)
def test_parsing_is_the_inverse_of_printing(site):
    assert Site.parse(str(site)) == site


@pytest.mark.parametrize("name", KINDS)
def test_the_names_of_transformer_lens_are_read(name):
    site = Site(name, layer=3 if KINDS[name].in_layer else None)
    assert Site.parse(site.transformer_lens) == site
    assert Site.parse(f"{site.transformer_lens}@4,7") == replace(site, positions=(4, 7))


@pytest.mark.parametrize(
    "text", ["blocks.0.hook_z", "blocks.hook_z", "hook_resid_pre", "blocks.0.attn.hook_nose", "L0.hook_z"]
)
def test_what_is_no_hook_point_is_refused(text):
    with pytest.raises(BindscopeError, match=re.escape(f"site '{text}'")):
        Site.parse(text)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_reading_changes_nothing(changes):
    model, tokens = make_model(**changes), random_tokens()
    sites = list(all_sites(model))
    assert len(sites) > 20
    torch.testing.assert_close(run(model, tokens, read=sites).logits, model(tokens))


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_writing_back_what_was_read_changes_nothing(changes):
    model, tokens = make_model(**changes), random_tokens()
    sites = list(all_sites(model))
    trace = run(model, tokens, read=sites)
    for site in sites:
        torch.testing.assert_close(run(model, tokens, write={site: trace[site]}).logits, trace.logits)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_patching_the_whole_stream_gives_the_other_run(changes):
    model, base, other = make_model(**changes), random_tokens(), random_tokens(seed=9)
    for layer in range(model.config.n_layers):
        source = run(model, other, read=[f"L{layer}.resid_post"])
        patched = run(model, base, write={f"L{layer}.resid_post": source[f"L{layer}.resid_post"]})
        torch.testing.assert_close(patched.logits, source.logits)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_write_reaches_the_logits(changes):
    model, tokens = make_model(**changes), random_tokens()
    plain = model(tokens)
    for site in all_sites(model):
        if model.config.outputs == 1 and site.name == "final":
            continue
        written = run(model, tokens, write={site: lambda old: torch.rand_like(old) * 3}).logits
        assert not torch.allclose(written, plain, atol=1e-4), site


def test_head_results_sum_to_the_attention_output():
    for changes in ({}, VARIANTS["identity scaling"]):
        model, tokens = make_model(**changes), random_tokens()
        trace = run(model, tokens, read=["L1.result", "L1.attn_out"])
        total = trace["L1.result"].sum(2) + model.layers[1].attention.out.bias
        torch.testing.assert_close(total, trace["L1.attn_out"])


def test_selecting_heads_and_positions_picks_that_part():
    model, tokens = make_model(), random_tokens()
    trace = run(model, tokens, read=["L1.z", "L1.H1.z@4,7", "L1.pattern", "L1.H0.pattern@3", "L2.resid_pre@5"])
    assert torch.equal(trace["L1.H1.z@4,7"], trace["L1.z"][:, [4, 7], 1])
    assert torch.equal(trace["L1.H0.pattern@3"], trace["L1.pattern"][:, 0, [3]])
    assert trace["L2.resid_pre@5"].shape == (3, 1, 12)


def test_a_later_position_cannot_move_an_earlier_logit():
    model, tokens = make_model(), random_tokens()
    patched = run(model, tokens, write={"L0.resid_post@6": torch.zeros_like})
    torch.testing.assert_close(patched.logits[:, :6], model(tokens)[:, :6])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("L9.resid_pre", "layers 0 to 2"),
        ("L0.H7.z", "heads 0 to 1"),
        ("L0.resid_pre@30", "positions 0 to 8"),
        ("L0.pos_embed", "belongs to no layer"),
        ("pos_embed", "adds no position"),
        ("resid_pre", "needs a layer"),
        ("L0.H1.resid_pre", "has no heads"),
        ("L0.resid_pro", "Did you mean 'resid_pre'"),
        ("layer 3", "expected the form"),
        ("blocks.1.attn.hook_zz", r"TransformerLens's\. Did you mean 'blocks\.1\.attn\.hook_z'\?"),
    ],
)
def test_a_site_the_model_does_not_have_is_refused(text, said):
    with pytest.raises(BindscopeError, match=said):
        run(make_model(), random_tokens(), read=[text])


def test_a_write_of_the_wrong_shape_is_refused():
    with pytest.raises(BindscopeError, match="shape"):
        run(make_model(), random_tokens(), write={"L0.resid_pre@3": torch.zeros(3, 12)})


def test_sites_of_an_absent_mlp_are_refused():
    with pytest.raises(BindscopeError, match="has no MLP"):
        run(make_model(**VARIANTS["bare"]), random_tokens(), read=["L0.mlp_out"])
