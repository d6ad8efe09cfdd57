"""The trajectory of one or several runs as a single HTML file that needs nothing else: no script, no request.

>>> page = render_report("binding-laptop", dataset, config, phases, command="bindscope train binding-laptop")
>>> Path("report.html").write_text(page, encoding="utf-8")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.measures.binding.phases import PHASES, Phase, PhaseCriterion
from bindscope.studies.framework.trajectory import phases_of, transitions_of
from bindscope.studies.plots.html import Markup, document, element, flatten_settings, join, table, tiles
from bindscope.studies.plots.panels import draw_separately
from bindscope.studies.plots.style import figure_to_svg, format_share, format_step
from bindscope.tasks.vocabulary import show_symbol

THRESHOLD = 0.9  # a depth or pool counts as learned from here on


@dataclass(frozen=True)
class Prediction:
    """What a checkpoint answered, and how sure it was."""

    step: int
    answer: str
    probability: float | None = None


@dataclass(frozen=True)
class ExampleProgram:
    """A program with its true answer, what the line-1 habit would say, and what each checkpoint said."""

    text: str
    answer: str
    predictions: tuple[Prediction, ...]
    habit: str | None = None
    remark: str = ""  # "depth 3, root on line 2"


@dataclass(frozen=True)
class Section:
    """Something further to show: paragraphs, and perhaps a table of ``rows`` under ``head``."""

    title: str
    paragraphs: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """One run as a report needs it."""

    title: str
    dataset: xr.Dataset
    config: Mapping[str, Any]
    phases: Sequence[Phase]
    command: str = ""  # the exact command that made the run
    criterion: PhaseCriterion = field(default_factory=PhaseCriterion)
    examples: Sequence[ExampleProgram] = ()
    sections: Sequence[Section] = ()


def render_report(
    run_title: str,
    dataset: xr.Dataset,
    config: Mapping[str, Any],
    phases: Sequence[Phase] | None = None,
    extra_sections: Sequence[Section] = (),
    *,
    command: str = "",
    criterion: PhaseCriterion | None = None,
    examples: Sequence[ExampleProgram] = (),
) -> str:
    """The report of one run. Phases are detected with ``criterion`` when none are given."""
    criterion = PhaseCriterion() if criterion is None else criterion
    phases = phases_of(dataset, criterion) if phases is None else phases
    run = ReportedRun(run_title, dataset, config, phases, command, criterion, examples, extra_sections)
    return render_reports(run_title, [run])


def render_reports(title: str, runs: Sequence[ReportedRun]) -> str:
    """The report of several runs: a comparison first, then each by itself."""
    if not runs:
        raise BindscopeError("report: no run given; name at least one.")
    pieces: list[object] = []
    if len(runs) > 1:
        pieces += [element("h1", title), _comparison(runs)]
    pieces += [element("article", *_run_pieces(run, f"run{i}"), id=f"run{i}") for i, run in enumerate(runs, start=1)]
    footer = element("footer", "Made by Bindscope. Shares carry 95 % Wilson intervals. This file fetches nothing.")
    return document(title, *pieces, footer)


def _comparison(runs: Sequence[ReportedRun]) -> Markup:
    rows = []
    for index, run in enumerate(runs, start=1):
        starts = {phase.name: f"{phase.first_step:,}" for phase in run.phases}
        link = element("a", run.title, href=f"#run{index}")
        name, share, _ = _headline_accuracy(run.dataset)
        last = f"{int(run.dataset.step[-1]):,}"
        rows.append([link, f"{share} ({name})", starts.get("heuristic", "–"), starts.get("systematic", "–"), last])
    head = ("run", "accuracy at the end", "heuristic from step", "systematic from step", "last step")
    return element("section", table(head, rows, numbers=(2, 3, 4)))


def _run_pieces(run: ReportedRun, prefix: str) -> Iterator[Markup]:
    yield element("h1", run.title)
    yield element("p", _lead(run), class_="lead")
    yield tiles(_headline_numbers(run))
    if run.dataset.attrs["family"] == "binding":
        yield _phase_section(run)
    yield _chart_section(run, prefix)
    yield _transition_section(run)
    if run.examples:
        yield _example_section(run.examples)
    for section in run.sections:
        yield _extra_section(section)
    yield _making_section(run)


def _lead(run: ReportedRun) -> str:
    names = [phase.name for phase in run.phases]
    steps = f"{int(run.dataset.step[-1]):,} steps"
    if "systematic" in names and "heuristic" in names:
        return (
            f"Within {steps} the model went from a habit of answering with the first lines of a program to following "
            f"the chain of references to its constant."
        )
    if "systematic" in names:
        return f"Within {steps} the model learned to follow the chain of references to its constant."
    if "heuristic" in names:
        return (
            f"After {steps} the model still answers from the first lines of a program instead of following the chain."
        )
    if run.dataset.attrs["family"] == "binding":
        return f"After {steps} the model shows no lasting habit yet."
    return f"What the model could do, evaluation by evaluation, over {steps}."


def _headline_numbers(run: ReportedRun) -> Iterator[tuple[str, str, str]]:
    dataset = run.dataset
    name, share, interval = _headline_accuracy(dataset)
    yield f"accuracy at the end, {name}", share, interval
    yield "steps", f"{int(dataset.step[-1]):,}", f"{dataset.sizes['step']:,} evaluations"
    if "training_examples" in dataset:
        yield "examples seen", format_step(float(dataset.training_examples[-1])), ""
    if "seconds" in dataset:
        yield "training time", _format_seconds(float(dataset.seconds[-1])), ""
    for phase in run.phases:
        if phase.name == "heuristic":
            yield "heuristic plateau", format_share(phase.accuracy), _steps_of(phase)
    if dataset.attrs["family"] == "binding":
        lowest = float(np.nanmin(dataset.accuracy_by_depth.values[-1]))
        yield "weakest depth at the end", format_share(lowest), ""


def _headline_accuracy(dataset: xr.Dataset) -> tuple[str, str, str]:
    """The pool that matters most, its last accuracy and the interval of it."""
    pools = [str(pool) for pool in dataset.pool.values]
    pool = "test" if "test" in pools else pools[int(np.nanargmin(dataset.pool_accuracy.values[-1]))]
    last = dataset.sel(pool=pool).isel(step=-1)
    share = float(last.pool_accuracy)
    if np.isnan(share):
        return pool, "–", ""
    low, high = float(last.pool_accuracy_low), float(last.pool_accuracy_high)
    return pool, format_share(share), f"{low:.2%} – {high:.2%}"


def _phase_section(run: ReportedRun) -> Markup:
    words = run.criterion.describe()
    found = {phase.name: phase for phase in run.phases}
    rows = []
    for name in PHASES:
        phase = found.get(name)
        label = element("span", name, class_=name)
        where = (_steps_of(phase), format_share(phase.accuracy)) if phase else ("not reached", "–")
        rows.append([label, *where, words[name]])
    return element(
        "section",
        element("h2", "Phases"),
        element(
            "p",
            "Each evaluation is read by itself with the criterion below; the run is then cut, in this order, so that "
            "the fewest readings are contradicted. What lies between two phases is a transition. " + words["any"],
            class_="note",
        ),
        table(("phase", "steps", "accuracy", "criterion"), rows),
    )


def _chart_section(run: ReportedRun, prefix: str) -> Markup:
    figures = [
        element(
            "figure",
            element("figcaption", element("strong", panel.title), element("span", panel.subtitle)),
            Markup(figure_to_svg(figure, f"{prefix}-{panel.name}", f"{panel.title}: {panel.subtitle}")),
        )
        for panel, figure in draw_separately(run.dataset, run.phases)
    ]
    return element(
        "section",
        element("h2", "Trajectory"),
        element("div", *figures, class_="charts"),
        element("details", element("summary", "The numbers behind the charts"), _evaluation_table(run.dataset)),
    )


def _evaluation_table(dataset: xr.Dataset) -> Markup:
    pools = [str(pool) for pool in dataset.pool.values]
    columns = {f"accuracy, {pool}": dataset.pool_accuracy.sel(pool=pool).values for pool in pools}
    columns |= {f"loss, {pool}": dataset.pool_loss.sel(pool=pool).values for pool in pools}
    if dataset.attrs["family"] == "binding":
        columns |= {f"depth {int(d)}": dataset.accuracy_by_depth.sel(depth=d).values for d in dataset.depth.values}
        columns |= {"follows chain": dataset.follows_chain.values, "line 1 or 2": dataset.follows_early_lines.values}
    rows = [
        [f"{int(step):,}", *(_number(values[index]) for values in columns.values())]
        for index, step in enumerate(dataset.step.values)
    ]
    return table(("step", *columns), rows, numbers=range(len(columns) + 1))


def _transition_section(run: ReportedRun) -> Markup:
    dataset = run.dataset
    binding = dataset.attrs["family"] == "binding"
    accuracies = dataset.accuracy_by_depth.values[-1] if binding else dataset.pool_accuracy.values[-1]
    counts = dataset.n_by_depth.values if binding else dataset.pool_n.values
    rows = []
    for (name, step), share, n in zip(transitions_of(dataset, THRESHOLD, run.criterion).items(), accuracies, counts):
        low, high = wilson_interval(np.nan_to_num(share) * n, n)
        interval = "–" if np.isnan(share) else f"{low:.2%} – {high:.2%}"
        reached = "not reached" if step is None else f"{step:,}"
        rows.append([name, reached, _number(share), interval, f"{int(n):,}"])
    what = "depth" if binding else "pool"
    return element(
        "section",
        element("h2", "When each hop was learned" if binding else "When each pool was learned"),
        element(
            "p",
            f"The step at which accuracy first reached {THRESHOLD:.0%} and stayed: at {run.criterion.persist} "
            f"evaluations running, and at {run.criterion.consistency:.0%} of all later ones.",
            class_="note",
        ),
        table(
            (what, "learned at step", "accuracy at the end", "95 % interval", "examples"), rows, numbers=(1, 2, 3, 4)
        ),
    )


def _example_section(examples: Sequence[ExampleProgram]) -> Markup:
    legend = (
        "What each checkpoint answers: ",
        element("span", "✓ the right answer", class_="systematic"),
        ", ",
        element("span", "L1 the constant of line 1", class_="heuristic"),
        ", or something else.",
    )
    cards = [_example_card(example) for example in examples]
    return element(
        "section",
        element("h2", "A few programs through training"),
        element("p", *legend, class_="note"),
        element("div", *cards, class_="programs"),
    )


def _example_card(example: ExampleProgram) -> Markup:
    answers = [_example_answer(example, prediction) for prediction in example.predictions]
    remark = [element("p", example.remark, class_="note")] if example.remark else []
    return element(
        "div",
        element("pre", example.text),
        element("p", "answer ", element("strong", example.answer)),
        *remark,
        element("ul", *answers, class_="answers"),
        class_="program",
    )


def _example_answer(example: ExampleProgram, prediction: Prediction) -> Markup:
    kind, mark, words = ("neither", "", "neither")
    if prediction.answer == example.answer:
        kind, mark, words = ("chain", "✓", "right")
    elif prediction.answer == example.habit:
        kind, mark, words = ("habit", "L1", "line 1")
    sure = "" if prediction.probability is None else f", probability {prediction.probability:.2f}"
    return element(
        "li",
        element("b", show_symbol(prediction.answer)),
        element("small", f"{format_step(prediction.step)} {mark}".rstrip()),
        class_=kind,
        title=f"step {prediction.step:,}: {show_symbol(prediction.answer)} ({words}){sure}",
    )


def _extra_section(section: Section) -> Markup:
    rows = [table(section.head, section.rows)] if section.rows else []
    return element("section", element("h2", section.title), *(element("p", p) for p in section.paragraphs), *rows)


def _making_section(run: ReportedRun) -> Markup:
    pieces = [element("h2", "How it was made")]
    if run.command:
        pieces.append(element("pre", element("code", run.command)))
    settings = list(flatten_settings(run.config))
    if settings:
        rows = [[element("code", key), element("code", value)] for key, value in settings]
        summary = element("summary", f"All {len(settings)} settings")
        pieces.append(element("details", summary, table(("setting", "value"), rows)))
    return element("section", join(pieces))


def _steps_of(phase: Phase) -> str:
    first, last = f"{phase.first_step:,}", f"{phase.last_step:,}"
    return first if first == last else f"{first} – {last}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"


def _format_seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
