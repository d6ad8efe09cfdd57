"""The trajectory of one or several runs as a single HTML file that needs nothing else: no script, no request.

>>> run = ReportedRun("binding-laptop", dataset, config, phases, command="bindscope train binding-laptop")
>>> page = render_reports("binding-laptop", [run])
>>> Path("report.html").write_text(page, encoding="utf-8")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.families import Family
from bindscope.intervals import wilson_interval
from bindscope.measures.phases import Lasting, Phase
from bindscope.studies.framework.trajectory import family_of_dataset, learned_parts, transitions_of
from bindscope.studies.plots.html import Markup, document, element, join, list_settings, table, tiles
from bindscope.studies.plots.panels import draw_separately
from bindscope.studies.plots.style import figure_to_svg, format_fraction, format_step
from bindscope.tasks.vocabulary import show_symbol

THRESHOLD = 0.9  # a depth or split counts as learned from here on
N_CHECKPOINTS = 8  # whose answers to an example are shown


@dataclass(frozen=True)
class Prediction:
    """What a checkpoint answered, and how sure it was."""

    step: int
    answer: str
    probability: float | None = None


@dataclass(frozen=True)
class ExampleProgram:
    """A program with its true answer, what the line-1 heuristic would say, and what each checkpoint said."""

    text: str
    answer: str
    predictions: tuple[Prediction, ...]
    heuristic: str | None = None
    remark: str = ""  # "depth 3, root on line 2"


@dataclass(frozen=True, eq=False)
class Highlights:
    """What a family says of a run beyond its splits."""

    lead: str = ""  # the story in a sentence
    numbers: tuple[tuple[str, str, str], ...] = ()  # (label, number, remark) after those that every run has
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)  # of the table of evaluations, each [step]


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
    criterion: Any = None  # of the phases; the family's own when left out
    examples: Sequence[ExampleProgram] = ()
    sections: Sequence[Section] = ()

    @property
    def family(self) -> Family:
        return family_of_dataset(self.dataset)

    @cached_property
    def highlights(self) -> Highlights:
        return self.family.describe_run(self.dataset, self.phases) or Highlights()

    @property
    def lasting(self) -> Any:
        """How long something must hold: part of the criterion."""
        return Lasting() if self.criterion is None else self.criterion


def render_reports(title: str, runs: Sequence[ReportedRun]) -> str:
    """The report of several runs: a comparison first, then each by itself."""
    if not runs:
        raise BindscopeError("report: no run given; name at least one.")
    pieces: list[object] = []
    if len(runs) > 1:
        pieces += [element("h1", title), _comparison(runs)]
    pieces += [element("article", *_run_pieces(run, f"run{i}"), id=f"run{i}") for i, run in enumerate(runs, start=1)]
    footer = element("footer", "Made by Bindscope. Fractions carry 95 % Wilson intervals. This file fetches nothing.")
    return document(title, *pieces, footer)


def choose_steps(kept: Sequence[int], phases: Sequence[Phase], n: int = N_CHECKPOINTS) -> list[int]:
    """Up to ``n`` saved steps that tell the story: the ends and middles of the phases, the first and the last step."""
    wanted = [kept[0], kept[-1]]
    for phase in phases:
        wanted += [phase.last_step, phase.first_step, (phase.first_step + phase.last_step) // 2]
    chosen: list[int] = []
    for step in wanted:
        nearest = min(kept, key=lambda candidate: (abs(candidate - step), candidate))
        if nearest not in chosen:
            chosen.append(nearest)
    return sorted(chosen[:n])


def _comparison(runs: Sequence[ReportedRun]) -> Markup:
    entered = list(dict.fromkeys(name for run in runs for name in run.family.phase_names[1:]))
    rows = []
    for index, run in enumerate(runs, start=1):
        starts = {phase.name: f"{phase.first_step:,}" for phase in run.phases}
        link = element("a", run.title, href=f"#run{index}")
        name, fraction, _ = _headline_accuracy(run.dataset)
        last = f"{int(run.dataset.step[-1]):,}"
        rows.append([link, f"{fraction} ({name})", *(starts.get(phase, "–") for phase in entered), last])
    head = ("run", "accuracy at the end", *(f"{phase} from step" for phase in entered), "last step")
    return element("section", table(head, rows, numbers=range(2, len(head))))


def _run_pieces(run: ReportedRun, prefix: str) -> Iterator[Markup]:
    yield element("h1", run.title)
    yield element("p", _lead(run), class_="lead")
    yield tiles(_headline_numbers(run))
    if run.family.phase_names:
        yield _phase_section(run)
    yield _chart_section(run, prefix)
    yield _transition_section(run)
    if run.examples:
        yield _example_section(run.examples)
    for section in run.sections:
        yield _extra_section(section)
    yield _making_section(run)


def _lead(run: ReportedRun) -> str:
    steps = f"{int(run.dataset.step[-1]):,} steps"
    return run.highlights.lead or f"What the model could do, evaluation by evaluation, over {steps}."


def _headline_numbers(run: ReportedRun) -> Iterator[tuple[str, str, str]]:
    dataset = run.dataset
    name, fraction, interval = _headline_accuracy(dataset)
    yield f"accuracy at the end, {name}", fraction, interval
    yield "steps", f"{int(dataset.step[-1]):,}", f"{dataset.sizes['step']:,} evaluations"
    if "training_examples" in dataset:
        yield "examples seen", format_step(float(dataset.training_examples[-1])), ""
    if "seconds" in dataset:
        yield "training time", _format_seconds(float(dataset.seconds[-1])), ""
    yield from run.highlights.numbers


def _headline_accuracy(dataset: xr.Dataset) -> tuple[str, str, str]:
    """The split that matters most, its last accuracy and the interval of it."""
    splits = [str(split) for split in dataset.split.values]
    split = "test" if "test" in splits else splits[int(np.nanargmin(dataset.split_accuracy.values[-1]))]
    last = dataset.sel(split=split).isel(step=-1)
    fraction = float(last.split_accuracy)
    if np.isnan(fraction):
        return split, "–", ""
    low, high = float(last.split_accuracy_low), float(last.split_accuracy_high)
    return split, format_fraction(fraction), f"{low:.2%} – {high:.2%}"


def _phase_section(run: ReportedRun) -> Markup:
    words = run.family.describe_phases() if run.criterion is None else run.criterion.describe()
    found = {phase.name: phase for phase in run.phases}
    rows = []
    for name in run.family.phase_names:
        phase = found.get(name)
        label = element("span", name, class_=name)
        where = (show_steps(phase), format_fraction(phase.accuracy)) if phase else ("not reached", "–")
        rows.append([label, *where, words[name]])
    return element(
        "section",
        element("h2", "Phases"),
        element(
            "p",
            "Each evaluation is read by itself with the criterion below; the run is then cut, in this order, so that "
            "the fewest readings are contradicted. What lies between two phases is a transition. "
            + words.get("any", ""),
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
        element("details", element("summary", "The numbers behind the charts"), _evaluation_table(run)),
    )


def _evaluation_table(run: ReportedRun) -> Markup:
    dataset = run.dataset
    splits = [str(split) for split in dataset.split.values]
    columns = {f"accuracy, {split}": dataset.split_accuracy.sel(split=split).values for split in splits}
    columns |= {f"loss, {split}": dataset.split_loss.sel(split=split).values for split in splits}
    columns |= run.highlights.columns
    rows = [
        [f"{int(step):,}", *(_number(values[index]) for values in columns.values())]
        for index, step in enumerate(dataset.step.values)
    ]
    return table(("step", *columns), rows, numbers=range(len(columns) + 1))


def _transition_section(run: ReportedRun) -> Markup:
    parts, rows = learned_parts(run.dataset), []
    reached_at = transitions_of(run.dataset, THRESHOLD, run.lasting)
    for (name, curve), n in zip(parts.accuracy.items(), parts.n, strict=True):
        fraction, step = curve[-1], reached_at[name]
        low, high = wilson_interval(np.nan_to_num(fraction) * n, n)
        interval = "–" if np.isnan(fraction) else f"{low:.2%} – {high:.2%}"
        reached = "not reached" if step is None else f"{step:,}"
        rows.append([name, reached, _number(fraction), interval, f"{int(n):,}"])
    return element(
        "section",
        element("h2", parts.title),
        element(
            "p",
            f"The step at which accuracy first reached {THRESHOLD:.0%} and stayed: at {run.lasting.persist} "
            f"evaluations running, and at {run.lasting.consistency:.0%} of all later ones.",
            class_="note",
        ),
        table(
            (parts.what, "learned at step", "accuracy at the end", "95 % interval", "examples"),
            rows,
            numbers=(1, 2, 3, 4),
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
    elif prediction.answer == example.heuristic:
        kind, mark, words = ("heuristic", "L1", "line 1")
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
    if run.config:
        pieces.append(list_settings(run.config, "settings"))
    return element("section", join(pieces))


def show_steps(phase: Phase) -> str:
    """From where to where a phase lasts."""
    first, last = f"{phase.first_step:,}", f"{phase.last_step:,}"
    return first if first == last else f"{first} – {last}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"


def _format_seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
