"""TransformerLens 1 to 3 state dicts (``HookedTransformer.state_dict()``) to our models and back.

Its weights multiply from the right and keep heads on an axis of their own: W_Q is [head, d_model, d_head] where ours is
rows of one [3·head·d_head, d_model] matrix. It has an entry for every bias and MLP, zero where the model has none.
A state dict does not tell the activation; whether a model without LayerNorm weights has no LayerNorm or had them folded
into their neighbours (then ``norm="layer"`` restores them as ones and zeros); or whether attention and MLP of a rotary
model work in parallel, as in GPT-NeoX. Each must be given, and is never assumed. Attention is causal unless given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import Activation, ModelConfig
from bindscope.model.rope import rope_angles
from bindscope.model.transformer import Transformer

Norm = Literal["layer", "none"]
State = Mapping[str, Tensor]

_BUFFERS = ("attn.mask", "attn.IGNORE", "attn.rotary_sin", "attn.rotary_cos")
_ATTENTION = tuple(f"attn.{kind}_{letter}" for letter in "QKVO" for kind in "Wb")
_MLP = ("mlp.W_in", "mlp.b_in", "mlp.W_out", "mlp.b_out")
_NORMS = ("ln1.w", "ln1.b", "ln2.w", "ln2.b")
_OUTSIDE = ("embed.W_E", "pos_embed.W_pos", "ln_final.w", "ln_final.b", "unembed.W_U", "unembed.b_U")
_BLOCK_NAME = re.compile(r"blocks\.(\d+)\.(.+)")


def is_transformer_lens(state: State) -> bool:
    return "embed.W_E" in state


def transformer_lens_to_config(
    state: State,
    *,
    activation: Activation | None = None,
    norm: Norm | None = None,
    parallel: bool | None = None,
    causal: bool = True,
    where: str = "state dict",
) -> ModelConfig:
    """The shape of the model that a state dict holds. An MLP or bias that is all zeros counts as absent.

    >>> state, _ = read_state("checkpoint_step_20001.pth")
    >>> transformer_lens_to_config(state, activation="relu", norm="none").mlp_layers
    (1,)
    """
    n_layers = _check_names(state, where)
    d_vocab, d_model = _shape(state, "embed.W_E", 2, where)
    n_heads, _, d_head = _shape(state, "blocks.0.attn.W_Q", 3, where)
    _, d_out = _shape(state, "unembed.W_U", 2, where)
    with_mlp = tuple(layer for layer in range(n_layers) if _has_mlp(state, layer))
    widths = [state[f"blocks.{layer}.mlp.W_in"].shape[-1] for layer in with_mlp]
    _check_told(state, activation, norm, parallel, bool(with_mlp), where)
    tied = d_out == d_vocab and torch.equal(state["unembed.W_U"].T, state["embed.W_E"])
    biases = [f"blocks.{layer}.{name}" for layer in range(n_layers) for name in _ATTENTION + _MLP if ".b_" in name]
    return ModelConfig(
        d_vocab=d_vocab,
        d_out=None if d_out == d_vocab else d_out,
        n_layers=n_layers,
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_head,
        d_mlp=widths[0] if widths else 4 * d_model,
        causal=causal,
        norm=norm or ("layer" if "ln_final.w" in state else "none"),
        bias=any(_is_nonzero(state, name) for name in biases),
        parallel=bool(parallel),
        activation=activation or "gelu",  # of no MLP at all
        mlp_layers=None if len(with_mlp) == n_layers else with_mlp,
        tied=tied,
        **_positions(state, d_head, where),  # type: ignore[arg-type]
    )


def transformer_lens_to_state(state: State, config: ModelConfig, where: str = "state dict") -> dict[str, Tensor]:
    """The same weights under our names, for a model of this shape. Weights it has no parameter for must be zero."""
    n_layers = _check_names(state, where)
    if n_layers != config.n_layers:
        raise BindscopeError(f"{where}: has {n_layers} layers, this model {config.n_layers}.")
    _check_nothing_lost(state, config, where)
    ours = {"embed.weight": state["embed.W_E"]}
    if config.positions in ("learned", "normal"):
        _shape(state, "pos_embed.W_pos", 2, where)
        ours["pos_embed"] = state["pos_embed.W_pos"]
    for layer in range(config.n_layers):
        ours |= {f"blocks.{layer}.{name}": value for name, value in _block(state, config, layer, where).items()}
    if config.norm == "layer":
        ours |= _norm(state, "ln_final", "norm", config.d_model)
    if not config.tied:
        ours["unembed.weight"] = state["unembed.W_U"].T
    return ours


def state_to_transformer_lens(model: Transformer) -> dict[str, Tensor]:
    """The state dict that ``HookedTransformer(...).load_state_dict`` of TransformerLens 1 to 3 takes."""
    config = model.config
    if config.identity_qk or config.identity_vo:
        raise BindscopeError("TransformerLens has no identity scaling, so this model cannot be written for it.")
    if config.gated or config.norm == "rms" or config.kv_heads != config.n_heads:
        raise BindscopeError(
            "only models with plain MLPs, LayerNorm or none, and keys of their own for each head are written for "
            "TransformerLens."
        )
    theirs = {"embed.W_E": model.W_E, "unembed.W_U": model.W_U, "unembed.b_U": torch.zeros(config.outputs)}
    if config.positions in ("learned", "normal"):
        theirs["pos_embed.W_pos"] = model.pos_embed
    if config.norm == "layer":
        theirs |= {"ln_final.w": model.norm.weight, "ln_final.b": model.norm.bias}  # type: ignore[dict-item]
    for layer in range(config.n_layers):
        theirs |= {f"blocks.{layer}.{name}": value for name, value in _their_block(model, layer).items()}
    return {name: value.detach().clone().contiguous() for name, value in theirs.items()}


def _check_told(
    state: State, activation: str | None, norm: str | None, parallel: bool | None, with_mlp: bool, where: str
) -> None:
    """Refuse a state dict whose numbers depend on what neither it nor the caller tells."""
    untold = f"{where}: a TransformerLens state dict does not tell"
    if with_mlp and activation is None:
        raise BindscopeError(f"{untold} its activation; give it, as in model.activation=relu.")
    if "ln_final.w" not in state and norm is None:
        raise BindscopeError(
            f"{untold} whether it has no LayerNorm or one whose weights were folded away; give model.norm=none or "
            "model.norm=layer."
        )
    if with_mlp and "blocks.0.attn.rotary_sin" in state and parallel is None:
        raise BindscopeError(
            f"{untold} whether attention and MLP work in parallel, as in GPT-NeoX; give model.parallel=true or "
            "model.parallel=false."
        )


def _check_names(state: State, where: str) -> int:
    """Refuse what is not read from TransformerLens (gated MLPs, grouped heads, …); return the number of layers."""
    layers = set()
    for name, tensor in state.items():
        match = _BLOCK_NAME.fullmatch(name)
        known = (*_ATTENTION, *_MLP, *_NORMS, *_BUFFERS) if match else _OUTSIDE
        if (match[2] if match else name) not in known:
            raise BindscopeError(f"{where}: '{name}' belongs to a kind of TransformerLens model that is not read.")
        if not tensor.is_floating_point() and not name.endswith(_BUFFERS):
            raise BindscopeError(f"{where}: '{name}' holds {tensor.dtype} where weights are floating point.")
        if match:
            layers.add(int(match[1]))
    n_layers = len(layers)
    if layers != set(range(n_layers)) or not layers:
        raise BindscopeError(f"{where}: its blocks are numbered {sorted(layers)[:9]}; expected 0, 1, 2, …")
    needed = ["embed.W_E", "unembed.W_U"]
    needed += [f"blocks.{layer}.attn.W_{letter}" for layer in range(n_layers) for letter in "QKVO"]
    for name in needed:
        if name not in state:
            raise BindscopeError(f"{where}: a TransformerLens state dict without '{name}'.")
    return n_layers


def _check_nothing_lost(state: State, config: ModelConfig, where: str) -> None:
    if _is_nonzero(state, "unembed.b_U"):
        raise BindscopeError(f"{where}: 'unembed.b_U' is not zero, and the unembedding here has no bias.")
    if "ln_final.w" in state and "ln_final.b" not in state:
        raise BindscopeError(f"{where}: its norms have no bias (RMSNorm), which is not read from TransformerLens.")
    if config.norm == "none" and "ln_final.w" in state:
        raise BindscopeError(f"{where}: it has LayerNorm weights, and this model has no LayerNorm.")
    if config.positions in ("rope", "none") and "pos_embed.W_pos" in state:
        raise BindscopeError(f"{where}: it has position embeddings, and this model adds none.")
    if config.positions != "rope" and "blocks.0.attn.rotary_sin" in state:
        raise BindscopeError(f"{where}: it rotates queries and keys, and this model does not.")
    if config.tied and not torch.equal(state["unembed.W_U"].T, state["embed.W_E"]):
        raise BindscopeError(f"{where}: its unembedding is not its embedding, and this model ties them.")
    for name in state:
        match = _BLOCK_NAME.fullmatch(name)
        if match is None:
            continue
        layer, part = int(match[1]), match[2]
        absent = (part in _MLP and layer not in config.layers_with_mlp) or (".b_" in part and not config.bias)
        if absent and _is_nonzero(state, name):
            raise BindscopeError(f"{where}: '{name}' is not zero, and this model has none.")
        if part == "attn.mask" and not torch.equal(state[name], torch.ones_like(state[name]).tril()):
            raise BindscopeError(f"{where}: '{name}' is not the causal mask; local attention is not supported.")


def _block(state: State, config: ModelConfig, layer: int, where: str) -> dict[str, Tensor]:
    theirs = {m[2]: value for name, value in state.items() if (m := _BLOCK_NAME.fullmatch(name)) and int(m[1]) == layer}
    d_model, d_head, n_heads = config.d_model, config.d_head, config.n_heads
    for letter in "QKVO":
        shape = [n_heads, d_head, d_model] if letter == "O" else [n_heads, d_model, d_head]
        if list(theirs[f"attn.W_{letter}"].shape) != shape:
            found = list(theirs[f"attn.W_{letter}"].shape)
            raise BindscopeError(f"{where}: 'blocks.{layer}.attn.W_{letter}' has shape {found}, this model's {shape}.")
    qkv = [theirs[f"attn.W_{letter}"].transpose(1, 2).reshape(-1, d_model) for letter in "QKV"]
    ours = {"attention.qkv.weight": torch.cat(qkv), "attention.out.weight": theirs["attn.W_O"].reshape(-1, d_model).T}
    if config.bias:
        zero = torch.zeros(n_heads, d_head)
        ours["attention.qkv.bias"] = torch.cat([theirs.get(f"attn.b_{x}", zero).reshape(-1) for x in "QKV"])
        ours["attention.out.bias"] = theirs.get("attn.b_O", torch.zeros(d_model))
    if config.norm == "layer":
        ours |= _norm(theirs, "ln1", "norm1", d_model)
    if layer in config.layers_with_mlp:
        ours |= _mlp(theirs, config, f"{where}: blocks.{layer}")
    return ours


def _mlp(theirs: State, config: ModelConfig, where: str) -> dict[str, Tensor]:
    for name in ("mlp.W_in", "mlp.W_out"):
        _shape(theirs, name, 2, where)
    ours = {"mlp.up.weight": theirs["mlp.W_in"].T, "mlp.down.weight": theirs["mlp.W_out"].T}
    if config.bias:
        ours["mlp.up.bias"] = theirs.get("mlp.b_in", torch.zeros(config.d_mlp))
        ours["mlp.down.bias"] = theirs.get("mlp.b_out", torch.zeros(config.d_model))
    if config.norm == "layer":
        ours |= _norm(theirs, "ln2", "norm2", config.d_model)
    return ours


def _norm(state: State, theirs: str, ours: str, d_model: int) -> dict[str, Tensor]:
    weight, bias = state.get(f"{theirs}.w", torch.ones(d_model)), state.get(f"{theirs}.b", torch.zeros(d_model))
    return {f"{ours}.weight": weight, f"{ours}.bias": bias}


def _positions(state: State, d_head: int, where: str) -> dict[str, object]:
    """The fields of a config that tell how positions enter: a table that is added, or the angles of a rotation."""
    if "pos_embed.W_pos" in state:
        return {"positions": "learned", "n_positions": _shape(state, "pos_embed.W_pos", 2, where)[0]}
    if "blocks.0.attn.rotary_sin" not in state:
        mask = state.get("blocks.0.attn.mask")
        if mask is None:
            raise BindscopeError(f"{where}: tells nothing of positions; give the model's configuration as well.")
        return {"positions": "none", "n_positions": len(mask)}
    n_positions, rope_dims = _shape(state, "blocks.0.attn.rotary_sin", 2, where)
    sine, cosine = state["blocks.0.attn.rotary_sin"], state["blocks.0.attn.rotary_cos"]
    rope_base = 10000.0
    if n_positions > 1 and rope_dims > 2:
        slowest = torch.atan2(sine[1, -1], cosine[1, -1]).double()  # base^(−(rope_dims − 2)/rope_dims)
        rope_base = float(f"{slowest ** (-rope_dims / (rope_dims - 2)):.6g}")
    found: dict[str, object] = {
        "positions": "rope",
        "n_positions": n_positions,
        "rope_base": rope_base,
        "rope_fraction": rope_dims / d_head,
    }
    expected = _rotary_tables(ModelConfig(d_vocab=1, d_head=d_head, **found))  # type: ignore[arg-type]
    if not torch.allclose(sine, expected["attn.rotary_sin"], atol=1e-3):
        raise BindscopeError(f"{where}: rotates in another way than Bindscope (adjacent pairs, or scaled angles).")
    return found


def _their_block(model: Transformer, layer: int) -> dict[str, Tensor]:
    config, block = model.config, model.layers[layer]
    attention, d_mlp, d_model = block.attention, config.d_mlp, config.d_model
    theirs = {f"attn.W_{letter}": getattr(attention, f"W_{letter}") for letter in "QKVO"}
    qkv_bias = attention.qkv.bias if config.bias else torch.zeros(3 * config.n_heads * config.d_head)
    for letter, bias in zip("QKV", qkv_bias.view(3, config.n_heads, config.d_head)):
        theirs[f"attn.b_{letter}"] = bias
    theirs["attn.b_O"] = attention.out.bias if config.bias else torch.zeros(d_model)
    theirs["attn.mask"] = torch.ones(config.n_positions, config.n_positions, dtype=torch.bool).tril()
    theirs["attn.IGNORE"] = torch.tensor(float("-inf"))
    if config.positions == "rope":
        theirs |= _rotary_tables(config)
    if config.norm == "layer":
        theirs |= {"ln1.w": block.norm1.weight, "ln1.b": block.norm1.bias}  # type: ignore[dict-item]
    if not config.layers_with_mlp:
        return theirs
    zeros = (torch.zeros(d_model, d_mlp), torch.zeros(d_mlp), torch.zeros(d_mlp, d_model), torch.zeros(d_model))
    theirs |= dict(zip(_MLP, zeros))
    if block.mlp is not None:
        theirs |= {"mlp.W_in": block.mlp.up.weight.T, "mlp.W_out": block.mlp.down.weight.T}
        if config.bias:
            theirs |= {"mlp.b_in": block.mlp.up.bias, "mlp.b_out": block.mlp.down.bias}
    if config.norm == "layer":
        norm = block.norm2
        theirs["ln2.w"] = torch.ones(d_model) if norm is None else norm.weight  # type: ignore[assignment]
        theirs["ln2.b"] = torch.zeros(d_model) if norm is None else norm.bias  # type: ignore[assignment]
    return theirs


def _rotary_tables(config: ModelConfig) -> dict[str, Tensor]:
    """Sine and cosine of every position's angles, [n_positions, rope_dims], both halves alike."""
    cos, sin = rope_angles(config, torch.arange(config.n_positions))
    assert cos is not None
    assert sin is not None
    return {"attn.rotary_sin": torch.cat([sin, sin], -1), "attn.rotary_cos": torch.cat([cos, cos], -1)}


def _shape(state: State, name: str, n_axes: int, where: str) -> list[int]:
    """The sizes of a tensor that must be there with so many axes."""
    if name not in state or state[name].dim() != n_axes:
        found = list(state[name].shape) if name in state else "absent"
        raise BindscopeError(f"{where}: '{name}' needs {n_axes} axes, but is {found}.")
    return list(state[name].shape)


def _has_mlp(state: State, layer: int) -> bool:
    return any(_is_nonzero(state, f"blocks.{layer}.{name}") for name in _MLP)


def _is_nonzero(state: State, name: str) -> bool:
    return name in state and bool((state[name] != 0).any())
