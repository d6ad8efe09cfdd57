"""Run a model once, reading and writing at named sites. A pure function: no hooks stay behind, nothing is hidden.

    >>> trace = run(model, tokens, read=["L1.H0.pattern"], write={"L0.resid_post@4": other})
    >>> trace.logits, trace["L1.H0.pattern"]

Writes are applied before reads at the same site, in the order given. A write that never fires, a position out of range
or a value of the wrong shape is an error, and so is a model that drops activations at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.sites import MLP_SITES, Site
from bindscope.model.transformer import SILENT, Tap, Transformer
from bindscope.tasks.task import Layout

Edit = Tensor | Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Trace:
    """What a run gave: logits, and the value of each site that was read, by site or by its text."""

    logits: Tensor  # [batch, n_at, outputs]
    values: Mapping[Site, Tensor]

    def __getitem__(self, site: Site | str) -> Tensor:
        return self.values[Site.parse(site)]


def run(
    model: Transformer,
    tokens: Tensor,
    read: Iterable[Site | str] = (),
    write: Mapping[Site | str, Edit] | None = None,
    layout: Layout | None = None,
    at: Tensor | None = None,
) -> Trace:
    """Run ``model`` on ``tokens``; return logits (at the columns ``at``, or all) and what was read.

    An edit is a tensor of the site's shape, or a function from the old value to the new one. Without reads and writes
    this is the model's fast path: fused attention, and only the asked columns in the last layer.

    >>> trace = run(model, tokens, read=["L2.H1.z"], write={"L0.resid_pre@2": lambda value: 0 * value})
    >>> trace.logits[0, -1].argmax(), trace["L2.H1.z"].shape
    """
    reads = [Site.parse(site) for site in read]
    writes = [(Site.parse(site), edit) for site, edit in (write or {}).items()]
    check_evaluating(model)
    for site in [*reads, *(site for site, _ in writes)]:
        check_site(site, model, tokens.shape[1])
    if not reads and not writes:
        return Trace(model(tokens, layout, at, SILENT), {})
    tap = _ReadWrite(reads, writes)
    logits = model(tokens, layout, at, tap)
    return Trace(logits, {site: tap.values[site] for site in reads})


def check_evaluating(model: Transformer) -> None:
    """Refuse a model in training mode with dropout: two runs of it differ by more than what was changed."""
    if model.training and model.config.dropout > 0:
        raise BindscopeError("this model is in training mode and drops activations at random; call model.eval() first.")


def check_site(site: Site, model: Transformer, n_positions: int) -> None:
    """Refuse a site that this model, or a sequence of this length, does not have."""
    config = model.config
    if site.layer is not None and site.layer >= config.n_layers:
        raise BindscopeError(f"site '{site}': the model has layers 0 to {config.n_layers - 1}.")
    if site.head is not None and site.head >= config.n_heads:
        raise BindscopeError(f"site '{site}': the model has heads 0 to {config.n_heads - 1}.")
    if site.positions is not None and max(site.positions) >= n_positions:
        raise BindscopeError(f"site '{site}': the sequence has positions 0 to {n_positions - 1}.")
    if site.name in MLP_SITES and site.layer not in config.layers_with_mlp:
        raise BindscopeError(f"site '{site}': layer {site.layer} of this model has no MLP.")
    if site.name == "pre_linear" and not config.gated:
        raise BindscopeError(f"site '{site}': the MLPs of this model are not gated.")
    if site.name == "resid_mid" and config.parallel:
        raise BindscopeError(
            f"site '{site}': attention and MLP of this model work in parallel, so no stream lies between them."
        )
    if site.name in ("rot_q", "rot_k") and config.positions != "rope":
        raise BindscopeError(f"site '{site}': this model does not rotate its queries and keys.")
    if site.name == "pos_embed" and config.positions not in ("learned", "normal"):
        raise BindscopeError(f"site '{site}': this model adds no position embeddings.")


def writing_tap(write: Mapping[Site, Edit]) -> Tap:
    """The tap that makes these edits, for whoever calls layers instead of a model (``continuation``)."""
    return _ReadWrite([], list(write.items()))


class _ReadWrite:
    """The tap behind ``run``."""

    def __init__(self, reads: list[Site], writes: list[tuple[Site, Edit]]) -> None:
        self.reads, self.writes = reads, writes
        self.wanted = {(site.layer, site.name) for site in [*reads, *(site for site, _ in writes)]}
        self.values: dict[Site, Tensor] = {}

    def wants(self, layer: int, *names: str) -> bool:
        return any((layer, name) in self.wanted for name in names)

    def __call__(self, name: str, layer: int | None, value: Tensor) -> Tensor:
        if (layer, name) not in self.wanted:
            return value
        for site, edit in self.writes:
            if (site.layer, site.name) == (layer, name):
                value = _apply_edit(value, site, edit)
        for site in self.reads:
            if (site.layer, site.name) == (layer, name):
                self.values[site] = value[site.index]
        return value


def to_host(values: Tensor) -> Tensor:
    """Numbers as they are counted, fitted and saved: on the CPU, and half precision in single precision.

    NumPy has no bfloat16, mps no float64, and what follows should not round again.
    """
    values = values.cpu()
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _apply_edit(value: Tensor, site: Site, edit: Edit) -> Tensor:
    old = value[site.index]
    new = edit if isinstance(edit, Tensor) else edit(old)
    if new.shape != old.shape:
        raise BindscopeError(f"site '{site}': a value of shape {list(old.shape)} is needed, got {list(new.shape)}.")
    edited = value.clone()
    edited[site.index] = new.to(edited)
    return edited
