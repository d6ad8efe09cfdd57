"""The named parts of any transformer's weights, and of where it attends.

Layers and heads are counted from 0, as in sites:

    embeddings, letters, digits …    rows of the embedding; the groups are the task's own
    L2.QK, L2.OV                     W_Q and W_K, or W_V and W_O, of one layer
    L2.H1.QK, L2.H1.OV, L2.H1        those of one head
    L2.MLP, L2.norms, L2             the MLP, the LayerNorms, all weights of a layer
    L1-5.QK, L0-1                    the same of several layers together
    QK, OV, MLP, norms               the same of all layers
    L2.pattern, L2.H1.pattern        where a layer or a head attends

>>> [region.tensor for region in read_component(config, "L0.MLP").regions]
['blocks.0.mlp.up.weight', 'blocks.0.mlp.up.bias', 'blocks.0.mlp.down.weight', 'blocks.0.mlp.down.bias']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from bindscope.model.config import ModelConfig
from bindscope.model.sites import Site

Groups = Mapping[str, Sequence[int]]  # the name of some tokens → their ids
EVERYTHING, NOTHING = "everything", "nothing"
QK, OV, MLP, NORMS, PATTERN = "QK", "OV", "MLP", "norms", "pattern"
KINDS = (QK, OV, MLP, NORMS)
_NAME = re.compile(r"L(?P<first>\d+)(?:-(?P<last>\d+))?(?:\.H(?P<head>\d+))?(?:\.(?P<kind>QK|OV|MLP|norms|pattern))?")


@dataclass(frozen=True)
class Region:
    """Some rows of one tensor of a model, by its name in the state; with ``axis`` 1, some columns."""

    tensor: str
    first: int = 0
    stop: int | None = None  # None: to the last row
    axis: int = 0

    def of(self, state: Mapping[str, Tensor]) -> Tensor:
        """The region in a state: a view, so that it can be written to."""
        chosen = slice(self.first, self.stop)
        return state[self.tensor][:, chosen] if self.axis else state[self.tensor][chosen]

    def covers(self, other: Region) -> bool:
        """Whether the other is inside this one."""
        if other.tensor != self.tensor:
            return False
        inside = self.axis == other.axis and self.first <= other.first
        ends = self.stop is None or (other.stop is not None and other.stop <= self.stop)
        return self == Region(self.tensor) or (inside and ends)


@dataclass(frozen=True)
class Look:
    """Where some positions look in one layer, all of them if none are named, and in all its heads if none is."""

    layer: int
    positions: tuple[int, ...] | None = None
    head: int | None = None

    @property
    def site(self) -> Site:
        return Site(PATTERN, self.layer, self.head, self.positions)


@dataclass(frozen=True)
class Part:
    """What is taken from the donor: regions of its weights, or where it attends."""

    name: str
    meaning: str
    regions: tuple[Region, ...] = ()
    looks: tuple[Look, ...] = ()

    @property
    def kind(self) -> str:
        return PATTERN if self.looks else "weights"


def list_components(config: ModelConfig, groups: Groups) -> list[Part]:
    """Every part of a model of this shape, in the order of the forward pass; ranges of layers are not listed.

    >>> [part.name for part in list_components(config, {"letters": range(10, 36)})][:4]
    ['nothing', 'everything', 'embeddings', 'letters']
    """
    layers = range(config.n_layers)
    kinds = ("", *(f".{kind}" for kind in (*KINDS, PATTERN)))
    heads = range(config.n_heads if config.n_heads > 1 else 0)
    of_heads = [f".H{head}{kind}" for head in heads for kind in ("", f".{QK}", f".{OV}", f".{PATTERN}")]
    names = [f"L{layer}{each}" for layer in layers for each in (*kinds, *of_heads)]
    found = [read_component(config, name) for name in [*names, *KINDS]]
    return [
        Part(NOTHING, "nothing: the receiver as it is"),
        Part(EVERYTHING, "all weights: the donor", (Region("*"),)),
        *embedding_parts(config, groups),
        *(part for part in found if part is not None),
        *_last_parts(config),
    ]


def read_component(config: ModelConfig, name: str) -> Part | None:
    """The part that a name such as ``L1-5.QK`` or ``MLP`` stands for; None where a model of this shape has none."""
    if name in KINDS:
        last = _norm("norm", config) if name == NORMS else ()
        regions = (*(region for layer in range(config.n_layers) for region in _regions(config, layer, name)), *last)
        return (
            Part(name, f"{MEANINGS[name]} of all layers{', and the last one' if last else ''}", regions)
            if regions
            else None
        )
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    first, head = int(match["first"]), None if match["head"] is None else int(match["head"])
    last_layer = first if match["last"] is None else int(match["last"])
    layers = range(first, last_layer + 1)
    if not layers or last_layer >= config.n_layers or (head is not None and head >= config.n_heads):
        return None
    return _component(config, name, layers, head, match["kind"])


def embedding_parts(config: ModelConfig, groups: Groups) -> list[Part]:
    """The embeddings of all tokens, of each group of them, and of positions where a model has such."""
    parts = [Part("embeddings", "the embeddings of all tokens, without positions", (Region("embed.weight"),))]
    for name, tokens in groups.items():
        regions = tuple(Region("embed.weight", first, stop) for first, stop in _runs(tokens))
        parts.append(Part(name, f"the embeddings of {name}: {len(tokens)} tokens", regions))
    if config.positions in ("learned", "normal"):
        parts.append(Part("positions", "the embeddings of all positions", (Region("pos_embed"),)))
    return parts


def qk_regions(config: ModelConfig, layer: int, head: int | None = None) -> tuple[Region, ...]:
    """W_Q and W_K of a layer, or of one head: with the keys of its group, where heads share them."""
    n_queries, n_keys, _ = config.qkv_rows
    rows = [(0, n_queries + n_keys)]
    if head is not None:
        rows = [_head_rows(config, head, 0, config.n_heads), _head_rows(config, head, n_queries, config.kv_heads)]
    return (*_projection(config, layer, rows), *_scaling(layer, "identity_a", config.identity_qk, head))


def ov_regions(config: ModelConfig, layer: int, head: int | None = None) -> tuple[Region, ...]:
    """W_V and W_O of a layer with the output's bias, or of one head, to which no bias of the output belongs."""
    first, name = sum(config.qkv_rows[:2]), f"blocks.{layer}.attention.out"
    if head is None:
        rows: list[tuple[int, int | None]] = [(first, None)]
        out = _linear(name, config)
    else:
        rows = [_head_rows(config, head, first, config.kv_heads)]
        out = (Region(f"{name}.weight", head * config.d_head, (head + 1) * config.d_head, axis=1),)
    return (*_projection(config, layer, rows), *out, *_scaling(layer, "identity_b", config.identity_vo, head))


def mlp_regions(config: ModelConfig, layer: int) -> tuple[Region, ...]:
    """All maps of a layer's MLP; none where it has no MLP."""
    sides = ("gate", "up", "down") if config.gated else ("up", "down")
    if layer not in config.layers_with_mlp:
        return ()
    return tuple(region for side in sides for region in _linear(f"blocks.{layer}.mlp.{side}", config))


def norm_regions(config: ModelConfig, layer: int) -> tuple[Region, ...]:
    """The LayerNorms before a layer's attention and MLP."""
    names = ("norm1", "norm2") if layer in config.layers_with_mlp else ("norm1",)
    return tuple(region for name in names for region in _norm(f"blocks.{layer}.{name}", config))


MEANINGS = {
    QK: "W_Q and W_K: the scores, given what is read",
    OV: "W_V and W_O: what is moved, given where it attends",
    MLP: "the MLP",
    NORMS: "the LayerNorms",
}


def _component(config: ModelConfig, name: str, layers: range, head: int | None, kind: str | None) -> Part | None:
    where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}"
    of = where if head is None else f"head {head} of {where}"
    if kind == PATTERN:
        looks = tuple(Look(layer, head=head) for layer in layers)
        return Part(name, f"where every position attends in {of}", looks=looks)
    if head is not None and kind in (MLP, NORMS):
        return None
    kinds = (kind,) if kind else (QK, OV) if head is not None else KINDS
    regions = tuple(region for layer in layers for each in kinds for region in _regions(config, layer, each, head))
    meaning = f"{MEANINGS[kind]}, of {of}" if kind else f"all weights of {of}"
    return Part(name, meaning, regions) if regions else None


def _regions(config: ModelConfig, layer: int, kind: str, head: int | None = None) -> tuple[Region, ...]:
    if kind == QK:
        return qk_regions(config, layer, head)
    if kind == OV:
        return ov_regions(config, layer, head)
    return mlp_regions(config, layer) if kind == MLP else norm_regions(config, layer)


def _last_parts(config: ModelConfig) -> list[Part]:
    found = [Part("last norm", "the LayerNorm before the unembedding", _norm("norm", config))]
    if not config.tied:
        found.append(Part("unembedding", "the map from the last stream to the answers", (Region("unembed.weight"),)))
    return [part for part in found if part.regions]


def _head_rows(config: ModelConfig, head: int, first: int, n_heads: int) -> tuple[int, int]:
    own = first + head * n_heads // config.n_heads * config.d_head
    return own, own + config.d_head


def _projection(config: ModelConfig, layer: int, rows: Iterable[tuple[int, int | None]]) -> tuple[Region, ...]:
    kinds = ("weight", "bias") if config.bias else ("weight",)
    return tuple(Region(f"blocks.{layer}.attention.qkv.{kind}", *each) for kind in kinds for each in rows)


def _scaling(layer: int, name: str, present: bool, head: int | None) -> tuple[Region, ...]:
    tensor = f"blocks.{layer}.attention.{name}"
    if not present:
        return ()
    return (Region(tensor) if head is None else Region(tensor, head, head + 1),)


def _linear(name: str, config: ModelConfig) -> tuple[Region, ...]:
    return tuple(Region(f"{name}.{kind}") for kind in (("weight", "bias") if config.bias else ("weight",)))


def _norm(name: str, config: ModelConfig) -> tuple[Region, ...]:
    kinds = {"layer": ("weight", "bias"), "rms": ("weight",), "none": ()}[config.norm]
    return tuple(Region(f"{name}.{kind}") for kind in kinds)


def _runs(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Ids as ranges without gaps: [3, 4, 5, 9] is (3, 6) and (9, 10)."""
    found: list[tuple[int, int]] = []
    for token in sorted(tokens):
        if found and found[-1][1] == token:
            found[-1] = (found[-1][0], token + 1)
        else:
            found.append((token, token + 1))
    return found
