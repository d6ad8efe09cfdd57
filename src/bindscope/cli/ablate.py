"""``bindscope ablate``: take parts away and see which answers fall."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from bindscope.cli.asking import asking
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import check_out, figure_or_none, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.opened import Opened
from bindscope.questions.program import Ablate

LIKELIEST = 5  # outputs of a typed program that are printed


@asking(Ablate, kind="mean")
def ablate(question: Ablate, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Ablate heads or MLPs, or knock attention edges out, see which answers fall.

    Accuracy by depth with 95 % Wilson intervals, or the answer to one typed
    program before and after. A head's output includes its identity-scaling term where
    the model has one.

    Examples:
        bindscope ablate binding-laptop
        bindscope ablate binding-laptop --of mlps --kind zero
        bindscope ablate binding-laptop --of L1.H2 --of "L2.H0@rhs 2" --kind resample
        bindscope ablate binding-laptop --cut "colon>query" --layer 4
        bindscope ablate binding-plain --cut "rhs 2>rhs 1" --cut "query>rhs 2"
        bindscope ablate binding-laptop "a=5;b=a;c=3;#b:" --of L2.H1 --kind zero

    Parameters
    ----------
    out
        Also write a figure (.svg, .pdf, .png) or the numbers program by program (.nc).
    json
        Print the accuracies as JSON instead of a table.
    """
    from bindscope.interventions.answers import accuracy_by

    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("programs") as on_progress:
        dataset = question.answer(opened, on_progress)
    title = f"{opened.name} at step {opened.find_step(question.step):,}, {_what(question)}"
    if question.program is not None:
        print(json_format.dumps(dataset_to_mapping(dataset)) if json else f"{title}\n\n{format_answers(dataset)}")
        figure = None if out is None else figure_or_none(out, _likeliest(dataset), "probability", title)
    else:
        accuracy = accuracy_by(dataset, "depth")
        note = f"{title}\n{dataset.attrs['programs']}\n\naccuracy by depth, with 95 % Wilson intervals"
        rows = {**dataset.attrs, "rows": _to_json(accuracy)} if json else {}
        print(json_format.dumps(rows) if json else f"{note}\n{format_accuracy(accuracy)}")
        figure = None if out is None else figure_or_none(out, _for_figure(accuracy), "accuracy", title)
    if out is not None:
        path = write_out(dataset, out, figure)
        if not json:
            print(f"\nwritten  {path}")


def format_answers(dataset: Any) -> str:
    """The likeliest outputs to a typed program, before and after."""
    likely = _likeliest(dataset)
    rows = [
        [str(output), *(f"{fraction:.3f}" for fraction in likely.probability.sel(output=output).values)]
        for output in likely.output.values
    ]
    return f"true answer: {dataset.attrs['answer']}\n" + format_table(["output", "before", "after"], rows, [1, 2])


def format_accuracy(accuracy: Any) -> str:
    """One row unchanged, then one for each part taken away; one column a depth."""
    rows = [[name, *(_fraction(*cell) for cell in cells)] for name, cells in _rows(accuracy)]
    return format_table(["", *(f"depth {int(d)}, n {int(k)}" for d, k in zip(accuracy.depth, accuracy.base_n))], rows)


def _rows(accuracy: Any) -> list[tuple[str, list[tuple[float, float, float]]]]:
    """Names with (accuracy, low, high) for each depth."""
    import numpy as np

    def cells(prefix: str, index: dict[str, Any]) -> list[tuple[float, float, float]]:
        columns = (accuracy[f"{prefix}accuracy{suffix}"].sel(index).values for suffix in ("", "_low", "_high"))
        return [tuple(map(float, cell)) for cell in zip(*columns)]  # type: ignore[misc]

    rows = [("unchanged", cells("base_", {}))]
    dims = accuracy.accuracy.dims[:-1]
    for index in np.ndindex(*(accuracy.sizes[dim] for dim in dims)):
        part = {dim: accuracy[dim].values[at] for dim, at in zip(dims, index)}
        rows.append((_name(part), cells("", part)))
    return rows


def _name(part: dict[str, Any]) -> str:
    if not part:
        return "changed"
    return f"L{part['layer']}.H{part['head']}" if "head" in part else f"L{part['layer']}.mlp_out"


def _fraction(fraction: float, low: float, high: float) -> str:
    return "–" if fraction != fraction else f"{fraction:.3f}  {low:.3f}–{high:.3f}"


def _what(question: Ablate) -> str:
    sites, cut, layer, head = question.sites, question.cut, question.layer, question.head
    if cut:
        where = [f"layer {layer}"] * (layer is not None) + [f"head {head}"] * (head is not None)
        return f"without {', '.join(cut)} in {' '.join(where) or 'all layers'}"
    if question.program is not None:
        return question.note or "with nothing ablated"
    parts = {(): "each head", ("heads",): "each head", ("mlps",): "each MLP"}.get(sites, " + ".join(sites))
    return f"{parts} replaced by {dict(mean='its mean', zero='zero', resample='another program')[question.kind]}"


def _likeliest(dataset: Any) -> Any:
    return dataset.isel(output=dataset.probability.max("condition").values.argsort()[::-1][:LIKELIEST])


def _for_figure(accuracy: Any) -> Any:
    """Parts as rows, depths as columns."""
    if "head" not in accuracy.dims:
        return accuracy
    flat = accuracy[["accuracy", "accuracy_low", "accuracy_high"]].stack(part=("layer", "head"))
    names = [f"L{layer}.H{head}" for layer, head in flat.part.values]
    return flat.drop_vars(("part", "layer", "head")).assign_coords(part=names).transpose("part", "depth")


def _to_json(accuracy: Any) -> list[dict[str, Any]]:
    depths = [int(depth) for depth in accuracy.depth.values]
    return [
        {"part": name, "depth": depth, "accuracy": fraction, "low": low, "high": high}
        for name, cells in _rows(accuracy)
        for depth, (fraction, low, high) in zip(depths, cells)
        if fraction == fraction
    ]
