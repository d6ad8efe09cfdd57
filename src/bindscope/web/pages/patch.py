"""Patching: grids of one pair as they are made, and chosen positions of it together, at one checkpoint or over all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bindscope.questions.edges import Edges
from bindscope.questions.moves import Moves
from bindscope.questions.patch import LARGE, Patch
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.grid_series import GRID_SERIES
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.programs import KINDS

if TYPE_CHECKING:
    import xarray as xr

MOST_EDGES = 200  # that are drawn or listed; those patched exactly are sent besides
DECIMALS = 4  # of a mean: enough to draw and to read
OF_A_PAIR = ("program", "counterfactual", "direction", "source_step")


def stream_grid(lab: Lab, run: LabRun, question: Patch) -> Iterator[dict[str, Any]]:
    """First a body whose values are all missing, then its parts; see ``measures.binding.patching_live``."""
    at = opened(run)
    title = {"residual": "The residual stream, position by position", "heads": "Heads", "mlps": "MLPs"}[
        question.grid or "residual"
    ]
    about = {"step": question.steps, "n": 1, "note": question.note}
    yield answer_body(question, question.empty(at), title, run=run, **about)
    n_cores = count_cores(run)
    use_threads(n_cores)
    for part in question.parts(at, n_workers=n_cores):
        yield {"at": part.at, "variables": part.values}


def patch(lab: Lab, run: LabRun, question: Patch) -> dict[str, Any]:
    """Distributions of the base, the source and the patched run over (step, condition, output), and every metric (step)."""
    dataset = question.distributions(opened(run))
    step = question.steps if isinstance(question.steps, int) else None
    return answer_body(question, dataset, "What the answer becomes", run=run, step=step, n=1, note=question.note)


def stream_edges(lab: Lab, run: LabRun, question: Edges) -> Iterator[dict[str, Any]]:
    """First the attributed edges, then exact patches and circuits as they are made, with what they say in a sentence each."""
    use_threads(count_cores(run))
    for index, report in enumerate(question.parts(opened(run))):
        dataset = lay_out_edges(report)
        if index:
            growing = {name: dataset[name].values.ravel().tolist() for name in dataset.data_vars}
            yield {"at": 0, "variables": growing}
            continue
        about = {"step": question.step, "n": question.n, "seed": question.seed, "interval": report.attrs["interval"]}
        yield answer_body(question, dataset, "A circuit of edges", run=run, note=report.attrs["pairs"], **about)


def lay_out_edges(report: xr.Dataset) -> xr.Dataset:
    """Edges, parts and circuits of a report as the page draws them."""
    import xarray as xr

    from bindscope.interventions.edge_reading import (
        tabulate_circuits,
        tabulate_edges,
        tabulate_parts,
        tell_circuit,
        tell_error,
    )

    tables = [tabulate_edges(report, most=MOST_EDGES), tabulate_parts(report), tabulate_circuits(report)]
    told = {"finding": ((), tell_circuit(report)), "error": ((), tell_error(report))}
    numbers = xr.merge(tables, combine_attrs="drop").round(DECIMALS)
    return numbers.assign(told).assign_attrs(report.attrs, n_checked=report.sizes["edge"])


def stream_moves(lab: Lab, run: LabRun, question: Moves) -> Iterator[dict[str, Any]]:
    """Effects of heads at positions of the chain, first missing, then as they are measured; see ``measures.binding.moves``."""
    use_threads(count_cores(run))
    for index, dataset in enumerate(question.parts(opened(run))):
        rounded = dataset.round(DECIMALS)
        rounded.attrs = {"pointers": dataset.attrs.get("pointers", "")}  # what each pointer's other program is
        if not index:
            about = {
                "step": question.step,
                "n": dataset.attrs["n_pairs"],
                "interval": dataset.attrs.get("interval", ""),
            }
            seed = question.seed if question.program is None else None
            yield answer_body(
                question, rounded, "What moves where", run=run, seed=seed, note=dataset.attrs["pairs"], **about
            )
        yield {"at": 0, "variables": {name: rounded[name].values.ravel().tolist() for name in rounded.data_vars}}


def count_cores(run: LabRun) -> int:
    """How many cores an answer is computed with: the work on a small model is too little to share."""
    return os.cpu_count() or 1 if run.run.config.model.n_parameters >= LARGE else 1


def use_threads(n_threads: int) -> None:
    """How many threads the worker's products are computed with."""
    import torch

    torch.set_num_threads(n_threads)


def chain_grid(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Means over pairs of patching the residual stream at the positions of the chain: (step, direction, layer, position)."""
    return _mean_grid(run, "chain", "chain", "The residual stream at the positions of the chain, mean over pairs")


def head_grid(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Means over pairs of patching each head's whole output: (step, direction, layer, head)."""
    return _mean_grid(run, "head", "heads", "Heads, mean over pairs")


def depth_grid(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The same apart by depth, at one checkpoint (what VB3 is judged on): (depth, layer, position)."""
    kept = kept_result(run, "chain")
    n, seed, step = int(kept.attrs["n"]), int(kept.attrs.get("asked_seed", 0)), int(kept.attrs["step"])
    dataset = kept.drop_attrs(deep=False).round(DECIMALS)
    return to_body(
        dataset.assign(n=kept.n.max("layer") if "layer" in kept.n.dims else kept.n),
        Provenance(
            run=run.name, step=step, n=n, seed=seed, interval=str(kept.attrs["interval"]),
            note=f"pairs of all depths together; left out: {kept.attrs['excluded']}, where shortcut and mechanism agree",
        ),
        title="The residual stream at the positions of the chain, by depth",
        command=in_shell(run, "figure", "VB3"),
        python=in_python(run, 'run.result("chain")'),
    )  # fmt: skip


def _mean_grid(run: LabRun, prefix: str, grid: str, title: str) -> dict[str, Any]:
    kept = kept_result(run, "grids")
    names = [str(name) for name in kept.data_vars if str(name).startswith(f"{prefix}_")]
    wanted = [*names, "already", "accuracy", *(["n"] if grid == "chain" else [])]
    dataset = kept[wanted].rename({name: name.removeprefix(f"{prefix}_") for name in names}).round(DECIMALS)
    n, seed = int(kept.attrs["n"]), int(kept.attrs.get("asked_seed", 0))
    return to_body(
        dataset,
        Provenance(
            run=run.name, n=n, seed=seed, interval=str(kept.attrs["interval"]),
            note=f"left out: {kept.attrs['excluded']}, where shortcut and mechanism agree",
        ),
        title=title,
        command=in_shell(run, "patch", grid=grid, steps="all", n=n, seed=seed),
        python=in_python(run, 'run.result("grids")'),
    )  # fmt: skip


def algorithm(lab: Lab, run: LabRun) -> dict[str, Any]:
    """By which algorithm chains are followed: arrows, hops and names by depth, at every tracked checkpoint."""
    from bindscope.measures.binding.algorithm.reading import read_algorithm
    from bindscope.measures.binding.algorithm.tables import tabulate_readings

    kept, last = kept_result(run, "algorithm_steps"), kept_result(run, "algorithm")
    readings = {int(step): read_algorithm(kept.sel(step=step)) for step in kept.step.values}
    readings[int(last.attrs["step"])] = read_algorithm(last)  # of more pairs
    n, more, seed = int(kept.attrs["n_drawn"]), int(last.attrs["n_drawn"]), int(last.attrs.get("asked_seed", 0))
    return to_body(
        tabulate_readings(readings).assign_attrs(n_layers=last.sizes["layer"] - 1),
        Provenance(
            run=run.name, n=more, seed=seed, interval=str(last.attrs["interval"]),
            note=f"pairs for each depth and reference, {n} before the last checkpoint; left out: {last.attrs['excluded']}",
        ),
        title="How a chain is followed",
        command=in_shell(run, "algorithm", n=more, seed=seed),
        python=in_python(run, 'run.result("algorithm")'),
    )  # fmt: skip


PAGE = Page(
    "patch",
    resources=(
        Resource(
            "runs/{run}/grid-chain.json", chain_grid, "Mean patch grid of the positions of the chain", kinds=KINDS
        ),
        Resource(
            "runs/{run}/grid-depths.json", depth_grid, "Patch grid of the chain's positions by depth", kinds=KINDS
        ),
        Resource("runs/{run}/algorithm.json", algorithm, "By which algorithm chains are followed", kinds=KINDS),
        Resource("runs/{run}/grid-heads.json", head_grid, "Mean patch grid of the heads", kinds=KINDS),
        *GRID_SERIES,
    ),
    operations=(
        Operation(
            "grid",
            Patch,
            stream_grid,
            "A patch grid of one pair, streamed",
            (*OF_A_PAIR, "step", "grid"),
            streamed=True,
        ),
        Operation(
            "edges",
            Edges,
            stream_edges,
            "Edges between parts and circuits of the strongest, streamed",
            ("step", "depth", "n", "points", "checked", "estimate", "random", "seed"),
            streamed=True,
        ),
        Operation(
            "moves",
            Moves,
            stream_moves,
            "Which heads move the value or a pointer in one pair, streamed",
            (*OF_A_PAIR[:3], "step"),
            streamed=True,
        ),
        Operation(
            "meanmoves",
            Moves,
            stream_moves,
            "Which heads move the value or a pointer, on the mean over drawn pairs of one depth, streamed",
            ("step", "n", "depth", "seed"),
            streamed=True,
        ),
        Operation("patch", Patch, patch, "Sites of one pair, patched together", (*OF_A_PAIR, "steps", "sites")),
    ),
)
