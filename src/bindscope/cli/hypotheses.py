"""``bindscope hypotheses``: which of two causal models a checkpoint agrees with."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.hypotheses import Hypotheses
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr


@asking(Hypotheses)
def hypotheses(question: Hypotheses, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Tell which of two hypotheses a checkpoint agrees with, by patches at which they predict different answers.

    A hypothesis is a small causal model: variables, their parents, and the position
    at which each should live. Pairs of programs are drawn on which exchanging a
    variable should give different answers by the two; then the residual stream is
    patched there, layer by layer. Controls: another position, the positions
    shuffled among the variables, and an untrained model.

    Examples:
        bindscope hypotheses binding-deep
        bindscope hypotheses binding-laptop --first early-line --step 900
        bindscope hypotheses binding-laptop --second examples/hypotheses.py:last_line

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the scores as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("depths") as on_progress:
        dataset = question.answer(opened, on_progress)
    if json:
        about = {"run": opened.name, "step": dataset.attrs["step"], "scores": list_scores(dataset)}
        print(json_format.dumps({**about, "sites": list_sites(dataset)}))
    else:
        print(f"{opened.name} at step {dataset.attrs['step']:,}; fractions of patched answers\n")
        print(format_scores(dataset), format_sites(dataset), sep="\n\n")
    if out is not None:
        from bindscope.studies.binding.algorithm.draw_hypotheses import draw_hypotheses

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_hypotheses(dataset))
        if not json:
            print(f"\nwritten  {path}")


def list_scores(dataset: xr.Dataset) -> dict[str, dict[str, float | None]]:
    """hypothesis → condition → score; None where it has none."""
    return {
        str(name): {
            str(condition): _number(dataset.score.sel(hypothesis=name, condition=condition))
            for condition in dataset.condition.values
        }
        for name in dataset.hypothesis.values
    }


def list_sites(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Every site with its best layer, what follows its hypothesis there, what follows the rival, and each control."""
    found = []
    for index in range(dataset.sizes["site"]):
        site = dataset.isel(site=index)
        best = site.sel(layer=int(site.best_layer), condition="model")
        found.append(
            {
                "hypothesis": str(site.site_hypothesis.item()),
                "depth": int(site.site_depth),
                "variable": str(site.site_variable.item()),
                "position": str(site.site_position.item()),
                "layer": int(site.best_layer),
                "followed": [_number(best[f"followed{end}"]) for end in ("", "_low", "_high")],
                "rival": _number(best.rival),
                "held_out": _number(site.held_out.sel(condition="model")),
                "controls": {
                    str(each): _number(site.held_out.sel(condition=each)) for each in dataset.condition.values[1:]
                },
                "n": int(site.n),
            }
        )
    return found


def format_scores(dataset: xr.Dataset) -> str:
    """One row a hypothesis: its score on the model and under each control."""
    conditions = [str(each) for each in dataset.condition.values]
    rows = [
        [name, *(_show(scores[condition]) for condition in conditions)] for name, scores in list_scores(dataset).items()
    ]
    return format_table(["hypothesis", *conditions], rows, numbers=range(1, 1 + len(conditions)))


def format_sites(dataset: xr.Dataset) -> str:
    """One row a variable and depth."""
    rows = []
    for site in list_sites(dataset):
        value, low, high = site["followed"]
        interval = f"{_show(value)} [{_show(low)}–{_show(high)}]"
        where = [site["hypothesis"], str(site["depth"]), site["variable"], site["position"], f"L{site['layer']}"]
        rows.append([*where, interval, _show(site["rival"]), *map(_show, site["controls"].values()), str(site["n"])])
    controls = [str(each) for each in dataset.condition.values[1:]]
    head = ["hypothesis", "depth", "variable", "position", "best layer", "followed", "rival", *controls, "n"]
    return format_table(head, rows, numbers=[1, *range(6, len(head))])


def _number(value: Any) -> float | None:
    number = float(value)
    return None if number != number else round(number, 4)


def _show(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"
