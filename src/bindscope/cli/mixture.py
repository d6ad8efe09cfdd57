"""``bindscope mixture``: what a checkpoint looks a question up by, layer by layer."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.mixture import Mixture
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr


@asking(Mixture)
def mixture(question: Mixture, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Tell what a checkpoint looks a question up by: a line, a name, a value, or the early lines.

    The end of one program is patched into another of the same layout, on which
    each account names another line: the source's line (positional), its name
    (lexical), its value (reflexive), or lines 1 and 2 (early). Weights of a mixture
    of these are fitted to the answers (arXiv 2510.06182; docs/mixture.md).

    Examples:
        bindscope mixture binding-plain
        bindscope mixture binding-plain --step 400 --layer 1
        bindscope mixture binding-laptop --depth 2 --out mixture.svg
        bindscope figure binding-plain mixture

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the weights as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    dataset = question.answer(opened)
    if json:
        print(json_format.dumps({**_about(dataset), "rows": list_weights(dataset)}))
    else:
        about = _about(dataset)
        print(f"{about['run']} at step {about['step']:,}: {about['n']} pairs of depth {about['depth']}, of whose base "
              f"programs {about['accuracy']:.0%} are answered correctly\n\n{format_weights(dataset)}")  # fmt: skip
    if out is not None:
        from bindscope.studies.binding.mixture.draw import draw_checkpoint

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_checkpoint(dataset))
        if not json:
            print(f"\nwritten  {path}")


def _about(dataset: xr.Dataset) -> dict[str, object]:
    known = {name: dataset.attrs[name] for name in ("run", "step", "n", "depth")}
    return {**known, "accuracy": float(dataset.accuracy)}


def list_weights(dataset: xr.Dataset) -> list[dict[str, object]]:
    """One entry for each layer and patched position."""
    rows = []
    for layer in dataset.layer.values:
        for position in dataset.position.values:
            cell = dataset.sel(layer=layer, position=position)
            weights = {
                str(account): [round(float(cell[name].sel(account=account)), 4) for name in ("weight", "weight_low", "weight_high")]
                for account in dataset.account.values
            }  # fmt: skip
            fit = {name: round(float(cell[name]), 4) for name in ("sigma", "distance", "floor")}
            rows.append({"layer": int(layer), "position": str(position), "weights": weights, **fit})
    return rows


def format_weights(dataset: xr.Dataset) -> str:
    """A row for each patched position and layer; weights with their intervals, σ where there is a positional part."""
    accounts = [str(account) for account in dataset.account.values]
    rows = []
    for position in dataset.position.values:
        for layer in dataset.layer.values:
            cell = dataset.sel(layer=layer, position=position)
            weights = [_with_interval(cell.sel(account=account)) for account in accounts]
            sigma = f"{float(cell.sigma):.2g}" if float(cell.weight_low.sel(account="positional")) > 0.01 else ""
            fit = [f"{float(cell.distance):.2f}", f"{float(cell.floor):.2f}"]
            rows.append([str(position), str(layer), *weights, sigma, *fit])
    head = ["patched", "layer", *accounts, "σ", "JS", "floor"]
    return format_table(head, rows, numbers=list(range(1, len(head))))


def _with_interval(cell: xr.Dataset) -> str:
    """``0.74 [0.69–0.79]``, or nothing but the weight where it is none."""
    weight, low, high = (float(cell[name]) for name in ("weight", "weight_low", "weight_high"))
    return f"{weight:.2f} [{low:.2f}–{high:.2f}]" if weight >= 0.005 else "0"
