"""``bindscope edges``: which edges carry the answer, how well that is known, and how small a circuit still answers."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.edges import Edges
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr

N_SHOWN = 12


@asking(Edges)
def edges(question: Edges, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Attribute the answer to every edge between parts, check it by exact patches, and try circuits of edges.

    An edge goes from the embedding, a head or an MLP to one input of a later
    head, an MLP or the logits. Gradients give all edges at once, approximately;
    some are patched exactly, and the error is printed. Circuits of the strongest
    edges are then run with every other edge taken from the counterfactual, beside
    random circuits with as many edges into each part. --method corrects gradients
    where softmax is saturated or effects cancel (AtP*, arXiv 2403.00745).

    Examples:
        bindscope edges binding-plain --depth 2
        bindscope edges binding-neutral --depth 3 --points 16 --out edges.svg
        bindscope edges binding-plain --points 1 --method atp-star
        bindscope edges binding-plain --step 600 --json
        bindscope figure binding-plain edges

    Parameters
    ----------
    out
        Also write a diagram of the strongest edges (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print edges, errors and circuits as JSON instead of tables.
    """
    from bindscope.studies.plots.edges import draw_edges

    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("patches") as on_progress:
        dataset = question.answer(opened, on_progress)
    if json:
        print(json_format.dumps(to_mapping(dataset)))
    else:
        print(format_edges(dataset))
    if out is not None:
        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_edges(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_edges(dataset: xr.Dataset) -> str:
    """What was found, the strongest edges with their exact effects, the error of the attribution, and circuits by size."""
    from bindscope.interventions.edge_reading import tell_circuit, tell_error

    about = dataset.attrs
    return "\n".join(
        [
            f"{about['run']} at step {about['step']:,}; {about['pairs']}",
            "",
            tell_circuit(dataset),
            tell_error(dataset),
            "",
            _format_strongest(dataset),
            "",
            _format_circuits(dataset),
            "",
            f"Circuits were tried on {about['n_tried']} other pairs. Faithful: 80 % or more with the whole interval.",
        ]
    )


def to_mapping(dataset: xr.Dataset) -> dict[str, Any]:
    """The report as plain values."""
    from bindscope.interventions.edge_reading import tabulate_edges, tabulate_parts, tell_circuit, tell_error

    edges, parts = tabulate_edges(dataset), tabulate_parts(dataset)
    known = [
        {name: one[name].item() for name in ("sender", "receiver", "effect")}
        for one in (edges.isel(edge=index) for index in range(edges.sizes["edge"]))
    ]
    nodes = {name: parts[name].values.tolist() for name in ("part", "part_effect", "part_exact")}
    checked = {name: dataset[name].values.tolist() for name in ("edge_sender", "edge_receiver", "attributed", "exact")}
    circuits = {name: dataset[name].transpose("size", "circuit").values.tolist() for name in ("faithfulness", "kept")}
    labels = {"size": dataset["size"].values.tolist(), "circuit": dataset.circuit.values.tolist()}
    told = {"finding": tell_circuit(dataset), "error": tell_error(dataset)}
    return {
        **dataset.attrs, **told, "edges": known, "parts": nodes, "checked": checked, "circuits": {**labels, **circuits},
    }  # fmt: skip


def _format_strongest(dataset: xr.Dataset) -> str:
    from bindscope.interventions.edge_reading import tabulate_edges

    table = tabulate_edges(dataset, most=0)
    rows = [
        [str(one.sender.item()), str(one.receiver.item()), str(one["at"].item()), f"{float(one.effect):.3f}", f"{float(one.exact):.3f}"]
        for one in (table.isel(edge=index) for index in range(table.sizes["edge"]))
    ]  # fmt: skip
    shown = sorted(rows, key=lambda row: -abs(float(row[4])))[:N_SHOWN]
    return format_table(["from", "to", "mostly at", "attributed", "exact"], shown, numbers=[3, 4])


def _format_circuits(dataset: xr.Dataset) -> str:
    from bindscope.interventions.edge_reading import tabulate_circuits

    table, rows = tabulate_circuits(dataset), []
    for size in table["size"].values:
        one = table.sel(size=size)
        rows.append(
            [
                f"{size:,}",
                f"{float(one.faithfulness):.2f} [{float(one.faithfulness_low):.2f} to {float(one.faithfulness_high):.2f}]",
                f"{float(one.kept):.0%}",
                f"{float(one.random_least):.2f} to {float(one.random_most):.2f}",
                f"{float(one.random_kept):.0%}",
            ]
        )
    headings = ["edges", "faithful", "answers kept", "random circuits: faithful", "kept at most"]
    return format_table(headings, rows, numbers=[0, 1, 2, 3, 4])
