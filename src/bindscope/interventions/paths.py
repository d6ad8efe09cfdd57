"""Path patching: what one part tells another directly, with every other way between the two held still.

The effect of a sender S on the answer *through* a receiver R is measured with two runs of the base program
(Goldowsky-Dill et al. 2023 describe the idea):

1. S takes its value from the source run. Every attention layer and every MLP that is computed after S and before R is
   frozen at its value in the unchanged base run, so the change reaches R through the residual stream alone. R is read.
2. R takes that value; nothing else is changed or frozen, and the answer is read.

A head as receiver is named with the input that the message arrives by: ``L4.H0.q``, ``.k`` or ``.v``. Its output is then
computed from the changed stream on that side and the base stream on the two others. That includes the identity-scaling term
of a scaled head, whose scores and copies read the residual stream itself (for heads without one it is the same as changing q, k
or v). ``final`` as receiver is the direct effect on the logits; ``L3.pre`` the way through one MLP; any site works.

    >>> outcome = patch_path(model, contrast, "L2.H1", "L4.H0.k", receiver_positions=positions["rhs 2"])
    >>> float(outcome.logit_difference.mean())
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.address import Columns, change_where, describe_heads, mark_site, resolve_site, whole
from bindscope.interventions.answers import Edits
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import label_outcomes, measure_outcomes
from bindscope.interventions.own_metric import Function, OwnMetric, own_metric
from bindscope.interventions.patching import PAIRS_AT_ONCE, check_request
from bindscope.model.rope import rope_angles, rotate
from bindscope.model.run import run
from bindscope.model.sites import MLP_SITES, Site
from bindscope.model.transformer import Attention, Transformer

_STREAM = {"resid_pre": 0, "resid_mid": 2, "resid_post": 4}  # when, within a layer
_ATTENTION, _MLP, _STAGES = 1, 3, 5
HEAD_INPUTS = ("q", "k", "v")


def patch_path(
    model: Transformer,
    contrast: Contrast,
    sender: Site | str,
    receiver: Site | str,
    *,
    sender_positions: Columns | None = None,
    receiver_positions: Columns | None = None,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
) -> xr.Dataset:
    """Every metric of ``outcome`` over (pair,) when only the path from ``sender`` to ``receiver`` carries the source.

    Positions are columns [pair], [pair, k] or marks [pair, position], or common ones behind ``@``; all when left out.
    For a receiver's q they are the positions that attend, for k and v the positions that are attended to. ``source_model`` gives
    the sender's value, and the source run that metrics are normalised by; it defaults to ``model``.

    >>> patch_path(model, contrast, "L1.H0", "L3.H1.k").logit_difference.mean()
    """
    own = own_metric(metric)
    n_pairs, n_positions = contrast.base.shape
    from_site, to_site = (resolve_site(site, model, n_positions) for site in (sender, receiver))
    check_request((from_site,), None, model, source_model)
    if moment(from_site, model) >= moment(to_site, model):
        raise BindscopeError(
            f"path '{from_site}' to '{to_site}': the receiver must be computed after the sender; choose a later one."
        )
    sent = mark_site(from_site, sender_positions, n_pairs, n_positions)
    received = mark_site(to_site, receiver_positions, n_pairs, n_positions)
    parts = []
    for start in range(0, n_pairs, PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        ends = (whole(from_site), sent[rows]), (whole(to_site), received[rows])
        parts.append(_patch_part(model, contrast.take(rows), *ends, source_model or model, own))
    present = sent.any(1) & received.any(1)  # [pair]
    outcomes = {name: np.where(present, np.concatenate([part[name] for part in parts]), np.nan) for name in parts[0]}
    attrs = {
        "sender": str(from_site),
        "receiver": str(to_site),
        "frozen": ", ".join(map(str, frozen_between(from_site, to_site, model))) or "nothing lies between",
        "heads": describe_heads([from_site], model),
        "n_pairs": n_pairs,
        "n_untouched": int((~present).sum()),
    }
    return label_outcomes(outcomes, (), {"pair": np.arange(n_pairs)}, attrs)


def moment(site: Site, model: Transformer) -> int:
    """When a site is computed, so that of two sites the earlier one can influence the later one."""
    if site.layer is None:
        return _STAGES * model.config.n_layers if site.name == "final" else -1
    if site.name in _STREAM:
        return _STAGES * site.layer + _STREAM[site.name]
    in_mlp = site.name in MLP_SITES and not model.config.parallel  # in parallel, neither hears the other
    return _STAGES * site.layer + (_MLP if in_mlp else _ATTENTION)


def frozen_between(sender: Site, receiver: Site, model: Transformer) -> list[Site]:
    """The attention layers and MLPs that are computed after the sender and before the receiver."""
    parts = [Site("attn_out", layer) for layer in range(model.config.n_layers)]
    parts += [Site("mlp_out", layer) for layer in model.config.layers_with_mlp]
    inside = [part for part in parts if moment(sender, model) < moment(part, model) < moment(receiver, model)]
    return sorted(inside, key=lambda part: moment(part, model))


End = tuple[Site, np.ndarray]  # a whole site, and the marks [pair, position] of its columns


@torch.no_grad()
def _patch_part(
    model: Transformer,
    contrast: Contrast,
    sender: End,
    receiver: End,
    source_model: Transformer,
    metric: OwnMetric | None,
) -> dict[str, np.ndarray]:
    site, marks = receiver
    entry = Site("resid_pre", site.layer) if site.name in HEAD_INPUTS else site  # where the message is read
    frozen = frozen_between(sender[0], site, model)
    still = run(model, contrast.base, [*frozen, entry])
    sent = run(source_model, contrast.source, [sender[0]])[sender[0]]

    def keep(part: Site) -> Callable[[Tensor], Tensor]:
        return lambda old: still[part]

    first: Edits = {sender[0]: change_where(sender[1], sender[0], lambda old: sent)}
    first |= {part: keep(part) for part in frozen}
    arrived = run(model, contrast.base, [entry], first)[entry]
    if site.name in HEAD_INPUTS:
        site, value = _receive_as_input(model, site, marks, still[entry], arrived)
        second: Edits = {site: lambda old: value}
    else:
        second = {site: change_where(marks, site, lambda old: arrived)}
    changed = run(model, contrast.base, write=second).logits[:, contrast.at]
    at = torch.tensor([contrast.at])
    base, source = (run(m, rows, at=at) for m, rows in ((model, contrast.base), (source_model, contrast.source)))
    return measure_outcomes(changed, base.logits[:, 0], source.logits[:, 0], contrast, metric)


def _receive_as_input(
    model: Transformer, site: Site, marks: np.ndarray, base: Tensor, arrived: Tensor
) -> tuple[Site, Tensor]:
    """The receiving heads' output [pair, position, (head,) d_model] with one of their inputs changed where marked."""
    assert site.layer is not None
    block = model.layers[site.layer]
    x = block.norm1(base)  # [pair, position, d_model]
    changed = torch.where(torch.from_numpy(marks).to(x.device)[:, :, None], block.norm1(arrived), x)
    sides = [changed if name == site.name else x for name in HEAD_INPUTS]
    result = head_results(block.attention, *(side[:, :, None] for side in sides))
    return Site("result", site.layer, site.head), result if site.head is None else result[:, :, site.head]


def head_results(attention: Attention, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """What each head adds to the residual stream [pair, position, head, d_model] when each of its three sides reads a
    normalised stream of its own, [pair, position, head, d_model]; one for all heads has a single head."""
    config, n_heads = attention.config, attention.config.n_heads
    queries, keys, values = (side.expand(-1, -1, n_heads, -1) for side in (queries, keys, values))
    maps, biases = (attention.W_Q, attention.W_K, attention.W_V), (None, None, None)
    if attention.qkv.bias is not None:
        biases = attention.split_rows(attention.qkv.bias)  # type: ignore[assignment]
    q, k, v = (
        torch.einsum("bphm,hme->bphe", side, weight) + (0 if bias is None else bias)
        for side, weight, bias in zip((queries, keys, values), maps, biases)
    )
    n_positions = queries.shape[1]
    cos, sin = rope_angles(config, torch.arange(n_positions, device=queries.device))
    if cos is not None and sin is not None:
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    scores = torch.einsum("bqhe,bkhe->bhqk", q, k) * config.d_head**-0.5
    if attention.identity_a is not None:
        scores = scores + attention.scaled_a[:, None, None] * torch.einsum("bqhm,bkhm->bhqk", queries, keys)
    if config.causal:
        scores = scores + scores.new_full((n_positions, n_positions), float("-inf")).triu(1)
    pattern = scores.softmax(-1)
    result = torch.einsum("bhqk,bkhe,hem->bqhm", pattern, v, attention.W_O)
    if attention.identity_b is not None:
        result = result + torch.einsum("h,bhqk,bkhm->bqhm", attention.scaled_b, pattern, values)
    return result
