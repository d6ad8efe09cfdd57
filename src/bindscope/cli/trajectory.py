"""``bindscope trajectory``: the life of a run in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.table import fill_lines, format_table
from bindscope.runs.locate import find_run, is_shipped

if TYPE_CHECKING:
    from bindscope.families import EventTable
    from bindscope.measures.phases import Phase


def trajectory(
    run: str,
    /,
    *,
    out: Path | None = None,
    html: Flag = False,
    place: Place = HERE,
) -> None:
    """Find a run's phases and draw its trajectory.

    Prints each phase with its steps and the criterion that found it, and saves
    the figure (accuracy, by depth, by root line, where predictions come from)
    and the numbers behind it as netCDF. Of a run on modular addition it also prints the
    spikes: which splits rose suddenly, and when.

    Examples:
        bindscope trajectory binding-laptop
        bindscope trajectory runs/fast --out fast.pdf
        bindscope trajectory binding-laptop --html

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    out
        The figure's file; its ending chooses the format (svg, png, pdf). By default results/trajectory.svg inside the
        run, or NAME-trajectory.svg here for a shipped run.
    html
        Also write a self-contained HTML report beside the figure, with what checkpoints answer to a few examples: the one
        part for which a model runs.
    """
    from bindscope.cli.report import write_report
    from bindscope.families import family_of
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset, transitions_of
    from bindscope.studies.plots.panels import figure_trajectory
    from bindscope.studies.plots.style import figure_format, save_figure

    opened = Run.open(find_run(run), place)
    shipped = is_shipped(opened.path)
    figure = out or (Path(f"{opened.name}-trajectory.svg") if shipped else opened.path / "results" / "trajectory.svg")
    figure_format(figure)  # refused before anything is printed
    family = family_of(opened.config.task)
    dataset = trajectory_dataset(opened.metrics, opened.manifest.config, family)
    phases = phases_of(dataset)
    events, criterion = family.list_events(dataset), family.describe_phases()
    print(format_trajectory(opened.name, phases, transitions_of(dataset), criterion, events))
    print(f"figure   {save_figure(figure_trajectory(dataset, phases), figure)}")
    if not shipped:
        print(f"numbers  {opened.save_result('trajectory', dataset)}")
    if html:
        print(f"report   {write_report([opened], figure.with_suffix('.html'))}")


def format_trajectory(
    name: str,
    phases: Sequence[Phase],
    transitions: Mapping[str, int | None],
    criterion: Mapping[str, str],
    events: Sequence[EventTable] = (),
) -> str:
    """Phases and events with the criterion that found each, and when each kind of question was first answered."""
    parts = [name]
    if phases:
        rows = [
            [
                phase.name,
                f"{phase.first_step:,}",
                f"{phase.last_step:,}",
                f"{phase.accuracy:.4f}",
                str(phase.n_evaluations),
            ]
            for phase in phases
        ]
        parts.append(format_table(["phase", "from step", "to step", "accuracy", "evaluations"], rows, [1, 2, 3, 4]))
    parts += [format_table(list(event.head), [list(row) for row in event.rows], event.numbers) for event in events]
    if phases or events:
        words = dict(criterion)
        for event in events:
            words |= event.words
        parts.append(fill_lines("\n".join(f"{name}: {sentence}" for name, sentence in words.items())))
    rows = [[kind, "not yet" if step is None else f"{step:,}"] for kind, step in transitions.items()]
    parts.append(format_table(["", "0.9 from step"], rows, numbers=[1]))
    return "\n\n".join(parts) + "\n"
