"""Transplants: give a model one named part of another checkpoint, and see whether its answers follow.

Where a run's accuracy jumps between two checkpoints, a part *reproduces* the jump if the earlier model with this part
of the later one answers as well as the later one does, and *undoes* it if the later model with this part of the earlier
one answers as badly. Parts are of two kinds:

- weights: ``transplant`` copies them. A part is a set of weights, not the function they compute: QK1 is W_Q and W_K of
  layer 1, and the scores it gives still depend on the receiver's embeddings. Both checkpoints should be of one run, as
  the same weights mean nothing in another run's directions.
- patterns: ``read_transplanted`` runs the donor on the same rows and writes where it looks into the receiver's run.
  No weights are mixed, so this is exact whatever else has changed: the receiver computes with its own values, but
  looks where the donor looks.

>>> model = transplant(run.checkpoint(5300), run.checkpoint(5400), ["QK1", "position 14"])
>>> outputs = read_transplanted(run.checkpoint(5300), run.checkpoint(5400), ["pattern 1 of ="], batch)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.model.config import ModelConfig
from bindscope.model.run import Edit, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import SequenceFormat
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS, N_PREFIX
from bindscope.tasks.task import Batch

EVERYTHING, NOTHING = "everything", "nothing"
ROWS_AT_ONCE = 2048
N_OTHER_TOKENS = 3  # the operator, the equals sign and the PAD


@dataclass(frozen=True)
class Region:
    """Some rows of one tensor of a model, by its name in the state."""

    tensor: str
    first: int = 0
    stop: int | None = None  # None: to the last row

    def of(self, state: Mapping[str, Tensor]) -> Tensor:
        """The region in a state: a view, so that it can be written to."""
        return state[self.tensor][self.first : self.stop]


UNEMBEDDING = (Region("unembed.weight"),)


@dataclass(frozen=True)
class Look:
    """Where some positions look in one layer; all positions if none are named."""

    layer: int
    positions: tuple[int, ...] | None = None

    @property
    def site(self) -> Site:
        return Site("pattern", self.layer, positions=self.positions)


@dataclass(frozen=True)
class Part:
    """What is taken from the donor: regions of its weights, or where it looks."""

    name: str
    meaning: str
    regions: tuple[Region, ...] = ()
    looks: tuple[Look, ...] = ()

    @property
    def kind(self) -> str:
        return "pattern" if self.looks else "weights"


def transplant(receiver: Transformer, donor: Transformer, parts: Iterable[str]) -> Transformer:
    """A new model: the receiver with these parts of the donor's weights; neither of the two is changed.

    >>> transplant(before, after, ["everything"])     # the donor
    >>> transplant(before, after, ["QK1", "QK2·OV1", "variable b"])
    """
    _check_same_shape(receiver, donor)
    found = find_parts(receiver.config, parts)
    for part in found:
        if part.looks:
            raise BindscopeError(
                f"part '{part.name}': it is where a model looks, not weights; read_transplanted writes it into a run."
            )
    return _change(receiver, found, lambda region, own: region.of(donor.state_dict()))


def read_transplanted(
    receiver: Transformer, donor: Transformer, parts: Iterable[str], batch: Batch, shown: Batch | None = None
) -> np.ndarray:
    """What the receiver with these parts of the donor answers, weights and patterns alike: [row, output] float32.

    A pattern is the donor's own, unmixed with any weights of the receiver's. ``shown`` are the rows that the donor looks
    at, the same ones unless others are given: patterns of other rows are a control.
    """
    _check_same_shape(receiver, donor)
    found = find_parts(receiver.config, parts)
    model = transplant(receiver, donor, [part.name for part in found if not part.looks])
    sites = [look.site for part in found for look in part.looks]
    return _read_with_patterns(model, donor, sites, batch, batch if shown is None else shown)


def change_at_random(
    receiver: Transformer, donor: Transformer, parts: Iterable[str], generator: torch.Generator
) -> Transformer:
    """The control of ``transplant``: every tensor of these parts changed by as much (in norm) in a random direction."""
    _check_same_shape(receiver, donor)
    other = donor.state_dict()

    def replace(region: Region, own: Tensor) -> Tensor:
        noise = torch.randn(own.shape, generator=generator).to(own)
        return own + noise * ((region.of(other) - own).norm() / noise.norm())

    return _change(receiver, find_parts(receiver.config, parts), replace)


def find_parts(config: ModelConfig, names: Iterable[str]) -> list[Part]:
    """The parts of these names; another name is refused with the nearest one."""
    names = [names] if isinstance(names, str) else list(names)
    known = list_parts(config)
    for name in names:
        if spell(name) not in known:
            raise BindscopeError(f"there is no part '{name}'.{suggest_nearest(name, known)}")
    return [known[spell(name)] for name in names]


def spell(name: str) -> str:
    """A part's name as it is listed: ``qk2*ov1`` and ``QK2.OV1`` are ``QK2·OV1``."""
    plain = re.sub(r"[.*]", "·", " ".join(name.split()))
    return re.sub(r"^(qk|ov|mlp)(?=\d|$)|(?<=·)(ov|qk)", lambda match: match[0].upper(), plain, flags=re.IGNORECASE)


def list_parts(config: ModelConfig) -> dict[str, Part]:
    """All parts of models of this shape by name, in the order of the forward pass.

    >>> list(list_parts(config))[:3]
    ['nothing', 'everything', 'embeddings']
    """
    sums = _sequences_of(config)
    parts = [
        Part(NOTHING, "nothing: the receiver as it is"),
        Part(EVERYTHING, "all weights: the donor", (Region("*"),)),
        *_embedding_parts(config, sums),
        *_layer_parts(config),
        *_two_halves(config),
        *_pattern_parts(config),
    ]
    return {part.name: part for part in parts}


def _sequences_of(config: ModelConfig) -> SequenceFormat:
    n_variables = config.d_vocab - config.outputs - N_OTHER_TOKENS
    if config.n_positions != N_POSITIONS or not 1 <= n_variables <= 26 or config.tied:
        raise BindscopeError(
            "parts are named for models of modular addition (16 positions; numbers, an operator, =, PAD and variables); this model "
            "has another task."
        )
    return SequenceFormat(config.outputs, n_variables)


def _embedding_parts(config: ModelConfig, sums: SequenceFormat) -> list[Part]:
    def rows(first: int, n: int = 1) -> tuple[Region, ...]:
        return (Region("embed.weight", first, first + n),)

    first = sums.first_variable_token
    parts = [
        Part("embeddings", "the embeddings of all tokens, without positions", (Region("embed.weight"),)),
        Part("numbers", "the embeddings of the numbers", rows(0, sums.modulus)),
        Part("variables", "the embeddings of all variables", rows(first, sums.n_variables)),
        *(
            Part(f"variable {name}", f"the embedding of {name} alone", rows(first + index))
            for index, name in enumerate(sums.variables)
        ),
        Part("operator", "the embedding of the operator", rows(sums.operator_token)),
        Part("equals", "the embedding of =", rows(sums.equals_token)),
        Part("pad", "the embedding of PAD", rows(sums.pad_token)),
    ]
    if config.positions != "learned":
        return parts
    positions = [(index, Region("pos_embed", index, index + 1)) for index in range(N_POSITIONS)]
    return [
        *parts,
        Part("positions", "the embeddings of all positions", (Region("pos_embed"),)),
        *(
            Part(f"position {position}", f"the embedding of position {position} alone", (row,))
            for position, row in positions
        ),
    ]


def _layer_parts(config: ModelConfig) -> list[Part]:
    qk = [_qk(config, layer) for layer in range(config.n_layers)]
    ov = [_ov(config, layer) for layer in range(config.n_layers)]
    parts = []
    for layer in range(config.n_layers):
        parts += [
            Part(f"QK{layer + 1}", f"W_Q and W_K of layer {layer + 1}: its scores, given what it reads", qk[layer]),
            Part(f"OV{layer + 1}", f"W_V and W_O of layer {layer + 1}: what it moves, given where it looks", ov[layer]),
        ]
    if config.n_layers > 1:
        meaning = "W_Q and W_K of layer 2 and W_V and W_O of layer 1: how layer 2 compares what layer 1 has moved"
        parts.append(Part("QK2·OV1", meaning, qk[1] + ov[0]))
    mlps = tuple(region for layer in config.layers_with_mlp for region in _mlp(config, layer))
    if mlps:
        parts.append(Part("MLP", "both matrices of the MLP", mlps))
    parts.append(Part("unembedding", "the map from the last stream to the answers", UNEMBEDDING))
    return parts


def _two_halves(config: ModelConfig) -> list[Part]:
    """All weights in two: those that decide where the last layer looks, and those that work on what it then sees."""
    last = config.n_layers - 1
    positions = (Region("pos_embed"),) if config.positions == "learned" else ()
    early = [layer for layer in range(config.n_layers) if layer < last]
    early_mlps = [region for layer in early if layer in config.layers_with_mlp for region in _mlp(config, layer)]
    attention = [region for layer in early for region in (*_qk(config, layer), *_ov(config, layer))]
    last_mlp = _mlp(config, last) if last in config.layers_with_mlp else ()
    routing = (Region("embed.weight"), *positions, *attention, *early_mlps, *_qk(config, last))
    names = ["embeddings", *["positions"] * bool(positions), *(f"QK{layer + 1}, OV{layer + 1}" for layer in early)]
    names += ["earlier MLPs"] * bool(early_mlps)
    meaning = f"all that decides where the last layer looks: {', '.join(names)} and QK{last + 1}"
    rest = f"the rest: OV{last + 1}, {'MLP' if last_mlp else 'no MLP'} and unembedding"
    return [
        Part("routing", meaning, routing),
        Part("computing", rest, (*_ov(config, last), *last_mlp, *UNEMBEDDING)),
    ]


def _mlp(config: ModelConfig, layer: int) -> tuple[Region, ...]:
    kinds = ("weight", "bias") if config.bias else ("weight",)
    sides = ("gate", "up", "down") if config.gated else ("up", "down")
    return tuple(Region(f"blocks.{layer}.mlp.{side}.{kind}") for side in sides for kind in kinds)


def _qk(config: ModelConfig, layer: int) -> tuple[Region, ...]:
    n_rows, name = sum(config.qkv_rows[:2]), f"blocks.{layer}.attention"
    kinds = ("weight", "bias") if config.bias else ("weight",)
    regions = [Region(f"{name}.qkv.{kind}", 0, n_rows) for kind in kinds]
    return (*regions, *([Region(f"{name}.identity_a")] if config.identity_qk else []))


def _ov(config: ModelConfig, layer: int) -> tuple[Region, ...]:
    first, name = sum(config.qkv_rows[:2]), f"blocks.{layer}.attention"
    kinds = ("weight", "bias") if config.bias else ("weight",)
    regions = [Region(f"{name}.qkv.{kind}", first) for kind in kinds] + [Region(f"{name}.out.{kind}") for kind in kinds]
    return (*regions, *([Region(f"{name}.identity_b")] if config.identity_vo else []))


def _pattern_parts(config: ModelConfig) -> list[Part]:
    parts = []
    for layer in range(config.n_layers):
        name = f"pattern {layer + 1}"
        parts.append(Part(name, f"where every position looks in layer {layer + 1}", looks=(Look(layer),)))
        for of, positions in {"=": (ANSWER_POSITION,), "the assignments": tuple(range(N_PREFIX))}.items():
            if of == "=" or layer < config.n_layers - 1:
                meaning = f"where {of} look{'s' if of == '=' else ''} in layer {layer + 1}"
                parts.append(Part(f"{name} of {of}", meaning, looks=(Look(layer, positions),)))
    return parts


def _change(receiver: Transformer, parts: Sequence[Part], replace: Callable[[Region, Tensor], Tensor]) -> Transformer:
    model = deepcopy(receiver)
    state = model.state_dict()  # its tensors are the model's own
    with torch.no_grad():
        for region in _distinct([region for part in parts for region in part.regions], state):
            own = region.of(state)
            own.copy_(replace(region, own))
    return model


def _distinct(regions: Sequence[Region], state: Mapping[str, Tensor]) -> list[Region]:
    """Every region once, so that a change at random adds up to no more than asked; "*" is every tensor whole."""
    if Region("*") in regions:
        return [Region(name) for name in state]
    whole = {region.tensor for region in regions if region == Region(region.tensor)}
    kept = dict.fromkeys(regions)
    return [region for region in kept if region == Region(region.tensor) or region.tensor not in whole]


@torch.no_grad()
def _read_with_patterns(
    model: Transformer, donor: Transformer, sites: Sequence[Site], batch: Batch, shown: Batch
) -> np.ndarray:
    at, parts = torch.from_numpy(batch.target_positions[:1]), []
    for start in range(0, len(batch), ROWS_AT_ONCE):
        tokens, seen = (torch.from_numpy(rows.tokens[start : start + ROWS_AT_ONCE]) for rows in (batch, shown))
        looks: dict[Site | str, Edit] = {}
        if sites:
            patterns = run(donor, seen, read=sites, layout=batch.layout, at=at).values
            looks = {site: pattern for site, pattern in patterns.items()}
        logits = run(model, tokens, write=looks, layout=batch.layout, at=at).logits  # [row, 1, output]
        parts.append(to_host(logits[:, 0]).float().numpy())
    return np.concatenate(parts)


def _check_same_shape(receiver: Transformer, donor: Transformer) -> None:
    if receiver.config != donor.config:
        raise BindscopeError("a transplant needs two models of one shape; these two have different settings.")
