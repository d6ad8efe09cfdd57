"""``bindscope train``: a preset becomes a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bindscope.cli.locate import RUNS_DIRECTORY
from bindscope.cli.settings import parse_settings
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.runs.config import RunConfig

Device = Literal["auto", "cpu", "cuda", "mps"]
Setting = Annotated[tuple[str, ...], Parameter(name="--set", negative="")]


def train(
    preset: str | None = None,
    /,
    *,
    name: str | None = None,
    out: Path = RUNS_DIRECTORY,
    settings: Setting = (),
    steps: int | None = None,
    seed: int | None = None,
    device: Device = "auto",
    threads: int | None = None,
    resume: str | None = None,
) -> None:
    """Train a preset into a run directory.

    The run can be stopped at any moment, even by pulling the plug, and continued with 'bindscope resume'. To train with
    several processes, start the command with torchrun.

    Examples:
        bindscope train binding-tiny
        bindscope train binding-tiny --name fast --seed 3 --set training.optimizer.lr=1e-3
        bindscope train binding-laptop --set model.n_layers=6 --set task.lines=20
        bindscope train --resume runs/fast

    Parameters
    ----------
    preset
        What to train; 'bindscope presets' lists them.
    name
        The run's name; the preset's own when left out.
    out
        The directory that holds runs.
    settings
        Change one setting by its dotted name, as KEY=VALUE; give it once per setting. 'bindscope presets PRESET' shows
        all names.
    steps
        How many steps to train; short for --set training.steps=N.
    seed
        The seed of weights, data and dropout; short for --set seed=N.
    device
        Where to train; auto takes a GPU when there is one.
    threads
        How many CPU threads to use; all cores when left out.
    resume
        Continue this run instead of starting one.
    """
    if (preset is None) == (resume is None):
        raise BindscopeError("name a preset to train, or a run with --resume; 'bindscope presets' lists the presets.")
    if resume is not None:
        if name is not None or settings or steps is not None or seed is not None:
            raise BindscopeError("--resume continues a run as it is; leave out --name, --set, --steps and --seed.")
        from bindscope.cli.resume import continue_run

        continue_run(resume, device, threads)
        return
    assert preset is not None
    changes = parse_settings(settings)
    for key, value in (("training.steps", steps), ("seed", seed), ("name", name)):
        if value is not None:
            if key in changes:
                raise BindscopeError(f"--set {key}: also given as --{key.rpartition('.')[2]}; keep one.")
            changes[key] = value
    config = configure(preset, changes)
    start_run(config, out / config.name, device, threads)
