"""Other people's names for the weights of our transformer, and the way from their tensors to ours and back.

An architecture is a table of names. Beyond those it may multiply from the right (GPT-2), order the rows of queries, keys
and values by head (GPT-NeoX), or keep the three apart (Llama).

>>> rename_weights(weights, describe_directory("pythia-14m"), "pythia-14m")["blocks.0.attention.qkv.weight"].shape
torch.Size([384, 128])
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.described import Described

Shape = tuple[int, ...]
_STORED = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.(weight|bias)")


@dataclass(frozen=True)
class Naming:
    """How an architecture names and stores what we have."""

    prefix: str  # of all names but the head's, in files of whole language models
    block: str  # of the names inside a layer, before its number
    outside: Mapping[str, str]  # our tensor → theirs
    inside: Mapping[str, str]  # our module of a layer → theirs; three, with a space between, are stacked
    buffers: str  # inside a layer: what older files carry along and is computed here
    from_right: bool = False  # linear maps are stored [in, out]
    aliases: Mapping[str, str] = field(default_factory=dict)  # another name → the one above
    by_head: bool = False  # rows of queries, keys and values are ordered (head, q·k·v, d_head)
    may_lack_biases: bool = False  # of linear maps; otherwise all have one


_GPT2_OUTSIDE = {
    "embed.weight": "wte.weight",
    "pos_embed": "wpe.weight",
    "norm.weight": "ln_f.weight",
    "norm.bias": "ln_f.bias",
    "unembed.weight": "lm_head.weight",
}
_GPT2_INSIDE = {
    "norm1": "ln_1",
    "norm2": "ln_2",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj",
}
NAMINGS = {
    "gpt2": Naming("transformer.", "h", _GPT2_OUTSIDE, _GPT2_INSIDE, r"attn\.(masked_)?bias", from_right=True),
    "nanogpt": Naming("transformer.", "h", _GPT2_OUTSIDE, _GPT2_INSIDE, r"attn\.bias"),
    "gpt_neox": Naming(
        "gpt_neox.",
        "layers",
        {
            "embed.weight": "embed_in.weight",
            "norm.weight": "final_layer_norm.weight",
            "norm.bias": "final_layer_norm.bias",
            "unembed.weight": "embed_out.weight",
        },
        {
            "norm1": "input_layernorm",
            "norm2": "post_attention_layernorm",
            "attention.qkv": "attention.query_key_value",
            "attention.out": "attention.dense",
            "mlp.up": "mlp.dense_h_to_4h",
            "mlp.down": "mlp.dense_4h_to_h",
        },
        r"attention\.((masked_)?bias|rotary_emb\.inv_freq)",
        aliases={"lm_head.weight": "embed_out.weight"},  # as a model of transformers 5 names it in memory
        by_head=True,
    ),
    "llama": Naming(
        "model.",
        "layers",
        {
            "embed.weight": "embed_tokens.weight",
            "norm.weight": "norm.weight",
            "unembed.weight": "lm_head.weight",
        },
        {
            "norm1": "input_layernorm",
            "norm2": "post_attention_layernorm",
            "attention.qkv": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
            "attention.out": "self_attn.o_proj",
            "mlp.gate": "mlp.gate_proj",
            "mlp.up": "mlp.up_proj",
            "mlp.down": "mlp.down_proj",
        },
        r"self_attn\.rotary_emb\.inv_freq",
        may_lack_biases=True,
    ),
}


def rename_weights(weights: Mapping[str, Tensor], described: Described, where: str) -> dict[str, Tensor]:
    """The same weights under our names, in single precision. None may be missing, left over or of another shape."""
    naming, config = NAMINGS[described.architecture], described.config
    theirs = _name_plainly(weights, naming, where)
    _check_layers(theirs, naming, config, where)
    taking = _Taking(theirs, described, naming, where)
    ours = {name: taking.take(name, shape) for name, shape in our_shapes(config).items()}
    if config.tied:
        _check_tied(theirs, naming, where)
    extra = sorted(theirs.keys() - taking.taken)
    if extra:
        raise BindscopeError(f"{where}: a model of this shape has no weight '{extra[0]}'.")
    return ours


def rename_for(architecture: str, state: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The state of a plain ``Transformer`` under the names of an architecture: the inverse of ``rename_weights``.

    Biases that the architecture always has are zero where the model has none.
    """
    naming = NAMINGS[architecture]
    biased = config if naming.may_lack_biases else replace(config, bias=True)
    theirs: dict[str, Tensor] = {}
    for name, shape in our_shapes(biased).items():
        value = state[name] if name in state else torch.zeros(shape)
        theirs |= {
            each if each == naming.outside["unembed.weight"] else naming.prefix + each: tensor
            for each, tensor in _give(name, value, naming, config).items()
        }
    return theirs


def _give(ours: str, value: Tensor, naming: Naming, config: ModelConfig) -> dict[str, Tensor]:
    """One of our tensors as the tensors that hold it there."""
    match = _BLOCK.fullmatch(ours)
    if match is None:
        return {naming.outside[ours]: value}
    layer, module, kind = match.groups()
    names = [f"{naming.block}.{layer}.{name}.{kind}" for name in naming.inside[module].split()]
    if len(names) == 3:
        return dict(zip(names, value.split(config.qkv_rows), strict=True))
    if naming.from_right and value.ndim == 2:
        value = value.T
    elif naming.by_head and module == "attention.qkv":
        value = value.unflatten(0, (3, config.n_heads, config.d_head)).transpose(0, 1).flatten(0, 2)
    return {names[0]: value}


def our_shapes(config: ModelConfig) -> dict[str, Shape]:
    """The name and shape of every tensor in the state of a plain ``Transformer``, before there is one."""
    d, d_mlp, inner = config.d_model, config.d_mlp, config.n_heads * config.d_head
    norm = {"weight": (d,), "bias": (d,)} if config.norm == "layer" else {"weight": (d,)}
    linears = {"attention.qkv": (sum(config.qkv_rows), d), "attention.out": (d, inner)}
    linears |= {"mlp.gate": (d_mlp, d)} if config.gated else {}
    linears |= {"mlp.up": (d_mlp, d), "mlp.down": (d, d_mlp)}
    shapes: dict[str, Shape] = {"embed.weight": (config.d_vocab, d)}
    if config.positions == "learned":
        shapes["pos_embed"] = (config.n_positions, d)
    for layer in range(config.n_layers):
        shapes |= {
            f"blocks.{layer}.{name}.{kind}": shape for name in ("norm1", "norm2") for kind, shape in norm.items()
        }
        for name, shape in linears.items():
            shapes[f"blocks.{layer}.{name}.weight"] = shape
            if config.bias:
                shapes[f"blocks.{layer}.{name}.bias"] = shape[:1]
    shapes |= {f"norm.{kind}": shape for kind, shape in norm.items()}
    return shapes if config.tied else shapes | {"unembed.weight": (config.outputs, d)}


class _Taking:
    """Tensors taken from theirs one by one, and which were."""

    def __init__(self, theirs: Mapping[str, Tensor], described: Described, naming: Naming, where: str) -> None:
        self.theirs, self.described, self.naming, self.where = theirs, described, naming, where
        self.taken: set[str] = set()

    def take(self, ours: str, shape: Shape) -> Tensor:
        """Our tensor, made of theirs; zeros where theirs is a model without this bias."""
        match, config = _BLOCK.fullmatch(ours), self.described.config
        if ours.endswith(".bias") and _part_of(ours) not in self.described.biased:
            return torch.zeros(shape)
        if match is None:
            return self.read(self.naming.outside[ours], shape)
        layer, module, kind = match.groups()
        names = [f"{self.naming.block}.{layer}.{name}.{kind}" for name in self.naming.inside[module].split()]
        if len(names) == 3:
            parts = zip(names, config.qkv_rows, strict=True)
            return torch.cat([self.read(name, (n_rows, *shape[1:])) for name, n_rows in parts])
        if self.naming.from_right and len(shape) == 2:
            return self.read(names[0], shape[::-1]).T.contiguous()
        value = self.read(names[0], shape)
        if self.naming.by_head and module == "attention.qkv":
            value = value.unflatten(0, (config.n_heads, 3, config.d_head)).transpose(0, 1).flatten(0, 2)
        return value

    def read(self, name: str, shape: Shape) -> Tensor:
        if name not in self.theirs:
            raise BindscopeError(f"{self.where}: has no weight '{name}', which a model of this shape needs.")
        self.taken.add(name)
        tensor = self.theirs[name]
        if tuple(tensor.shape) != shape:
            found, asked = list(tensor.shape), list(shape)
            raise BindscopeError(f"{self.where}: '{name}' has shape {found} where its settings ask for {asked}.")
        if tensor.dtype not in _STORED:
            raise BindscopeError(f"{self.where}: '{name}' holds {tensor.dtype}; weights in float32 or half are needed.")
        value = tensor.to(torch.float32).contiguous()
        if not bool(value.isfinite().all()):
            raise BindscopeError(f"{self.where}: '{name}' holds numbers that are not finite; copy it again.")
        return value


def _part_of(ours: str) -> str:
    """Which part of ``Described.biased`` one of our tensors belongs to."""
    module = ours.split(".")[-2]
    return "norm" if module.startswith("norm") else module if module in ("qkv", "out") else "mlp"


def _name_plainly(weights: Mapping[str, Tensor], naming: Naming, where: str) -> dict[str, Tensor]:
    """Without the prefixes of compiled models and of whole language models, and without buffers."""
    buffer = re.compile(rf"{naming.block}\.\d+\.({naming.buffers})")
    plain = {name.removeprefix("_orig_mod.").removeprefix(naming.prefix): tensor for name, tensor in weights.items()}
    plain = {naming.aliases.get(name, name): tensor for name, tensor in plain.items()}
    if len(plain) < len(weights):
        raise BindscopeError(
            f"{where}: has weights both with and without '{naming.prefix}' before their names; keep one."
        )
    return {name: tensor for name, tensor in plain.items() if not buffer.fullmatch(name)}


def _check_layers(theirs: Mapping[str, Tensor], naming: Naming, config: ModelConfig, where: str) -> None:
    """Before anything is made for as many layers as a file claims to have."""
    layers = {found[1] for name in theirs if (found := re.match(rf"{naming.block}\.(\d+)\.", name))}
    if len(layers) != config.n_layers:
        raise BindscopeError(f"{where}: has weights of {len(layers)} layers where its settings say {config.n_layers}.")


def _check_tied(theirs: dict[str, Tensor], naming: Naming, where: str) -> None:
    """A tied model may carry a copy of its embeddings along, and nothing else."""
    head = theirs.pop(naming.outside["unembed.weight"], None)
    if head is not None and not torch.equal(head, theirs[naming.outside["embed.weight"]]):
        raise BindscopeError(f"{where}: its unembedding is not its embedding, although its settings tie the two.")
