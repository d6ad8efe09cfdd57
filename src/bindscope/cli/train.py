"""``bindscope train``: a preset becomes a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.display import accuracy_of, watch_training
from bindscope.cli.failure import Interrupted
from bindscope.cli.launch import launch, launches
from bindscope.cli.one_voice import is_first
from bindscope.cli.options import Device, Setting
from bindscope.cli.own_families import named_family, option_of
from bindscope.cli.settings import parse_settings
from bindscope.cli.table import format_count
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY, find_run, is_shipped

if TYPE_CHECKING:
    from bindscope.runs.config import RunConfig
    from bindscope.runs.directory import Run


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
    processes: int = 1,
    restarts: int = 0,
) -> int | None:
    """Train a preset into a run directory.

    The run can be stopped at any moment, even by pulling the plug, and
    continued with 'bindscope resume'. With --processes several processes train
    it together; on several machines torchrun starts them (docs/scale.md).

    Examples:
        bindscope train binding-tiny
        bindscope train binding-tiny --name fast --set training.optimizer.lr=1e-3
        bindscope train binding-tiny --seed 3 --name third
        bindscope train binding-laptop --set model.n_layers=6 --set task.lines=20
        bindscope train mine.toml
        bindscope train --resume runs/fast
        bindscope train binding-paper --processes 4 --restarts 3

    Parameters
    ----------
    preset
        What to train: a preset ('bindscope presets' lists them), or a TOML file of settings as 'bindscope presets PRESET'
        prints it. With --family it may be left out.
    name
        The run's name; the preset's own when left out.
    out
        The directory that holds runs.
    settings
        Change one setting by its dotted name, as KEY=VALUE; give it once per setting. 'bindscope presets PRESET' shows
        all names.
    steps
        How many steps to train; short for --set training.steps=N. It takes the place of a preset's epochs.
    seed
        The seed of weights, data and dropout; short for --set seed=N.
    device
        Where to train; auto takes a GPU when there is one.
    threads
        How many CPU threads to use; all cores when left out. On a busy machine 1 is
        faster: threads that wait for each other waste more than they add.
    resume
        Continue this run instead of starting one.
    processes
        How many processes of this machine train the run together, each on its part of every batch; with a GPU for each.
    restarts
        How often they are started again when one is lost; training goes on from its last saved state.
    """
    if launches(processes, restarts):
        return launch(processes, restarts)
    if preset is None and resume is None:
        preset = _standing_preset()
    if (preset is None) == (resume is None):
        raise BindscopeError("name a preset to train, or a run with --resume; 'bindscope presets' lists the presets.")
    if resume is not None:
        if name is not None or settings or steps is not None or seed is not None:
            raise BindscopeError("--resume continues a run as it is; leave out --name, --set, --steps and --seed.")
        continue_run(resume, None if device == "auto" else device, threads)
        return None
    assert preset is not None
    shorthands = {"training.steps": steps, "seed": seed, "name": name}
    config = configure(preset, settings, shorthands)
    start_run(config, out / config.name, device, threads)
    return None


def _standing_preset() -> str | None:
    """The preset of the family that --family names; None without one."""
    family = named_family()
    if family is None:
        return None
    from bindscope.studies.framework.presets import standing_preset

    return standing_preset(family).name


def configure(preset: str, settings: Sequence[str] = (), shorthands: Mapping[str, Any] | None = None) -> RunConfig:
    """A preset's configuration with some settings changed; shorthands are options of their own, None when not given."""
    from bindscope.runs.config import override
    from bindscope.runs.start import fit_to_start
    from bindscope.studies.framework.settings_file import open_preset

    changes: dict[str, Any] = dict(parse_settings(settings))
    for key, value in (shorthands or {}).items():
        if value is not None and key in changes:
            raise BindscopeError(f"--set {key}: also given as --{key.rpartition('.')[2]}; keep one.")
        if value is not None:
            changes[key] = value
    if "training.steps" in changes and str(changes.get("training.epochs", "none")).lower() != "none":
        raise BindscopeError("--steps and --set training.epochs: both say how long to train; keep one.")
    return fit_to_start(override(open_preset(preset).config, changes))


def start_run(config: RunConfig, directory: Path, device: Device = "auto", threads: int | None = None) -> None:
    """Train a configuration into a new directory, on show."""
    from bindscope.runs.execute import train_run

    with resumable(directory), watch_training(describe_run(config, directory)) as observer:
        run = train_run(config, directory, device=device, threads=threads, observer=observer)
    report_end(run)


def continue_run(
    name: str, device: Device | None = None, threads: int | None = None, any_world_size: bool = False
) -> None:
    """Find a run by name and train it to its end, on show."""
    from bindscope.runs.directory import Run
    from bindscope.runs.execute import resume_run

    run = Run.open(find_run(name))
    if is_shipped(run.path):
        raise BindscopeError(f"{run.name} is a finished run that comes with Bindscope; train your own to continue it.")
    if run.status in ("finished", "stopped early"):
        if is_first():
            print(f"{run.path} is complete ({run.status}); nothing to do.")
        return
    past = [(record["step"], record) for record in run.metrics]
    with resumable(run.path), watch_training(describe_run(run.config, run.path), past) as observer:
        run = resume_run(run.path, device=device, threads=threads, observer=observer, any_world_size=any_world_size)
    report_end(run)


@contextmanager
def resumable(directory: Path) -> Iterator[None]:
    """Say how to go on when a person interrupts training."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; go on with 'bindscope resume {shlex.quote(str(directory))}'.") from None


def describe_run(config: RunConfig, directory: Path) -> str:
    """One line about what is being trained and where it is saved."""
    return f"{config.name}: {format_count(config.model.n_parameters)} parameters, saved in {directory}"


def report_end(run: Run) -> None:
    """Say how training ended and what can be done with the run now; of several processes the first one speaks."""
    if not is_first():
        return
    from bindscope.families import family_of

    last = run.metrics[-1]
    print(f"{run.status.capitalize()} at step {last['step']:,}, accuracy {accuracy_of(last):.4f}, saved in {run.path}.")
    print(f"Next: bindscope trajectory {shlex.join([str(run.path), *option_of(family_of(run.config.task))])}")
