"""``bindscope language``: a language model with and without identity scaling, on a text of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from bindscope.cli.options import AtLeastOne, Device, Setting
from bindscope.cli.settings import parse_settings
from bindscope.runs.locate import RUNS_DIRECTORY

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.experiments import Cell, Experiment

Identity = Literal["kq", "vo", "both", "frozen"]


def language(
    source: str = "python-library",
    /,
    *,
    identity: Annotated[tuple[Identity, ...], Parameter(negative="")] = ("both",),
    seeds: AtLeastOne = 3,
    steps: int | None = None,
    preset: str = "text-small",
    tokenizer: str | None = None,
    settings: Setting = (),
    device: Device = "auto",
    threads: int | None = None,
    out: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Train a language model on your text with and without identity scaling, and compare.

    The text is a file, a directory of .txt, .md, .rst or .py files, a dataset directory
    of Hugging Face (jsonl, parquet or arrow, with a text column) or WikiText's own
    files. Splits that it names are used; others are cut from its end. Perplexity is
    that of the whole test text, with intervals. The command can be stopped and given
    again: runs that have ended are not trained again, interrupted ones go on.

    Examples:
        bindscope language
        bindscope language notes.txt --seeds 2 --steps 300
        bindscope language wikitext-2-raw/ --identity both --identity frozen
        bindscope language wikitext-2-raw/ --preset text-gpt2 --tokenizer gpt2/ --device cuda --seeds 1

    Parameters
    ----------
    source
        The text; python-library is the documentation that comes with Python.
    identity
        Which form of identity scaling to train beside the plain model; give it once for each. frozen is the control
        whose scalars have no effect.
    seeds
        How many seeds to train each with, counted from 0. Runs of one seed begin alike and see the same text.
    steps
        How many steps to train; the preset's own when left out.
    preset
        text-small, or text-gpt2 for the paper's size.
    tokenizer
        A tokenizer.json, or a directory that has one or GPT-2's vocab.json and merges.txt; when left out, a byte-level BPE
        is trained on the training text.
    settings
        Change one setting by its dotted name, as KEY=VALUE; give it once per setting.
    device
        Where to train; auto takes a GPU when there is one.
    threads
        How many CPU threads to use; all cores when left out.
    out
        The directory that holds the runs, the dataset and the figure; runs/experiment-language when left out.
    figure
        The figure's file; its ending chooses the format (svg, png, pdf).
    """
    from bindscope.families import require_kind
    from bindscope.runs.data import prepare_data
    from bindscope.studies.framework.experiments import plan_cells
    from bindscope.studies.framework.presets import find_preset
    from bindscope.studies.symbols.language.define import NAME, PLAIN, language_experiment
    from bindscope.tasks.text import LIBRARY

    require_kind(f"--preset {preset}", find_preset(preset).config.task, "text")
    if figure is not None:
        from bindscope.studies.plots.style import figure_format

        figure_format(figure)  # refused before anything is trained
    changes: dict[str, object] = dict(parse_settings(settings))
    if tokenizer is not None:
        changes["task.tokenizer"] = str(Path(tokenizer).expanduser().resolve())
    location = source if source == LIBRARY else str(Path(source).expanduser().resolve())
    chosen = language_experiment(location, preset, changes)
    cells = plan_cells(chosen, range(seeds), [PLAIN, *dict.fromkeys(identity)], steps)
    prepare_data(cells[0].config)  # a bad text is refused before anything is made
    _train(chosen, cells, device, threads, out or RUNS_DIRECTORY / f"experiment-{NAME}", figure)


def _train(
    chosen: Experiment, cells: list[Cell], device: Device, threads: int | None, directory: Path, figure: Path | None
) -> None:
    from bindscope.cli.display import watch_training
    from bindscope.cli.experiment import finish_experiment
    from bindscope.cli.train import describe_run, resumable
    from bindscope.studies.symbols.language.define import train_in_turn

    runs: dict[Cell, Run] = {}
    for index, cell in enumerate(cells, start=1):
        title = f"{index} of {len(cells)} · {describe_run(cell.config, cell.path_in(directory))}"
        with resumable(cell.path_in(directory)), watch_training(title) as observer:
            runs.update(train_in_turn([cell], directory, device, threads, observer))
    finish_experiment(chosen, runs, directory, figure)
