"""Language modelling with and without identity scaling (AS12), as an experiment on a text that the reader names.

All variants of a seed begin with the same weights and see the same windows of text, so they are compared pair by pair.
``frozen`` is the control: it has the scalars of ``both`` and computes with them, but their gain is 0.

>>> experiment = language_experiment("wikitext-2-raw", preset="text-gpt2")
>>> runs = dict(train_in_turn(plan_cells(experiment), Path("runs/experiment-language"), device="cuda"))
>>> print(experiment.conclude(experiment_dataset(experiment, runs)))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.studies.framework.experiments import Cell, Experiment, Variant, defer
from bindscope.tasks.text import LIBRARY

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.training.progress import Observer

NAME = "language"
PLAIN, BOTH, FROZEN = "plain", "both", "frozen"
VARIANTS = (
    Variant(PLAIN, "no identity scaling"),
    Variant(BOTH, "identity scaling of both forms", {"model.identity_qk": True, "model.identity_vo": True}),
    Variant(
        FROZEN,
        "the scalars of both, without effect: their gain is 0",
        {"model.identity_qk": True, "model.identity_vo": True, "model.identity_gain": 0.0},
    ),
    Variant("kq", "identity scaling of attention scores only", {"model.identity_qk": True}),
    Variant("vo", "identity scaling of outputs only", {"model.identity_vo": True}),
)
EXPERIMENT = Experiment(
    name=NAME,
    question="Does identity scaling lower the perplexity of a language model?",
    preset="text-small",
    variants=VARIANTS,
    seeds=3,
    changes={"task.source": LIBRARY},
    minutes=2.5,
    limits=(
        "One text, one size, one learning rate and few steps; the paper's model is GPT-2, trained on WikiText. Intervals "
        "over seeds assume that differences between seeds scatter normally."
    ),
    conclude=defer("bindscope.studies.symbols.language.perplexities", "conclude_language"),
    draw=defer("bindscope.studies.symbols.language.draw", "draw_language"),
    measure=defer("bindscope.studies.symbols.language.measure_runs", "measure_language"),
)
EXPERIMENTS: tuple[Experiment, ...] = (EXPERIMENT,)


def language_experiment(
    source: str, preset: str = "text-small", changes: Mapping[str, Any] | None = None
) -> Experiment:
    """The same experiment on another text, or on another preset of text."""
    return replace(EXPERIMENT, preset=preset, changes={"task.source": source, **(changes or {})})


def train_in_turn(
    cells: Sequence[Cell],
    directory: Path,
    device: str = "auto",
    threads: int | None = None,
    observer: Observer | None = None,
) -> Iterator[tuple[Cell, Run]]:
    """Train what is missing one after the other in this process, so that the text is read once and a GPU is used."""
    from bindscope.runs.execute import resume_run, train_run
    from bindscope.runs.sweep import ENDED, existing_run

    for cell in cells:
        path = cell.path_in(directory)
        run = existing_run(path, cell.config)
        if run is None:
            run = train_run(cell.config, path, device=device, threads=threads, observer=observer)
        elif run.status not in ENDED:
            run = resume_run(path, threads=threads, observer=observer)
        yield cell, run
