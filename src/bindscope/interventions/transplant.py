"""Transplants: give a model one named part of another checkpoint, and see whether its answers follow.

Where a run's accuracy jumps between two checkpoints, a part *reproduces* the jump if the earlier model with this part
of the later one answers as well as the later one does, and *undoes* it if the later model with this part of the earlier
one answers as badly. Parts are of two kinds:

- weights: ``transplant`` copies them. A part is a set of weights, not the function they compute: L0.QK is W_Q and W_K of
  layer 0, and the scores it gives still depend on the receiver's embeddings. Both checkpoints should be of one run, as
  the same weights mean nothing in another run's directions.
- patterns: ``read_transplanted`` runs the donor on the same rows and writes where it attends into the receiver's run.
  No weights are mixed, so this is exact whatever else has changed: the receiver computes with its own values, but
  attends where the donor attends.

``components`` names the parts of any model, ``sum_components`` those of modular addition.

>>> model = transplant(run.checkpoint(400), run.checkpoint(1000), ["L0.QK", "embeddings"])
>>> outputs = read_transplanted(run.checkpoint(5300), run.checkpoint(5400), ["pattern 1 of ="], batch)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.interventions.components import Groups, Part, Region, list_components, read_component
from bindscope.interventions.sum_components import find_sums, sum_parts
from bindscope.model.config import ModelConfig
from bindscope.model.run import Edit, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

ROWS_AT_ONCE = 2048
Named = str | Part


def transplant(receiver: Transformer, donor: Transformer, parts: Iterable[Named]) -> Transformer:
    """A new model: the receiver with these parts of the donor's weights; neither of the two is changed.

    >>> transplant(before, after, ["everything"])     # the donor
    >>> transplant(before, after, ["QK1", "QK2·OV1", "variable b"])
    """
    _check_same_shape(receiver, donor)
    found = find_parts(receiver.config, parts)
    check_weights(found)
    return _change(receiver, found, lambda region, own: region.of(donor.state_dict()))


def read_transplanted(
    receiver: Transformer, donor: Transformer, parts: Iterable[Named], batch: Batch, shown: Batch | None = None
) -> np.ndarray:
    """What the receiver with these parts of the donor answers, weights and patterns alike: [row, output] float32.

    A pattern is the donor's own, unmixed with any weights of the receiver's. ``shown`` are the rows that the donor looks
    at, the same ones unless others are given: patterns of other rows are a control.
    """
    _check_same_shape(receiver, donor)
    found = find_parts(receiver.config, parts)
    model = transplant(receiver, donor, [part for part in found if not part.looks])
    sites = [look.site for part in found for look in part.looks]
    return _read_with_patterns(model, donor, sites, batch, batch if shown is None else shown)


def change_at_random(
    receiver: Transformer, donor: Transformer, parts: Iterable[Named], generator: torch.Generator
) -> Transformer:
    """The control of ``transplant``: every tensor of these parts changed by as much (in norm) in a random direction."""
    _check_same_shape(receiver, donor)
    other = donor.state_dict()

    def replace(region: Region, own: Tensor) -> Tensor:
        noise = torch.randn(own.shape, generator=generator).to(own)
        return own + noise * ((region.of(other) - own).norm() / noise.norm())

    return _change(receiver, find_parts(receiver.config, parts), replace)


def check_weights(parts: Iterable[Part]) -> None:
    """Refuse parts that are where a model attends."""
    for part in parts:
        if part.looks:
            raise BindscopeError(
                f"part '{part.name}': it is where a model attends, not weights; read_transplanted writes it into a run."
            )


def mark_parts(model: Transformer, parts: Iterable[Named]) -> dict[str, Tensor]:
    """Which entries of each tensor belong to these parts of weights: tensor → bool of its shape; others are left out."""
    state = model.state_dict()
    regions = _distinct([region for part in find_parts(model.config, parts) for region in part.regions], state)
    marks = {region.tensor: torch.zeros_like(state[region.tensor], dtype=torch.bool) for region in regions}
    for region in regions:
        region.of(marks).fill_(True)
    return marks


def find_parts(config: ModelConfig, names: Iterable[Named], groups: Groups | None = None) -> list[Part]:
    """The parts of these names, and those that are parts already; another name is refused with the nearest one.

    ``groups`` are the task's named tokens, whose embeddings are parts.
    """
    names = [names] if isinstance(names, str | Part) else list(names)
    return [name if isinstance(name, Part) else _find_part(config, name, groups) for name in names]


def _find_part(config: ModelConfig, name: str, groups: Groups | None) -> Part:
    known, spelled = list_parts(config, groups), spell(name)
    part = known.get(spelled) or read_component(config, spelled)
    if part is None:
        raise BindscopeError(f"there is no part '{name}'.{suggest_nearest(name, known)}")
    return part


def spell(name: str) -> str:
    """A part's name as it is listed: ``qk2*ov1`` and ``QK2.OV1`` are ``QK2·OV1``, and ``l0.qk`` is ``L0.QK``."""
    plain = " ".join(name.split())
    if re.match(r"[Ll]\d", plain):
        plain = re.sub(
            r"^l|(?<=\.)h(?=\d)|(?<=\.)(qk|ov|mlp)$", lambda match: match[0].upper(), plain, flags=re.IGNORECASE
        )
        return re.sub(r"(?<=\.)(norms|pattern)$", lambda match: match[0].lower(), plain, flags=re.IGNORECASE)
    plain = re.sub(r"[.*]", "·", plain)
    return re.sub(r"^(qk|ov|mlp)(?=\d|$)|(?<=·)(ov|qk)", lambda match: match[0].upper(), plain, flags=re.IGNORECASE)


def list_parts(config: ModelConfig, groups: Groups | None = None) -> dict[str, Part]:
    """All parts of models of this shape by name, in the order of the forward pass; a range such as ``L1-5.QK`` is found
    too, though it is not listed.

    >>> list(list_parts(config))[:3]
    ['nothing', 'everything', 'embeddings']
    """
    sums = find_sums(config) if groups is None else None
    parts = list_components(config, groups or {}) if sums is None else sum_parts(config, sums)
    return {part.name: part for part in parts}


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
    once = list(dict.fromkeys(regions))
    return [region for region in once if not any(other.covers(region) for other in once if other != region)]


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
