"""``bindscope edges``: which edges carry the answer, how well that is known, and how small a circuit still answers."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.edges import Edges
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr

N_SHOWN = 12
FAITHFUL = 0.8


@asking(Edges)
def edges(question: Edges, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Attribute the answer to every edge between parts, check it by exact patches, and try circuits of edges.

    An edge goes from the embedding, a head or an MLP to one input of a later
    head, an MLP or the logits. Gradients give all edges at once, approximately;
    some are patched exactly, and the error is printed. Circuits of the strongest
    edges are then run with every other edge taken from the counterfactual, beside
    random circuits with as many edges into each part.

    Examples:
        bindscope edges binding-plain --depth 2
        bindscope edges binding-neutral --depth 3 --points 16 --out edges.svg
        bindscope edges binding-plain --step 600 --json

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
    dataset = question.answer(opened)
    if json:
        print(json_format.dumps(to_mapping(dataset)))
    else:
        print(format_edges(dataset))
    if out is not None:
        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_edges(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_edges(dataset: xr.Dataset) -> str:
    """The strongest edges with their exact effects, the error of the attribution, and circuits by size."""
    from bindscope.interventions.edge_report import smallest_faithful

    about = dataset.attrs
    size = smallest_faithful(dataset, FAITHFUL)
    found = f"{size} edges are" if size else "no circuit is"
    return "\n".join(
        [
            f"{about['run']} at step {about['step']:,}; {about['pairs']}",
            "",
            _format_strongest(dataset),
            "",
            f"against exact patches of {dataset.sizes['edge']} edges: correlation {about['correlation']:.3f}, mean error "
            f"{about['mean_absolute_error']:.4f}, largest {about['largest_error']:.4f}, sign right {about['sign_agreement']:.0%}",
            "",
            _format_circuits(dataset),
            "",
            f"{found} {FAITHFUL:.0%} faithful, the lower end of the interval, on {about['n_tried']} other pairs",
        ]
    )


def to_mapping(dataset: xr.Dataset) -> dict[str, Any]:
    """The report as plain values."""
    from bindscope.interventions.edges import ANYWHERE

    means = dataset.effect_at.sel(position=ANYWHERE)
    known = [
        {"sender": str(sender), "receiver": str(receiver), "effect": float(means.sel(sender=sender, receiver=receiver))}
        for sender in means.sender.values
        for receiver in means.receiver.values
        if bool(means.sel(sender=sender, receiver=receiver).notnull())
    ]
    checked = {name: dataset[name].values.tolist() for name in ("edge_sender", "edge_receiver", "attributed", "exact")}
    circuits = {name: dataset[name].transpose("size", "circuit").values.tolist() for name in ("faithfulness", "kept")}
    labels = {"size": dataset["size"].values.tolist(), "circuit": dataset.circuit.values.tolist()}
    return {**dataset.attrs, "edges": known, "checked": checked, "circuits": {**labels, **circuits}}


def _format_strongest(dataset: xr.Dataset) -> str:
    from bindscope.interventions.edges import ANYWHERE

    strongest = []
    for index in range(dataset.sizes["edge"]):
        one = dataset.isel(edge=index)
        at = dataset.effect_at.sel(sender=str(one.edge_sender.values), receiver=str(one.edge_receiver.values))
        named = at.drop_sel(position=ANYWHERE)
        where = str(named.position.values[abs(named).fillna(0).values.argmax()]) if named.size else ""
        ends = (str(one.edge_sender.values).removesuffix(".result"), str(one.edge_receiver.values))
        strongest.append([*ends, where, f"{float(one.attributed):.3f}", f"{float(one.exact):.3f}"])
    rows = sorted(strongest, key=lambda row: -abs(float(row[4])))[:N_SHOWN]
    return format_table(["from", "to", "mostly at", "attributed", "exact"], rows, numbers=[3, 4])


def _format_circuits(dataset: xr.Dataset) -> str:
    from bindscope.interventions.edge_circuit import CHOSEN

    rows = []
    for size in dataset["size"].values:
        one, others = dataset.sel(size=size, circuit=CHOSEN), dataset.sel(size=size).drop_sel(circuit=CHOSEN)
        rows.append(
            [
                f"{size:,}",
                f"{float(one.faithfulness):.2f} [{float(one.faithfulness_low):.2f} to {float(one.faithfulness_high):.2f}]",
                f"{float(one.kept):.0%}",
                f"{float(others.faithfulness.min()):.2f} to {float(others.faithfulness.max()):.2f}",
                f"{float(others.kept.max()):.0%}",
            ]
        )
    headings = ["edges", "faithful", "answers kept", "random circuits: faithful", "kept at most"]
    return format_table(headings, rows, numbers=[0, 1, 2, 3, 4])
