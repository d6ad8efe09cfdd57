"""A site names an activation in the network, with the same text in Python, on the command line, in JSON and in URLs.

    >>> str(Site.parse("L6.H5.z@12"))
    'L6.H5.z@12'
    >>> Site.parse("L3.resid_pre").transformer_lens
    'blocks.3.hook_resid_pre'
    >>> str(Site.parse("blocks.3.hook_resid_pre@12"))
    'L3.resid_pre@12'

The words and the shapes are TransformerLens's, and its names of hook points are read too. ``L3`` counts layers from 0, ``H5`` selects one head, ``@12`` or
``@4,7`` selects positions (for ``scores`` and ``pattern``: query positions). Where heads share keys and values, every head
has a copy of those of its group at ``k``, ``v`` and ``rot_k`` (TransformerLens with ``ungroup_grouped_query_attention``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bindscope.errors import BindscopeError, suggest_nearest


@dataclass(frozen=True)
class SiteKind:
    """What a site's name means: its axes, its TransformerLens name, and one sentence."""

    axes: tuple[str, ...]
    transformer_lens: str
    meaning: str
    in_layer: bool = True

    @property
    def has_heads(self) -> bool:
        return "head" in self.axes

    @property
    def position_axis(self) -> int:
        return self.axes.index("query") if "query" in self.axes else self.axes.index("position")


_RESIDUAL = ("batch", "position", "d_model")
_HEADS = ("batch", "position", "head", "d_head")
_SCORES = ("batch", "head", "query", "key")
_MLP = ("batch", "position", "d_mlp")

KINDS: dict[str, SiteKind] = {
    "embed": SiteKind(_RESIDUAL, "hook_embed", "token embeddings, before positions are added", in_layer=False),
    "pos_embed": SiteKind(_RESIDUAL, "hook_pos_embed", "position embeddings, where they are added", in_layer=False),
    "resid_pre": SiteKind(_RESIDUAL, "blocks.{}.hook_resid_pre", "the residual stream entering the layer"),
    "q": SiteKind(_HEADS, "blocks.{}.attn.hook_q", "queries, before rotation"),
    "k": SiteKind(_HEADS, "blocks.{}.attn.hook_k", "keys, before rotation"),
    "v": SiteKind(_HEADS, "blocks.{}.attn.hook_v", "values"),
    "rot_q": SiteKind(_HEADS, "blocks.{}.attn.hook_rot_q", "queries after rotation (RoPE models)"),
    "rot_k": SiteKind(_HEADS, "blocks.{}.attn.hook_rot_k", "keys after rotation (RoPE models)"),
    "scores": SiteKind(_SCORES, "blocks.{}.attn.hook_attn_scores", "attention scores, hidden keys at −∞"),
    "pattern": SiteKind(_SCORES, "blocks.{}.attn.hook_pattern", "attention weights; each row sums to 1"),
    "z": SiteKind(_HEADS, "blocks.{}.attn.hook_z", "attention-weighted values, before the output map"),
    "result": SiteKind(
        ("batch", "position", "head", "d_model"),
        "blocks.{}.attn.hook_result",
        "what each head adds to the residual stream, its identity-scaling term included",
    ),
    "attn_out": SiteKind(_RESIDUAL, "blocks.{}.hook_attn_out", "the sum of all heads and the output bias"),
    "resid_mid": SiteKind(
        _RESIDUAL,
        "blocks.{}.hook_resid_mid",
        "the residual stream between attention and MLP, unless they work in parallel",
    ),
    "pre": SiteKind(_MLP, "blocks.{}.mlp.hook_pre", "MLP neurons before the activation"),
    "pre_linear": SiteKind(_MLP, "blocks.{}.mlp.hook_pre_linear", "what the activation is multiplied by (gated MLPs)"),
    "post": SiteKind(_MLP, "blocks.{}.mlp.hook_post", "MLP neurons after the activation"),
    "mlp_out": SiteKind(_RESIDUAL, "blocks.{}.hook_mlp_out", "what the MLP adds to the residual stream"),
    "resid_post": SiteKind(_RESIDUAL, "blocks.{}.hook_resid_post", "the residual stream leaving the layer"),
    "final": SiteKind(_RESIDUAL, "ln_final.hook_out", "the last stream after its LayerNorm", in_layer=False),
}

MLP_SITES = ("resid_mid", "pre", "pre_linear", "post", "mlp_out")  # which only layers with an MLP have

_GRAMMAR = re.compile(r"(?:L(?P<layer>\d+)\.)?(?:H(?P<head>\d+)\.)?(?P<name>[a-z_]+)(?:@(?P<positions>\d+(?:,\d+)*))?")
_HOOK = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<point>[a-z_.]+)(?P<positions>(?:@[\d,]+)?)")
_BY_HOOK = {kind.transformer_lens: name for name, kind in KINDS.items()} | {"ln_final.hook_normalized": "final"}


@dataclass(frozen=True)
class Site:
    """One activation: a kind, its layer, and optionally one head and some positions.

    >>> Site.parse("L6.H5.z@12").transformer_lens
    """

    name: str
    layer: int | None = None
    head: int | None = None
    positions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise BindscopeError(f"site '{self}': unknown name '{self.name}'.{suggest_nearest(self.name, KINDS)}")
        if self.kind.in_layer != (self.layer is not None):
            need = "needs a layer, as in" if self.kind.in_layer else "belongs to no layer; write"
            raise BindscopeError(f"site '{self}': '{self.name}' {need} '{'L0.' * self.kind.in_layer}{self.name}'.")
        if self.head is not None and not self.kind.has_heads:
            raise BindscopeError(f"site '{self}': '{self.name}' has no heads; leave out 'H{self.head}.'.")

    @classmethod
    def parse(cls, text: str | Site) -> Site:
        """The inverse of ``str``; also reads a hook point's name in TransformerLens."""
        if isinstance(text, Site):
            return text
        match = _GRAMMAR.fullmatch(_own_name(text.strip()))
        if match is None:
            raise BindscopeError(_refuse(text.strip()))
        number = {key: int(match[key]) if match[key] else None for key in ("layer", "head")}
        positions = tuple(map(int, match["positions"].split(","))) if match["positions"] else None
        return cls(match["name"], number["layer"], number["head"], positions)

    def __str__(self) -> str:
        layer = "" if self.layer is None else f"L{self.layer}."
        head = "" if self.head is None else f"H{self.head}."
        positions = "" if self.positions is None else "@" + ",".join(map(str, self.positions))
        return f"{layer}{head}{self.name}{positions}"

    @property
    def kind(self) -> SiteKind:
        return KINDS[self.name]

    @property
    def transformer_lens(self) -> str:
        """The name of the hook point that holds this activation in TransformerLens."""
        return self.kind.transformer_lens.format(self.layer)

    @property
    def index(self) -> tuple[slice | int | list[int], ...]:
        """What picks this site's part out of the whole activation; a head or one position drops no other axis."""
        parts: list[slice | int | list[int]] = [slice(None)] * len(self.kind.axes)
        if self.positions is not None:
            parts[self.kind.position_axis] = list(self.positions)
        if self.head is not None:
            parts[self.kind.axes.index("head")] = self.head
        return tuple(parts)


def _refuse(text: str) -> str:
    """Why a text is no site, with the nearest hook point where it is meant to be one of TransformerLens's."""
    hook = _HOOK.fullmatch(text)
    if hook is None or "hook_" not in text:
        return f"site '{text}': expected the form 'L3.resid_pre@12', 'L6.H5.z' or 'embed'."
    in_layer = hook["layer"] is not None
    known = {kind.transformer_lens.format(hook["layer"]) for kind in KINDS.values() if kind.in_layer == in_layer}
    return f"site '{text}': no activation here has that name of TransformerLens's.{suggest_nearest(text, known)}"


def _own_name(text: str) -> str:
    """'blocks.3.attn.hook_z@12' as 'L3.z@12'; whatever names no hook point as it is."""
    hook = _HOOK.fullmatch(text)
    name = _BY_HOOK.get(f"{'blocks.{}.' if hook['layer'] else ''}{hook['point']}") if hook else None
    if hook is None or name is None:
        return text
    return f"{'L' + hook['layer'] + '.' if hook['layer'] else ''}{name}{hook['positions']}"


def sites_markdown() -> str:
    """The reference page of all sites, generated from the table above."""
    rows = [
        f"| `{'L0.' if kind.in_layer else ''}{name}` | `[{', '.join(kind.axes)}]` "
        f"| `{kind.transformer_lens.format('0')}` | {kind.meaning} |"
        for name, kind in KINDS.items()
    ]
    head = ["| site | shape | TransformerLens | meaning |", "|---|---|---|---|"]
    return "\n".join(head + rows) + "\n"
