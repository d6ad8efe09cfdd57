"""Attributed edges with what they are worth: exact patches of some, and how faithful circuits of the strongest ones are.

Edges are attributed on the first half of the pairs; exact patches are made on those too, circuits are tried on the other
half, which chose nothing.

    >>> report = report_edges(model, contrast, positions, n_points=8, n_checked=16, n_random=4, rng=rng)
    >>> report.faithfulness.sel(circuit="attributed")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.edge_circuit import CHOSEN, RANDOM, measure_faithfulness
from bindscope.interventions.edges import Graph, attribute_edges, choose_edges, compare_edges, patch_edges
from bindscope.interventions.grids import head_grid, mlp_grid
from bindscope.interventions.inputs import attribute_inputs, patch_inputs
from bindscope.interventions.slopes import Method
from bindscope.model.transformer import Transformer

FEWEST_PAIRS = 4
Z = 1.96  # of a 95 % interval of a mean
AGREEMENT = ("correlation", "mean_absolute_error", "largest_error", "sign_agreement")


def report_edges(
    model: Transformer,
    contrast: Contrast,
    positions: Mapping[str, np.ndarray],
    *,
    n_points: int,
    n_checked: int,
    n_random: int,
    rng: np.random.Generator,
    method: Method = "gradient",
) -> xr.Dataset:
    """``effect_at`` (sender, receiver, position); ``attributed`` and ``exact`` (edge) with their ends; ``part_exact`` (sender)
    of patching the whole sender; ``input_effect`` and ``input_exact`` (side, layer, head) of each head's queries, keys and
    values; ``faithfulness`` and ``kept`` (size, circuit) with 95 % intervals over pairs; the agreement with exact patches
    in the attributes.
    """
    *_, whole = stream_report(
        model, contrast, positions, n_points=n_points, n_checked=n_checked, n_random=n_random, rng=rng, method=method
    )
    return whole


def stream_report(
    model: Transformer,
    contrast: Contrast,
    positions: Mapping[str, np.ndarray],
    *,
    n_points: int,
    n_checked: int,
    n_random: int,
    rng: np.random.Generator,
    method: Method = "gradient",
) -> Iterator[xr.Dataset]:
    """The same report as it grows: after the attribution, each exact patch and each size; missing is what is still to come."""
    if len(contrast) < FEWEST_PAIRS:
        raise BindscopeError(
            f"edges: {FEWEST_PAIRS} pairs or more are needed, half of them to try what the others found."
        )
    half = len(contrast) // 2
    found, tried = contrast.take(slice(0, half)), contrast.take(slice(half, None))
    named = {name: columns[:half] for name, columns in positions.items()}
    attributed = attribute_edges(model, found, n_points=n_points, positions=named, method=method)
    means = attributed.effect.mean("pair").values
    chosen = choose_edges(means, (n_checked + 1) // 2, n_checked // 2, rng)
    sizes = list_sizes(int(Graph.of(model).edges.sum()))
    exact = np.full(len(chosen), np.nan)
    faithful = _untried(sizes, n_random, len(tried))
    about = {"n_attributed": half, "n_tried": len(tried), "n_edges": sizes[-1]}
    attributed = attributed.assign(
        part_exact=("sender", patch_parts(model, found, attributed)),
        input_effect=attribute_inputs(model, found, method).logit_difference.mean("pair"),
        input_exact=patch_inputs(model, found).logit_difference.mean("pair"),
    ).assign_attrs(about)
    yield _assemble(attributed, chosen, exact, faithful)
    for index, effect in enumerate(patch_edges(model, found, attributed, chosen)):
        exact[index] = effect
        yield _assemble(attributed, chosen, exact, faithful)
    for size in sizes:
        one = measure_faithfulness(model, tried, means, sizes=(size,), n_random=n_random, rng=rng)
        for name in faithful.data_vars:
            faithful[name].loc[{"size": size}] = one[name].sel(size=size)
        yield _assemble(attributed, chosen, exact, faithful)


def patch_parts(model: Transformer, contrast: Contrast, attributed: xr.Dataset) -> np.ndarray:
    """The exact effect of every sender, whose edges are patched all at once; that of the embedding is 1."""
    heads = head_grid(model, contrast).logit_difference.mean("pair").transpose("layer", "head").values
    exact = {f"L{layer}.H{head}.result": value for (layer, head), value in np.ndenumerate(heads)}
    if model.config.layers_with_mlp:
        mlps = mlp_grid(model, contrast).logit_difference.mean("pair")
        exact |= {f"L{layer}.mlp_out": float(mlps.sel(layer=layer)) for layer in mlps.layer.values}
    return np.array([exact.get(str(sender), 1.0) for sender in attributed.sender.values])


def smallest_faithful(report: xr.Dataset, least: float = 0.8) -> int | None:
    """The size of the smallest circuit that is ``least`` faithful with its whole interval, and all larger ones too."""
    low = report.faithfulness_low.sel(circuit=CHOSEN).values
    enough = np.flatnonzero(~(low >= least))
    first = 0 if len(enough) == 0 else int(enough[-1]) + 1
    return None if first == len(low) else int(report["size"].values[first])


def list_sizes(n_edges: int) -> list[int]:
    """10, 20, 40, … and all."""
    sizes = []
    size = 10
    while size < n_edges:
        sizes.append(size)
        size *= 2
    return [*sizes, n_edges]


def _untried(sizes: list[int], n_random: int, n_pairs: int) -> xr.Dataset:
    """What ``measure_faithfulness`` gives, before anything was tried."""
    circuits = [CHOSEN, *(f"{RANDOM} {index + 1}" for index in range(n_random))]
    missing = np.full((len(sizes), len(circuits), n_pairs), np.nan)
    values = {name: (("size", "circuit", "pair"), missing.copy()) for name in ("faithfulness", "kept")}
    return xr.Dataset({**values, "n_connected": ("size", np.zeros(len(sizes)))}, {"size": sizes, "circuit": circuits})


def _assemble(
    attributed: xr.Dataset, chosen: list[tuple[int, int]], exact: np.ndarray, faithful: xr.Dataset
) -> xr.Dataset:
    checked = compare_edges(attributed, chosen, exact.tolist())
    dataset = attributed[["effect_at", "part_exact", "input_effect", "input_exact"]].assign(
        attributed=("edge", np.array(checked.attributed)),
        exact=("edge", np.array(checked.exact)),
        edge_sender=("edge", [sender for sender, _ in checked.edges]),
        edge_receiver=("edge", [receiver for _, receiver in checked.edges]),
        n_connected=faithful.n_connected.astype(int),
    )
    for name in ("faithfulness", "kept"):
        mean, spread = faithful[name].mean("pair"), faithful[name].std("pair", ddof=1)
        width = Z * spread / np.sqrt(faithful[name].notnull().sum("pair").clip(1))
        dataset = dataset.assign({name: mean, f"{name}_low": mean - width, f"{name}_high": mean + width})
    about = {name: attributed.attrs[name] for name in ("method", "n_points", "n_attributed", "n_tried", "n_edges")}
    agreement = {name: getattr(checked, name) for name in AGREEMENT}
    return dataset.assign_attrs(**about, **agreement, interval="95 % of a mean over pairs")
