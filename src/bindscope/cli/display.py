"""Watching a run learn: a live panel on a terminal, one plain line per evaluation everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bindscope.cli.table import format_duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from bindscope.training.progress import Observer, Progress

Evaluation = Mapping[str, Any]
SPARKS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 32
PANEL_WIDTH = 78
N_SPARKS = 48


@contextmanager
def watch_training(
    title: str, past: Sequence[tuple[int, Evaluation]] = (), console: Console | None = None
) -> Iterator[Observer]:
    """An observer to hand to training; what it sees is shown for as long as the block lasts.

    ``past`` are the evaluations from before an interruption, so a resumed run shows its whole curve.

    >>> with watch_training("binding-tiny") as observer:
    ...     train_run(config, directory, observer=observer)
    """
    from rich.console import Console

    console = console or Console()
    history = History(past)
    if not console.is_terminal or console.is_dumb_terminal:
        yield _PlainLines(title, history)
        return
    from rich.live import Live

    with Live(console=console, refresh_per_second=8) as live:

        def show(progress: Progress) -> None:
            history.add(progress)
            live.update(draw_panel(title, progress, history))

        yield show


class History:
    """The evaluations of a run so far, and what they say together."""

    def __init__(self, past: Sequence[tuple[int, Evaluation]] = ()) -> None:
        self.points = list(past)

    def add(self, progress: Progress) -> None:
        if progress.evaluation is not None:
            self.points = [point for point in self.points if point[0] < progress.step]
            self.points.append((progress.step, progress.evaluation))

    @property
    def watched(self) -> dict[str, float]:
        """The latest accuracies that the task watches, by name."""
        return dict(self.points[-1][1]["watched"]) if self.points else {}

    @property
    def accuracies(self) -> list[float]:
        return [accuracy_of(evaluation) for _, evaluation in self.points]

    @property
    def phase(self) -> str | None:
        """What the latest evaluation reads as; only binding runs have phases."""
        from bindscope.measures.binding.phases import curves_from_evaluations, read_evaluations

        if not self.points or "misleading" not in self.points[-1][1].get("test", {}):
            return None
        steps, evaluations = zip(*self.points[-1:])
        return str(read_evaluations(curves_from_evaluations(steps, evaluations))[-1])


def accuracy_of(evaluation: Evaluation) -> float:
    """One number for a whole evaluation: accuracy on the test split, or the mean of what the task watches."""
    split = evaluation.get("test")
    if split is not None and split.get("accuracy") is not None:
        return float(split["accuracy"])
    watched = list(evaluation.get("watched", {}).values())
    return sum(watched) / len(watched) if watched else float("nan")


def format_line(progress: Progress, history: History) -> str:
    """One evaluation as one line of plain text."""
    parts = [f"step {progress.step:,}/{progress.total_steps:,}"]
    parts += [f"loss {progress.loss:.4f}"] if progress.loss is not None else []
    parts += [f"accuracy {history.accuracies[-1]:.3f}"] if history.points else []
    parts += [f"{name} {accuracy:.3f}" for name, accuracy in history.watched.items()]
    parts += [f"phase {history.phase}"] if history.phase else []
    return "  ".join([*parts, *_pace(progress)])


def draw_panel(title: str, progress: Progress, history: History) -> RenderableType:
    """The live panel."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    head = Text(f"step {progress.step:,} of {progress.total_steps:,}", style="bold")
    head.append("   " + "   ".join([format_duration(progress.elapsed), *_pace(progress)]), style="dim")
    facts = [f"loss {progress.loss:.4f}" if progress.loss is not None else "loss –", f"learning rate {progress.lr:.2g}"]
    facts += [f"phase: {history.phase}"] if history.phase else []
    parts: list[RenderableType] = [
        head,
        _draw_bar(progress.fraction, PANEL_WIDTH - 4, "green", "━"),
        Text("   ".join(facts)),
    ]
    if history.points:
        parts += [_draw_bars(history), Text("over time  " + draw_sparkline(history.accuracies, N_SPARKS), style="cyan")]
    return Panel(Group(*parts), title=title, title_align="left", width=PANEL_WIDTH)


def draw_sparkline(values: Sequence[float], width: int) -> str:
    """The last values, or as many evenly spaced ones as fit, as a row of blocks from 0 to 1.

    >>> draw_sparkline([0.0, 0.5, 1.0], width=8)
    '▁▅█'
    """
    if len(values) > width:
        values = [values[round(index * (len(values) - 1) / (width - 1))] for index in range(width)]
    return "".join(
        SPARKS[min(len(SPARKS) - 1, int(value * len(SPARKS)))] if value == value else " " for value in values
    )


def _draw_bars(history: History) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    rows = {"accuracy": history.accuracies[-1], **history.watched}
    for name, accuracy in rows.items():
        style = "bold cyan" if name == "accuracy" else "blue"
        table.add_row(name, _draw_bar(accuracy, BAR_WIDTH, style), f"{accuracy:.1%}")
    return table


def _draw_bar(fraction: float, width: int, style: str, block: str = "█") -> Text:
    """A fraction of ``width`` blocks; what is not a number fills none."""
    from rich.text import Text

    filled = round(fraction * width) if fraction == fraction else 0
    bar = Text(block * filled, style=style)
    return bar.append("░" * (width - filled), style="dim")


def _pace(progress: Progress) -> list[str]:
    parts = [f"{progress.examples_per_second:,.0f} examples/s"] if progress.examples_per_second else []
    if progress.seconds_left is not None and progress.step < progress.total_steps:
        parts.append(f"{format_duration(progress.seconds_left)} left at most")
    return parts


class _PlainLines:
    """An observer that prints a line per evaluation, after a heading when training has really begun."""

    def __init__(self, title: str, history: History) -> None:
        self.title: str | None = title
        self.history = history

    def __call__(self, progress: Progress) -> None:
        if self.title is not None:
            print(self.title, flush=True)
            self.title = None
        if progress.evaluation is not None:
            self.history.add(progress)
            print(format_line(progress, self.history), flush=True)
