"""``bindscope patch``: put activations of one program into another and see whether the answer follows."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from bindscope.cli.asking import asking
from bindscope.cli.effects import format_summary, summarise, summary_to_json
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import check_out, figure_or_none, show_progress, write_out
from bindscope.cli.table import fill_lines
from bindscope.questions.findings import check_patch, save_patch
from bindscope.questions.opened import Opened
from bindscope.questions.patch import Patch


@asking(Patch, grid="chain")
def patch(
    question: Patch, /, *, place: Place = HERE, save: Path | None = None, out: Path | None = None, json: Flag = False
) -> None:
    """Patch activations of one program into another, see whether the answer follows.

    Without two programs, pairs that differ in the constant at the root of the
    queried chain are drawn. Means come with 95 % bootstrap intervals.

    Examples:
        bindscope patch binding-laptop
        bindscope patch binding-laptop "c=1;d=2;a=5;b=a;#b:" "c=1;d=2;a=8;b=a;#b:"
        bindscope patch binding-laptop --grid heads --depth 3 --out heads.svg
        bindscope patch binding-laptop --site "L2.H1@rhs 2" --site L3.mlp_out --steps all
        bindscope patch binding-plain --grid heads --approximate
        bindscope patch binding-deep --grid residual --tolerance 0.001
        bindscope patch binding-laptop --metric examples/metrics.py:source_probability

    Parameters
    ----------
    save
        Also save the intervention at --site with its mean effect, for 'bindscope apply'.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers pair by pair (.nc).
    json
        Print the means as JSON instead of tables.
    """
    check_out(out)
    if save is not None:
        check_patch(question, save)
    opened = Opened.at(question.run, place)
    with show_progress("checkpoints") as on_progress:
        dataset = question.answer(opened, on_progress)
    if save is not None:
        save_patch(save, opened, question, question.command())
    shown, summary = question.shown, summarise(dataset, question.seed)
    title = f"{opened.name}, {_what(question)} at {_steps_in_words(dataset.step.values.tolist())}"
    if json:
        print(json_format.dumps(summary_to_json(summary, shown, dataset.attrs)))
    else:
        notes = [f"{title}; {question.direction}", dataset.attrs["pairs"], *_remarks(dataset.attrs)]
        print(fill_lines("\n".join(notes)) + "\n\n" + format_summary(summary, shown))
        if question.approximate:
            print(f"\n{_agreement(question, opened, dataset, shown)}")
    if out is not None:
        path = write_out(dataset, out, figure_or_none(out, summary, shown, title))
        if not json:
            print(f"\nwritten  {path}")
    if save is not None and not json:
        print(f"\nsaved    {save}")


def _agreement(question: Patch, opened: Opened, dataset: Any, metric: str) -> str:
    found = question.compare(opened, dataset, metric)
    return (
        f"against the exact grid over {found.n_cells} cells: correlation {found.correlation:.3f}, "
        f"mean absolute error {found.mean_absolute_error:.3f}, same sign {found.sign_agreement:.0%}, "
        f"{found.top_overlap:.0%} of the {found.top} strongest"
    )


def _what(question: Patch) -> str:
    if question.sites:
        neurons = f" (coordinates {', '.join(map(str, question.neurons))})" if question.neurons else ""
        return " + ".join(question.sites) + neurons
    words = {
        "chain": "the residual stream at the chain's named positions",
        "residual": "the residual stream",
        "heads": "heads",
        "mlps": "MLPs",
    }
    return words[question.grid or "residual"] + (" by attribution" if question.approximate else "")


def _steps_in_words(steps: list[int]) -> str:
    return f"step {steps[0]:,}" if len(steps) == 1 else f"{len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"


def _remarks(attrs: dict[str, Any]) -> list[str]:
    remarks = []
    if "source_step" in attrs:
        remarks.append(f"activations taken from step {attrs['source_step']:,}")
    if "tolerance" in attrs:
        errors = {name.removeprefix("error_of_"): attrs[name] for name in attrs if name.startswith("error_of_")}
        largest = ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
        remarks.append(
            f"tolerance {attrs['tolerance']:g} logits; largest error over a sample of {attrs['n_checked']} cells: {largest}; "
            "other cells can be further off"
        )
    identity = str(attrs.get("remark", attrs.get("heads", "")))
    if "identity-scaling term" in identity and "no identity" not in identity and "follows" not in identity:
        remarks.append(identity)
    return remarks
