"""nnsight traces an exported model and sees at each of our sites what we see there."""

import pytest
import torch

pytest.importorskip("transformers")
nnsight = pytest.importorskip("nnsight")

from bindscope.model.run import run  # noqa: E402
from interop.exported import GPT2, LLAMA, NEOX, assert_same_activation, make_exported  # noqa: E402
from model.test_run import all_sites  # noqa: E402
from model.test_transformer import random_tokens  # noqa: E402

WITHOUT_MODULE = {"scores", "result"}  # computed inside functions that no module of transformers stands for


@pytest.mark.parametrize("changes", NEOX.values(), ids=NEOX.keys())
def test_a_neox_agrees_site_by_site(changes, tmp_path):
    check_sites(make_exported(tmp_path / "out", changes), open_model(tmp_path / "out"), trace_neox)


@pytest.mark.parametrize("changes", GPT2.values(), ids=GPT2.keys())
def test_a_gpt2_agrees_site_by_site(changes, tmp_path):
    check_sites(make_exported(tmp_path / "out", changes), open_model(tmp_path / "out"), trace_gpt2)


@pytest.mark.parametrize("changes", LLAMA.values(), ids=LLAMA.keys())
def test_a_llama_agrees_site_by_site(changes, tmp_path):
    check_sites(make_exported(tmp_path / "out", changes), open_model(tmp_path / "out"), trace_llama, rounding=4e-6)


def open_model(directory):
    return nnsight.TransformersModel(str(directory), task="text-generation", attn_implementation="eager", dispatch=True)


@torch.no_grad()
def check_sites(model, language_model, trace_theirs, rounding=2e-6):
    tokens = random_tokens()
    sites = list(all_sites(model))
    trace = run(model, tokens, read=sites)
    seen = trace_theirs(model, language_model, tokens)
    torch.testing.assert_close(seen.pop("logits"), trace.logits, atol=1e-5, rtol=1e-5)
    assert {site.name for site in sites if str(site) not in seen} == WITHOUT_MODULE
    for name, theirs in seen.items():
        assert_same_activation(theirs, trace[name], name, rounding)


def trace_neox(model, language_model, tokens):
    """What each module of a GPT-NeoX takes and gives, under our names and in our shapes."""
    heads, seen = (model.config.n_heads, model.config.d_head), {}
    layers = language_model.gpt_neox.layers
    sources = [layer.attention.source for layer in layers]  # must be opened before the trace
    with language_model.trace(tokens):
        found = {"embed": language_model.gpt_neox.embed_in.output}
        for i in range(model.config.n_layers):
            layer, attention = layers[i], layers[i].attention
            found[f"L{i}.resid_pre"] = layer.input
            found[f"L{i}.qkv"] = attention.query_key_value.output
            found[f"L{i}.rotated"] = sources[i].apply_rotary_pos_emb_0.output
            found[f"L{i}.z"] = attention.dense.input.unflatten(-1, heads)
            found[f"L{i}.attn_out"], found[f"L{i}.pattern"] = attention.output
            found[f"L{i}.resid_mid"] = layer.post_attention_layernorm.input
            found[f"L{i}.pre"] = layer.mlp.dense_h_to_4h.output
            found[f"L{i}.post"] = layer.mlp.dense_4h_to_h.input
            found[f"L{i}.mlp_out"] = layer.mlp.output
            found[f"L{i}.resid_post"] = layer.output
        found["final"] = language_model.gpt_neox.final_layer_norm.output
        found["logits"] = language_model.lm_head.output
        seen = nnsight.save(found)
    for i in range(model.config.n_layers):
        if model.config.parallel:
            del seen[f"L{i}.resid_mid"]  # its second norm reads what the first does
        q, k, v = seen.pop(f"L{i}.qkv").unflatten(-1, (heads[0], 3, heads[1])).unbind(3)
        rotated = [part.transpose(1, 2) for part in seen.pop(f"L{i}.rotated")]
        seen |= {f"L{i}.q": q, f"L{i}.k": k, f"L{i}.v": v, f"L{i}.rot_q": rotated[0], f"L{i}.rot_k": rotated[1]}
    return seen


def trace_gpt2(model, language_model, tokens):
    """What each module of a GPT-2 takes and gives, under our names and in our shapes."""
    heads, seen = (model.config.n_heads, model.config.d_head), {}
    layers = language_model.transformer.h
    with language_model.trace(tokens):
        found = {"embed": language_model.transformer.wte.output}
        found["pos_embed"] = language_model.transformer.wpe.output
        for i in range(model.config.n_layers):
            layer, attention = layers[i], layers[i].attn
            found[f"L{i}.resid_pre"] = layer.input
            found[f"L{i}.qkv"] = attention.c_attn.output
            found[f"L{i}.z"] = attention.c_proj.input.unflatten(-1, heads)
            found[f"L{i}.attn_out"], found[f"L{i}.pattern"] = attention.output
            found[f"L{i}.resid_mid"] = layer.ln_2.input
            found[f"L{i}.pre"] = layer.mlp.c_fc.output
            found[f"L{i}.post"] = layer.mlp.c_proj.input
            found[f"L{i}.mlp_out"] = layer.mlp.output
            found[f"L{i}.resid_post"] = layer.output
        found["final"] = language_model.transformer.ln_f.output
        found["logits"] = language_model.lm_head.output
        seen = nnsight.save(found)
    seen["pos_embed"] = seen["pos_embed"].expand_as(seen["embed"])
    for i in range(model.config.n_layers):
        q, k, v = seen.pop(f"L{i}.qkv").unflatten(-1, (3, *heads)).unbind(2)
        seen |= {f"L{i}.q": q, f"L{i}.k": k, f"L{i}.v": v}
    return seen


def trace_llama(model, language_model, tokens):
    """What each module of a Llama takes and gives, under our names and in our shapes."""
    config, seen = model.config, {}
    heads, shared = (config.n_heads, config.d_head), (config.kv_heads, config.d_head)
    layers = language_model.model.layers
    sources = [layer.self_attn.source for layer in layers]  # must be opened before the trace
    with language_model.trace(tokens):
        found = {"embed": language_model.model.embed_tokens.output}
        for i in range(config.n_layers):
            layer, attention = layers[i], layers[i].self_attn
            found[f"L{i}.resid_pre"] = layer.input
            found[f"L{i}.q"] = attention.q_proj.output.unflatten(-1, heads)
            found[f"L{i}.k"] = attention.k_proj.output.unflatten(-1, shared)
            found[f"L{i}.v"] = attention.v_proj.output.unflatten(-1, shared)
            found[f"L{i}.rotated"] = sources[i].apply_rotary_pos_emb_0.output
            found[f"L{i}.z"] = attention.o_proj.input.unflatten(-1, heads)
            found[f"L{i}.attn_out"], found[f"L{i}.pattern"] = attention.output
            found[f"L{i}.resid_mid"] = layer.post_attention_layernorm.input
            found[f"L{i}.pre"] = layer.mlp.gate_proj.output
            found[f"L{i}.pre_linear"] = layer.mlp.up_proj.output
            found[f"L{i}.post"] = layer.mlp.down_proj.input
            found[f"L{i}.mlp_out"] = layer.mlp.output
            found[f"L{i}.resid_post"] = layer.output
        found["final"] = language_model.model.norm.output
        found["logits"] = language_model.lm_head.output
        seen = nnsight.save(found)
    for i in range(config.n_layers):
        rotated = [part.transpose(1, 2) for part in seen.pop(f"L{i}.rotated")]
        seen |= {f"L{i}.rot_q": rotated[0], f"L{i}.rot_k": rotated[1]}
        for name in ("k", "v", "rot_k"):  # every head has a copy of its group's here
            seen[f"L{i}.{name}"] = seen[f"L{i}.{name}"].repeat_interleave(config.n_heads // config.kv_heads, dim=2)
    return seen
