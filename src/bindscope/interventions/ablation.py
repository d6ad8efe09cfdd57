"""Ablation: take a part's say away and see which answers fall.

What the part gives is replaced by

- ``zero``       nothing;
- ``mean``       its average over a reference batch, position by position where the two batches are laid out alike,
                 else over all positions: what the part always says stays, what it says of this program goes;
- ``resample``   what it gives for another program, drawn at random: the mean's blandness is avoided.

A head's output is its ``result``, identity-scaling term included; an MLP's is ``mlp_out``.

    >>> dataset = ablate_heads(model, batch, kind="mean")
    >>> accuracy_by(dataset, "depth").accuracy.sel(layer=2, head=1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.address import (
    Positions,
    change_where,
    check_positions,
    describe_heads,
    mark_site,
    merge_marks,
    resolve_site,
    whole,
)
from bindscope.interventions.answers import ROWS_AT_ONCE, UNITS, Edits, label_answers, read_changed, read_logits
from bindscope.interventions.head_sets import head_sites, replace_head_sets
from bindscope.interventions.replacement import Replacement, keep_runs, layers_with_mlp, replace_heads, replace_mlps
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

Kind = Literal["zero", "mean", "resample"]
KINDS: tuple[str, ...] = ("zero", "mean", "resample")
VALUES_AT_ONCE = 2**23  # how many numbers a mean is taken over at once: bounds memory
Progress = Callable[[int, int], None]


def ablate_heads(
    model: Transformer,
    batch: Batch,
    *,
    kind: Kind = "mean",
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    heads: Iterable[tuple[int, int]] | None = None,
    at_positions: np.ndarray | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Each head alone: ``correct``, ``answer`` and ``log_probability`` (of the right answer) over (layer, head, example).

    ``heads`` chooses some (layer, head); the others are missing (``answer`` −1). ``at_positions``, marks [example,
    position], limits where they are ablated; default: everywhere. ``reference`` is what means are taken
    over and other programs are drawn from; the batch itself when left out. The unchanged run is ``base_correct`` and so
    on over (example,), and the batch's labels (depth, root_line, …) are coordinates of ``example``.

    >>> ablate_heads(model, task.sample_evaluation(rng, 100)["test"]).correct.mean("example")
    """
    asked = None if heads is None else _mark_heads(model, heads)  # [layer, head, 1]
    choices = {"": at_positions}
    (dataset,) = ablate_heads_at(model, batch, choices, kind, reference, rng, on_progress).values()
    if asked is not None:
        for name in UNITS:
            values = dataset[name].values
            dataset[name].values = np.where(asked, values, _missing(values))
    return dataset


def ablate_heads_at(
    model: Transformer,
    batch: Batch,
    at_positions: Mapping[str, np.ndarray | None],
    kind: Kind = "mean",
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    on_progress: Progress | None = None,
) -> dict[str, xr.Dataset]:
    """The same at several choices of positions, by name; None is everywhere. The batch is run, and means are taken, once.

    >>> ablate_heads_at(model, batch, {"anywhere": None, "query": marks})["query"]
    """
    config, (tokens, at) = model.config, _single_questions(batch)
    stand_in = _stand_in_rows(model, batch, "result", kind, reference, rng)
    runs = keep_runs(model, tokens, at) if len(at_positions) > 1 else None
    coords = {"layer": np.arange(config.n_layers), "head": np.arange(config.n_heads)}
    attrs = _describe(kind, reference, [Site("result", 0)], model)
    unchanged, found = read_changed(model, batch, lambda rows: {}), {}
    for name, positions in at_positions.items():
        marks = None if positions is None else torch.from_numpy(positions)
        logits = replace_heads(model, tokens, at, stand_in, at_positions=marks, runs=runs, on_progress=on_progress)
        # [layer, head, example, output]
        readings = read_logits(logits, torch.from_numpy(batch.targets[:, 0]))
        found[name] = label_answers(model, batch, readings, ("layer", "head"), coords, attrs, unchanged)
    return found


def ablate_mlps(
    model: Transformer,
    batch: Batch,
    *,
    kind: Kind = "mean",
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Each MLP alone, over (layer, example); otherwise as ``ablate_heads``."""
    (tokens, at), layers = _single_questions(batch), list(layers_with_mlp(model))
    stand_in = _stand_in_rows(model, batch, "mlp_out", kind, reference, rng)
    logits = replace_mlps(model, tokens, at, stand_in, on_progress=on_progress)  # [layer, example, output]
    readings = read_logits(logits, torch.from_numpy(batch.targets[:, 0]))
    attrs = _describe(kind, reference, [Site("mlp_out", layers[0])], model)
    return label_answers(model, batch, readings, ("layer",), {"layer": layers}, attrs)


def ablate_together(
    model: Transformer,
    batch: Batch,
    sites: Iterable[Site | str],
    kind: Kind = "mean",
    *,
    positions: Positions = None,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Several sites at once, over (example,); ``positions`` narrow them as in ``patch_sites``.

    >>> ablate_together(model, batch, ["L2.H1", "L3.H0", "L4.mlp_out"], "resample", rng=rng)
    """
    found = tuple(resolve_site(site, model, batch.tokens.shape[1]) for site in sites)
    edits = ablation_edits(model, batch, found, kind, positions=positions, reference=reference, rng=rng)
    readings = read_changed(model, batch, edits)
    return label_answers(model, batch, readings, (), {}, _describe(kind, reference, found, model))


def ablate_sets(
    model: Transformer,
    batch: Batch,
    sets: Sequence[Sequence[Site | str]],
    kind: Kind = "mean",
    *,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Several sets of sites, each set at once and one set after another: as ``ablate_together``, over (set, example).

    Means are taken, and the unchanged run is made, once for all of them; an empty set changes nothing.

    >>> ablate_sets(model, batch, [["L2.H1", "L3.H0"], ["L4.H2"]])
    """
    if not sets:
        raise BindscopeError("ablate_sets: no set of sites was given; give at least one.")
    found = [tuple(resolve_site(site, model, batch.tokens.shape[1]) for site in sites) for sites in sets]
    every = tuple(dict.fromkeys(site for sites in found for site in sites))
    heads_alone = kind != "resample" and all(site.name == "result" and site == whole(site) for site in every)
    if heads_alone and batch.layout.blocks is None:
        read = _replace_heads_of(model, batch, found, kind, reference)
    else:
        stand_ins = _stand_ins(model, batch, list(dict.fromkeys(map(whole, every))), kind, reference, rng)
        read = (read_changed(model, batch, _edits(batch, sites, None, stand_ins)) for sites in found)
    parts = []
    for part in read:
        parts.append(part)
        if on_progress is not None:
            on_progress(len(parts), len(found))
    readings = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    coords = {"set": np.arange(len(sets))}
    return label_answers(model, batch, readings, ("set",), coords, _describe(kind, reference, every, model))


def _replace_heads_of(
    model: Transformer, batch: Batch, sets: Sequence[Sequence[Site]], kind: Kind, reference: Batch | None
) -> Iterator[dict[str, np.ndarray]]:
    """What each set of heads leaves of the answers; every set goes on from the same runs."""
    (tokens, at), sites = _single_questions(batch), head_sites(model)
    stand_ins = _stand_ins(model, batch, sites, kind, reference, None)
    stand = {site: stand_ins(site, np.arange(len(batch))) for site in sites}
    replace = replace_head_sets(model, tokens, at, stand)
    every_head = range(model.config.n_heads)
    for chosen in sets:
        heads = [
            (int(site.layer or 0), head)
            for site in chosen
            for head in (every_head if site.head is None else [site.head])
        ]
        yield read_logits(replace(heads), torch.from_numpy(batch.targets[:, 0]))


def ablation_edits(
    model: Transformer,
    batch: Batch,
    sites: Iterable[Site | str],
    kind: Kind = "mean",
    *,
    positions: Positions = None,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
) -> Callable[[slice], Edits]:
    """What ``ablate_together`` writes into some rows, for ``run``: with it anything can be read of the ablated model.

    >>> edits = ablation_edits(model, batch, ["L2.H1"], "zero")
    >>> run(model, tokens, read=["L3.pattern"], write=edits(slice(0, len(tokens))))
    """
    found = tuple(resolve_site(site, model, batch.tokens.shape[1]) for site in sites)
    stand_ins = _stand_ins(model, batch, list(dict.fromkeys(map(whole, found))), kind, reference, rng)
    return _edits(batch, found, positions, stand_ins)


def _edits(
    batch: Batch, sites: Sequence[Site], positions: Positions, stand_ins: Callable[[Site, np.ndarray], Tensor]
) -> Callable[[slice], Edits]:
    """What puts stand-ins at these sites, in some of the rows."""
    check_positions(positions, sites)
    merged = merge_marks({site: mark_site(site, positions, *batch.tokens.shape) for site in sites})
    rows_of = np.arange(len(batch))

    def edits(rows: slice) -> Edits:
        def put(site: Site) -> Callable[[Tensor], Tensor]:
            return change_where(merged[site][rows], site, lambda old: stand_ins(site, rows_of[rows]).expand_as(old))

        return {site: put(site) for site in merged}

    return edits


def _single_questions(batch: Batch) -> tuple[Tensor, int]:
    """The rows and the column that is asked; rows with several queries are refused."""
    if batch.layout.blocks is not None:
        raise BindscopeError("ablation asks one query a program; draw a batch with queries = 1.")
    return torch.from_numpy(batch.tokens), int(batch.target_positions[0])


def _stand_in_rows(
    model: Transformer, batch: Batch, name: str, kind: Kind, reference: Batch | None, rng: np.random.Generator | None
) -> Replacement:
    """What stands in for one kind of site: a function of layer and rows, up to the asked column of a causal model."""
    sites = [Site(name, layer) for layer in range(model.config.n_layers)]
    if name == "mlp_out":
        sites = [site for site in sites if site.layer in model.config.layers_with_mlp]
    values = _stand_ins(model, batch, sites, kind, reference, rng)
    n_kept = int(batch.target_positions[0]) + 1 if model.config.causal else batch.tokens.shape[1]

    def stand_in(layer: int, rows: Tensor) -> Tensor:
        value = values(Site(name, layer), rows.numpy())
        return value[:, :n_kept] if value.ndim and value.shape[1] > 1 else value

    return stand_in


def _stand_ins(
    model: Transformer,
    batch: Batch,
    sites: Sequence[Site],
    kind: Kind,
    reference: Batch | None,
    rng: np.random.Generator | None,
) -> Callable[[Site, np.ndarray], Tensor]:
    """What stands in for a site in some rows, in a shape that broadcasts to the site's value there."""
    if kind not in KINDS:
        raise BindscopeError(f"ablation kind '{kind}': choose one of {', '.join(KINDS)}.")
    if kind == "zero" or not sites:
        return lambda site, rows: model.W_E.new_zeros(())
    of = batch if reference is None else reference
    aligned = np.array_equal(batch.layout.position_ids, of.layout.position_ids)
    if kind == "mean":
        means = _mean_values(model, of, sites, aligned)
        return lambda site, rows: means[site]
    if rng is None:
        raise BindscopeError("resample ablation draws other programs: give it a generator, rng=….")
    if not aligned:
        raise BindscopeError("resample ablation: the reference programs must be as long as the ablated ones.")
    others, tokens = _draw_others(len(batch), len(of), reference is None, rng), torch.from_numpy(of.tokens)

    @lru_cache(maxsize=1)  # the sites of one part of the rows are asked for one after another
    def values(first: int, n: int) -> Trace:
        return run(model, tokens[others[first : first + n]], sites, layout=of.layout)

    return torch.no_grad()(lambda site, rows: values(int(rows[0]), len(rows))[site])


def _draw_others(n_rows: int, n_others: int, same: bool, rng: np.random.Generator) -> np.ndarray:
    """For each row another one's index; where both are one batch, never its own."""
    if not same:
        return rng.integers(0, n_others, n_rows)
    if n_rows < 2:
        raise BindscopeError("resample ablation of a single program needs a reference batch to draw from.")
    return (np.arange(n_rows) + rng.integers(1, n_rows, n_rows)) % n_rows


@torch.no_grad()
def _mean_values(model: Transformer, batch: Batch, sites: Sequence[Site], aligned: bool) -> dict[Site, Tensor]:
    """The average of each site over the rows, [1, position, …] where rows are aligned, else over positions too."""
    sums: dict[Site, Tensor] = {}
    n_rows = max(1, min(ROWS_AT_ONCE, VALUES_AT_ONCE // (len(sites) * batch.tokens.shape[1] * model.config.d_model)))
    for start in range(0, len(batch), n_rows):
        tokens = torch.from_numpy(batch.tokens[start : start + n_rows])
        trace = run(model, tokens, sites, layout=batch.layout)
        for site in sites:
            sums[site] = sums.get(site, 0) + to_host(trace[site]).double().sum(0, keepdim=True)
    means = {site: total / len(batch) for site, total in sums.items()}
    if aligned:
        return {site: mean.to(model.W_E.device, model.W_E.dtype) for site, mean in means.items()}
    for site in sites:
        if "key" in site.kind.axes:
            raise BindscopeError(f"site '{site}': attention has no mean over programs of different lengths.")
    return {site: mean.mean(1, keepdim=True).to(model.W_E.device, model.W_E.dtype) for site, mean in means.items()}


def _mark_heads(model: Transformer, heads: Iterable[tuple[int, int]]) -> np.ndarray:
    asked = np.zeros((model.config.n_layers, model.config.n_heads, 1), bool)
    for layer, head in heads:
        resolve_site(Site("result", layer, head), model, 1)
        asked[layer, head] = True
    return asked


def _missing(values: np.ndarray) -> float:
    return -1 if np.issubdtype(values.dtype, np.integer) else np.nan


def _describe(kind: Kind, reference: Batch | None, sites: Sequence[Site], model: Transformer) -> dict[str, object]:
    of = "" if kind == "zero" else ("the ablated programs" if reference is None else f"{len(reference)} other programs")
    return {"kind": kind, "reference": of, "heads": describe_heads(sites, model)}
