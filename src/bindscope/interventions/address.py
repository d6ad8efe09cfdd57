"""What a change touches: a site of the model, and in each row the columns there.

    >>> site = resolve_site("L2.H1", model, n_positions=67)      # a head by itself means its whole output
    >>> str(site), mark_columns(np.array([6, -1]), 2, 67).nonzero()
    ('L2.H1.result', (array([0]), array([6])))

A head's *whole output* is its ``result``: z through the output map plus, where the model has identity scaling, the
identity-scaling term, which z does not contain. Naming ``L2.H1.z`` touches z alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.run import check_site
from bindscope.model.sites import KINDS, MLP_SITES, Site
from bindscope.model.transformer import Transformer

Columns = np.ndarray  # [row] or [row, k] integers with −1 for none, or marks [row, position] of type bool
Positions = Mapping[Site | str, Columns] | Columns | None
_HEAD = re.compile(r"(L\d+\.H\d+)(@[\d,]+)?")


def resolve_site(text: Site | str, model: Transformer, n_positions: int) -> Site:
    """The site that a text names in this model; one that it does not have is refused with those that it has."""
    given = str(text)
    if isinstance(text, str) and (head := _HEAD.fullmatch(text.strip())):
        text = f"{head[1]}.result{head[2] or ''}"
    try:
        site = Site.parse(text)
        check_site(site, model, n_positions)
    except BindscopeError as problem:
        sentence = str(problem).replace(f"site '{text}'", f"site '{given}'").split(" Known: ")[0]  # its own are listed
        joint = " " if sentence.endswith("?") else "; "
        rest = f"{joint}{describe_sites(model)}."
        raise BindscopeError(sentence.rstrip(".") + (rest if joint == "; " else f" T{rest[2:]}")) from None
    return site


def describe_sites(model: Transformer) -> str:
    """Which sites a model has, in one clause."""
    config = model.config
    absent = {"rot_q", "rot_k"} if config.positions != "rope" else set()
    absent |= set() if config.layers_with_mlp else set(MLP_SITES)
    absent |= {"resid_mid"} if config.parallel else set()
    absent |= set() if config.gated else {"pre_linear"}
    names = [name for name, kind in KINDS.items() if kind.in_layer and name not in absent]
    ends = ["embed", *(["pos_embed"] if config.positions in ("learned", "normal") else []), "final"]
    last_layer, last_head = config.n_layers - 1, config.n_heads - 1
    return (
        f"this model has {', '.join(ends)} and, in layers L0 to L{last_layer} with heads H0 to H{last_head}, "
        f"{', '.join(names)}"
    )


def mark_columns(columns: Columns | None, n_rows: int, n_positions: int) -> np.ndarray:
    """Marks [row, position] of the columns named row by row; None marks all of them."""
    if columns is None:
        return np.ones((n_rows, n_positions), bool)
    columns = np.asarray(columns)
    if columns.dtype == bool:
        if columns.shape != (n_rows, n_positions):
            raise BindscopeError(f"marks of shape {columns.shape} were given for {n_rows} rows of {n_positions}.")
        return columns
    if columns.shape[:1] != (n_rows,) or columns.ndim > 2:
        raise BindscopeError(f"columns of shape {columns.shape} were given for {n_rows} rows; give one entry a row.")
    columns = columns.reshape(n_rows, -1)  # [row, k]
    if columns.size and columns.max() >= n_positions:
        raise BindscopeError(f"column {columns.max()}: the rows have positions 0 to {n_positions - 1}.")
    marks = np.zeros((n_rows, n_positions), bool)
    rows, k = np.nonzero(columns >= 0)
    marks[rows, columns[rows, k]] = True
    return marks


def mark_site(site: Site, positions: Positions, n_rows: int, n_positions: int) -> np.ndarray:
    """Marks [row, position] of one site: its own ``@`` positions, those given for it, or those given for all."""
    columns = _columns_of(site, positions)
    if site.positions is None:
        return mark_columns(columns, n_rows, n_positions)
    if isinstance(positions, Mapping) and columns is not None:
        raise BindscopeError(f"site '{site}': positions are given twice, behind '@' and beside it; keep one.")
    own = np.zeros((n_rows, n_positions), bool)
    own[:, list(site.positions)] = True
    return own


def _columns_of(site: Site, positions: Positions) -> Columns | None:
    if positions is None or not isinstance(positions, Mapping):
        return positions
    return next((columns for key, columns in positions.items() if str(key) in (str(site), _short(site))), None)


def _short(site: Site) -> str:
    return str(site).removesuffix(".result")


def check_positions(positions: Positions, sites: Iterable[Site]) -> None:
    """Refuse positions that name a site nobody asked to change."""
    if isinstance(positions, Mapping):
        known = {str(site) for site in sites} | {_short(site) for site in sites}
        for key in positions:
            if str(key) not in known:
                raise BindscopeError(f"positions are given for '{key}', which is not among the sites to change.")


def merge_marks(marks: Mapping[Site, np.ndarray]) -> dict[Site, np.ndarray]:
    """One set of marks for each activation: ``L3.resid_pre@2`` and ``L3.resid_pre@5`` are columns of one."""
    merged: dict[Site, np.ndarray] = {}
    for site, mark in marks.items():
        merged[whole(site)] = mark | merged.get(whole(site), False)
    return merged


def whole(site: Site) -> Site:
    """The same site at all positions."""
    return Site(site.name, site.layer, site.head)


def spread_marks(marks: Tensor, site: Site, n_axes: int) -> Tensor:
    """Marks [row, position] in the shape of the site's value, so that they choose among its entries."""
    axes = [axis for axis in site.kind.axes if not (axis == "head" and site.head is not None)]
    at = axes.index("query") if "query" in axes else axes.index("position")
    shape = [1] * n_axes
    shape[0], shape[at] = marks.shape
    return marks.reshape(shape)


def change_where(marks: np.ndarray, site: Site, change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """An edit for ``run`` at the whole site: ``change(old)`` in the marked columns of each row, old elsewhere."""

    def edit(old: Tensor) -> Tensor:
        chosen = spread_marks(torch.from_numpy(marks).to(old.device), site, old.ndim)
        return torch.where(chosen, change(old), old)

    return edit


def describe_heads(sites: Sequence[Site], model: Transformer) -> str:
    """What a change of these sites does with the identity-scaling term, for a result's attributes."""
    if not model.config.identity_vo:
        return "the model has no identity-scaling term"
    names = {site.name for site in sites}
    if "result" in names:
        return "a head's output includes its identity-scaling term"
    if "z" in names:
        return "z leaves out the identity-scaling term; name 'result' for a head's whole output"
    return "the identity-scaling term follows what is changed"
