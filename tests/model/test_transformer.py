"""The transformer against identities and an independent, loop-by-loop computation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Layout

SMALL = ModelConfig(d_vocab=11, n_positions=20, n_layers=3, n_heads=2, d_model=12, d_head=4, d_mlp=20)
LIVELY = InitConfig(scheme="fan_in")
IDENTITY = dict(identity_qk=True, identity_vo=True, identity_gain=3.0)
VARIANTS = {
    "rope": {},
    "partial rope": {"rope_fraction": 0.5},
    "learned positions": {"positions": "learned"},
    "fixed normal positions": {"positions": "normal"},
    "bidirectional": {"causal": False},
    "bare": {"norm": "none", "bias": False, "activation": "relu", "mlp_layers": (2,)},
    "cosine": {"activation": "cos"},
    "tied": {"tied": True},
    "identity scaling": IDENTITY,
    "one output": {"d_out": 1},
    "silu": {"activation": "silu", "norm_epsilon": 0.1},
    "parallel": {"parallel": True, "mlp_layers": (0, 2)},
    "rms norm": {"norm": "rms", "norm_epsilon": 0.3},
    "gated": {"gated": True},
    "grouped heads": {"n_heads": 6, "n_kv_heads": 2},
    "all at once": {
        "n_heads": 4,
        "n_kv_heads": 1,
        "gated": True,
        "norm": "rms",
        "parallel": True,
        "activation": "silu",
    },
    "grouped identity scaling": {**IDENTITY, "n_heads": 4, "n_kv_heads": 2, "parallel": True},
}


def make_model(**changes) -> Transformer:
    model = Transformer(replace(SMALL, init=LIVELY, **changes), torch.Generator().manual_seed(3)).eval()
    for block in model.layers:
        for scalars in (block.attention.identity_a, block.attention.identity_b):
            if scalars is not None:
                scalars.data = torch.randn(scalars.shape, generator=torch.Generator().manual_seed(5))
    return model


def random_tokens(n_rows=3, n_columns=9, seed=0):
    return torch.randint(0, SMALL.d_vocab, (n_rows, n_columns), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_parameter_count_from_the_shape_is_the_real_one(changes):
    model = make_model(**changes)
    assert model.config.n_parameters == sum(p.numel() for p in model.parameters())


def test_the_paper_model_has_37_8_million_parameters():
    config = ModelConfig(
        d_vocab=40, n_positions=68, n_layers=12, n_heads=8, d_model=512, d_head=64, d_mlp=2048, bias=False
    )
    assert round(config.n_parameters / 1e6, 1) == 37.8


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_asking_for_some_columns_gives_the_same_logits(changes):
    model, tokens = make_model(**changes), random_tokens()
    at = torch.tensor([8, 2])
    torch.testing.assert_close(model(tokens, at=at), model(tokens)[:, at])


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_later_tokens_matter_only_without_the_causal_mask(changes):
    model, tokens = make_model(**changes), random_tokens()
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % SMALL.d_vocab
    same = torch.allclose(model(tokens)[:, :-1], model(changed)[:, :-1], atol=1e-6)
    assert same == model.config.causal


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_query_blocks_behave_as_separate_sequences(changes):
    if not changes.get("causal", True):
        pytest.skip("a bidirectional prefix sees its query, so blocks cannot share it")
    model = make_model(**changes)
    prefix, queries = random_tokens(3, 6), random_tokens(3, 6, seed=1).view(3, 2, 3)
    layout = Layout(
        np.array([*range(6), 6, 7, 8, 6, 7, 8]),
        np.array([0] * 6 + [1] * 3 + [2] * 3),
    )
    together = model(torch.cat([prefix, queries.flatten(1)], 1), layout)
    for block in range(2):
        alone = model(torch.cat([prefix, queries[:, block]], 1))
        torch.testing.assert_close(together[:, :6], alone[:, :6])
        torch.testing.assert_close(together[:, 6 + 3 * block : 9 + 3 * block], alone[:, 6:])


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_forward_equals_the_equations_written_out(changes):
    model, tokens = make_model(**changes), random_tokens(1, 5)
    torch.testing.assert_close(model(tokens)[0].double(), spell_out(model, tokens[0]), atol=1e-4, rtol=1e-4)


def spell_out(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    """The forward pass of one sequence in float64 with explicit loops over positions and heads."""
    config, d = model.config, torch.float64
    x = [model.W_E[t].to(d) for t in tokens]
    if config.positions in ("learned", "normal"):
        x = [v + model.pos_embed[i].to(d) for i, v in enumerate(x)]
    for block in model.layers:
        y = [norm_by_hand(config, v, block.norm1) for v in x]
        entering, x = x, [v + attend_by_hand(block.attention, y, i) for i, v in enumerate(x)]
        if block.mlp is not None:
            read = [norm_by_hand(config, v, block.norm2) for v in (entering if config.parallel else x)]
            x = [v + mlp_by_hand(config, y, block.mlp) for v, y in zip(x, read)]
    return torch.stack([norm_by_hand(config, v, model.norm) @ model.W_U.to(d) for v in x])


def norm_by_hand(config, v, norm):
    if config.norm == "none":
        return v
    if config.norm == "rms":
        return v / (v.pow(2).mean() + config.norm_epsilon).sqrt() * norm.weight.double()
    centred = v - v.mean()
    return centred / (centred.pow(2).mean() + config.norm_epsilon).sqrt() * norm.weight.double() + norm.bias.double()


def mlp_by_hand(config, y, mlp):
    act = {
        "gelu": torch.nn.functional.gelu,
        "relu": torch.relu,
        "cos": torch.cos,
        "silu": lambda v: v / (1 + (-v).exp()),
    }
    up = linear_by_hand(y, mlp.up)
    hidden = act[config.activation](linear_by_hand(y, mlp.gate)) * up if config.gated else act[config.activation](up)
    return linear_by_hand(hidden, mlp.down)


def linear_by_hand(v, linear):
    out = linear.weight.double() @ v
    return out if linear.bias is None else out + linear.bias.double()


def attend_by_hand(attention, y, i):
    config = attention.config
    n_kv_heads, total = config.n_kv_heads or config.n_heads, 0
    n_rows = [heads * config.d_head for heads in (config.n_heads, n_kv_heads, n_kv_heads)]
    qkv = [linear_by_hand(v, attention.qkv).split(n_rows) for v in y]
    for head in range(config.n_heads):
        part = slice(head * config.d_head, (head + 1) * config.d_head)
        shared = head * n_kv_heads // config.n_heads
        kv_part = slice(shared * config.d_head, (shared + 1) * config.d_head)
        keys = range(i + 1) if config.causal else range(len(y))
        scores = []
        for j in keys:
            q, k = turn(config, qkv[i][0][part], i), turn(config, qkv[j][1][kv_part], j)
            score = q @ k / config.d_head**0.5
            if attention.identity_a is not None:
                score += (
                    config.identity_gain * attention.identity_a[head].double() * (y[i] @ y[j]) / config.d_model**0.5
                )
            scores.append(score)
        weights = torch.stack(scores).softmax(0)
        z = sum(w * qkv[j][2][kv_part] for w, j in zip(weights, keys))
        total = total + attention.W_O[head].double().T @ z
        if attention.identity_b is not None:
            gained = config.identity_gain * attention.identity_b[head].double()
            total = total + gained * sum(w * y[j] for w, j in zip(weights, keys))
    return total if attention.out.bias is None else total + attention.out.bias.double()


def turn(config, v, position):
    """Rotate by complex multiplication, pairing dimension i with i + half."""
    if config.positions != "rope":
        return v
    half = config.rope_dims // 2
    angles = torch.tensor([position * config.rope_base ** (-2 * i / config.rope_dims) for i in range(half)]).double()
    turned = torch.complex(v[:half], v[half : 2 * half]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag, v[2 * half :]])


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_weights_by_head_are_those_that_heads_compute_with(changes):
    """Also where heads share keys and values: what W_Q, W_K and W_V make of a normed stream is what the sites hold."""
    from bindscope.model.run import run

    model, tokens = make_model(**changes), random_tokens()
    block = model.layers[1]
    trace = run(model, tokens, read=["L1.resid_pre", "L1.q", "L1.k", "L1.v", "L1.z", "L1.result"])
    y = block.norm1(trace["L1.resid_pre"])
    for side in "qkv":
        by_weights = torch.einsum("bpm,hme->bphe", y, getattr(block.attention, f"W_{side.upper()}"))
        torch.testing.assert_close(by_weights, trace[f"L1.{side}"])
    if not model.config.identity_vo:
        by_weights = torch.einsum("bphe,hem->bphm", trace["L1.z"], block.attention.W_O)
        torch.testing.assert_close(by_weights, trace["L1.result"])


def test_offset_biased_heads_attend_h_positions_back():
    from bindscope.model.run import run

    init = InitConfig(scheme="fan_in", offset_bias=4.0)
    model = Transformer(ModelConfig(d_vocab=11, n_positions=20, init=init), torch.Generator().manual_seed(0))
    pattern = run(model, random_tokens(2, 12), read=["L0.pattern"])["L0.pattern"]
    for head in range(4):
        favourite = pattern[:, head, 4:].argmax(-1)
        assert (favourite == torch.arange(4, 12) - head).all()
        assert (pattern[:, head, 4:].amax(-1) > 0.5).all()


def test_mimetic_heads_start_symmetric():
    init = InitConfig(scheme="fan_in", mimetic_qk=1.3, mimetic_vo=0.7)
    attention = Transformer(replace(SMALL, init=init)).layers[1].attention
    torch.testing.assert_close(attention.W_Q, attention.W_K)
    torch.testing.assert_close(attention.W_O, 0.7 * attention.W_V.transpose(1, 2))


def test_orthogonal_mimetic_heads_project():
    init = InitConfig(scheme="fan_in", mimetic_vo=1.0, orthogonal=True)
    attention = Transformer(replace(SMALL, init=init)).layers[0].attention
    projector = attention.W_V @ attention.W_O
    torch.testing.assert_close(projector @ projector, projector, atol=1e-5, rtol=1e-5)


def test_matching_leaves_rotating_dimensions_alone():
    init = InitConfig(scheme="fan_in", mimetic_qk=1.0, orthogonal=True)
    attention = Transformer(replace(SMALL, rope_fraction=0.5, init=init)).layers[0].attention
    assert attention.W_Q[:, :, :2].abs().max() == 0
    assert attention.W_Q[:, :, 2:].abs().max() > 0


def test_keys_find_a_name_where_the_relay_brought_it_and_not_where_it_stands():
    init = InitConfig(
        scheme="fan_in",
        mimetic_qk=1.0,
        mimetic_vo=1.0,
        orthogonal=True,
        offset_bias=4.0,
        offsets=(1, 2),
        relay_offset=2,
    )
    config = ModelConfig(d_vocab=40, n_positions=9, n_layers=2, n_heads=2, d_model=64, d_head=32, init=init)
    model = Transformer(config, torch.Generator().manual_seed(0))
    first, second = (block.attention for block in model.layers)
    name = torch.randn(64, generator=torch.Generator().manual_seed(1))
    brought = name @ first.W_V[1] @ first.W_O[1]  # what the relay head writes of it, half of its dimensions

    def match(x):
        return sum((name @ second.W_Q[h]) @ (x @ second.W_K[h]) for h in range(2)) / name.norm() / x.norm()

    assert match(brought) > 0.6
    assert abs(match(name)) < 0.4


def test_a_tied_start_reads_out_what_was_copied():
    init = InitConfig(scheme="fan_in", tied_start=1.0)
    model = Transformer(ModelConfig(d_vocab=40, n_positions=9, init=init), torch.Generator().manual_seed(0))
    logits = model.to_logits(model.W_E)
    assert (logits.argmax(-1) == torch.arange(40)).all()


@pytest.mark.parametrize(("scheme", "expected"), [("gpt2", 0.02), ("fan_in", 512**-0.5)])
def test_named_schemes_have_their_spread(scheme, expected):
    config = ModelConfig(d_vocab=40, n_positions=9, n_layers=1, d_model=512, d_head=128, d_mlp=2048)
    weight = Transformer(replace(config, init=InitConfig(scheme=scheme))).layers[0].mlp.up.weight
    assert weight.std().item() == pytest.approx(expected, rel=0.02)


def test_weights_depend_on_the_passed_generator_alone():
    torch.manual_seed(1)
    first = Transformer(SMALL, torch.Generator().manual_seed(7)).state_dict()
    torch.manual_seed(2)
    second = Transformer(SMALL, torch.Generator().manual_seed(7)).state_dict()
    assert all(torch.equal(first[k], second[k]) for k in first)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_head": 3},
        {"mlp_layers": (3,)},
        {"dropout": 1.0},
        {"n_layers": 0},
        {"tied": True, "d_out": 3},
        {"bias": False, "init": InitConfig(offset_bias=1.0)},
        {"init": InitConfig(offsets=(1, 2, 3))},
        {"init": InitConfig(relay_offset=5)},
        {"rope_fraction": 2.0},
        {"rope_base": 0.0},
        {"d_out": 0},
        {"n_heads": 4, "n_kv_heads": 3},
        {"n_kv_heads": 0},
        {"norm_epsilon": 0.0},
        {"n_kv_heads": 1, "init": InitConfig(mimetic_vo=1.0)},
        {"n_kv_heads": 1, "init": InitConfig(mimetic_qk=1.0)},
        {"n_kv_heads": 1, "init": InitConfig(offset_bias=1.0)},
    ],
)
def test_impossible_shapes_are_refused(changes):
    with pytest.raises(BindscopeError, match="model"):
        replace(SMALL, **changes)


@pytest.mark.parametrize("part", ["std", "gain", "embedding_std", "offset_layers"])
def test_a_negative_spread_is_refused(part):
    with pytest.raises(BindscopeError, match=rf"model\.init\.{part}: must not be negative"):
        InitConfig(**{part: -1})
