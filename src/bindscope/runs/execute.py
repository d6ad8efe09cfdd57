"""Train a run, or go on with one that was interrupted: task, model, loop, evaluation and directory put together.

Started by torchrun, all processes call the same function; the first one alone writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.measures.evaluation import build_evaluator
from bindscope.model.baselines import build_baseline
from bindscope.model.convert.checkpoint import check_names_and_shapes
from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.data import TrainingData, prepare_data
from bindscope.runs.directory import MANIFEST, Run
from bindscope.runs.lock import hold_lock
from bindscope.runs.manifest import Manifest, describe_origin
from bindscope.runs.start import check_start, load_start
from bindscope.training.device import select_device, use_threads
from bindscope.training.distributed import Processes, detect_processes, join_processes
from bindscope.training.loop import Evaluate, train
from bindscope.training.memory import keep_freed_memory
from bindscope.training.plan import checkpoint_steps
from bindscope.training.progress import Observer
from bindscope.training.state import TrainingState


def train_run(
    config: RunConfig,
    path: Path | str,
    *,
    device: str = "auto",
    threads: int | None = None,
    observer: Observer | None = None,
    evaluate: Evaluate | None = None,
) -> Run:
    """Train from the beginning into a new directory, and return the finished run.

    ``evaluate`` replaces the task's own evaluation. What an earlier attempt of the same torchrun began goes on.

    >>> train_run(bindscope.preset("binding-tiny").config, "runs/tiny", observer=print)
    """
    path, processes = Path(path), detect_processes()
    chosen = select_device(device, processes.local_rank)
    with use_threads(threads) as n_threads:
        join_processes(processes, chosen)
        if processes.share(lambda: _was_begun(path, config, processes)):
            return resume_run(path, device=device, threads=threads, observer=observer, evaluate=evaluate)
        checkpoint_steps(config.training.checkpoints, config.total_steps)  # refuse a bad plan before anything is made
        data, (model, start) = prepare_data(config), _first_model(config)
        manifest = Manifest(
            name=config.name,
            config=config_to_mapping(config),
            seeds=config.seeds,
            total_steps=config.total_steps,
            data=data.fingerprint,
            start=start,
            family_from=family_of(config.task).origin,
            **describe_origin(chosen.type, n_threads, processes.n, processes.launch),
        )
        run = processes.share(lambda: Run.create(path, manifest))
        with _locked(run, processes):
            return _train(run, model, data, None, chosen, processes, observer, evaluate)


def resume_run(
    path: Path | str,
    *,
    device: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
    evaluate: Evaluate | None = None,
    any_world_size: bool = False,
) -> Run:
    """Go on with an interrupted run, on the device and threads it began with unless told otherwise.

    On the same CPU, threads and number of processes the weights come out as if it had never been interrupted, bit for
    bit; another number is refused unless ``any_world_size`` allows it. A run that has ended is returned as it is.

    >>> resume_run("runs/tiny", observer=print)
    """
    processes = detect_processes()
    run = Run.open(path)
    machine = run.manifest.machine
    if not any_world_size:
        _check_world_size(run, processes.n)
    chosen = select_device(device or machine.get("device", "auto"), processes.local_rank)
    join_processes(processes, chosen)
    with use_threads(threads or machine.get("threads") or None), _locked(run, processes):
        run = processes.share(lambda: Run.open(path))  # as the process that held the lock before left it
        state = processes.share(run.load_state)
        if state is not None and state.tally.finished:
            return processes.share(lambda: _settle(run, state))
        data = prepare_data(run.config)
        data.check_unchanged(run.manifest.data)
        model = _same_first_model(run) if state is None else _new_model(run.config)
        return _train(run, model, data, state, chosen, processes, observer, evaluate)


def _was_begun(path: Path, config: RunConfig, processes: Processes) -> bool:
    """Whether an earlier attempt of this launch began this very run; any other run there is not ours to go on with."""
    if processes.attempt == 0 or not processes.launch or not (path / MANIFEST).is_file():
        return False
    run = Run.open(path)
    return run.manifest.machine.get("launch") == processes.launch and run.config == config


def _check_world_size(run: Run, n: int) -> None:
    began = run.manifest.machine.get("processes", 1)
    if began and began != n:  # 0: nothing trained it, which is refused elsewhere
        raise BindscopeError(
            f"{run.path}: the run was begun by {began} process{'es' if began > 1 else ''} and {n} would go on with it, "
            f"which rounds differently; say --processes {began}, or --any-world-size to go on all the same."
        )


def _train(
    run: Run,
    model: nn.Module,
    data: TrainingData,
    state: TrainingState | None,
    device: torch.device,
    processes: Processes,
    observer: Observer | None,
    evaluate: Evaluate | None,
) -> Run:
    config = run.config
    keep_freed_memory()
    if state is not None:
        check_names_and_shapes(model.state_dict(), state.weights, str(run.path / "optimizer"))
    processes.share(lambda: run.rewind(-1 if state is None else state.tally.step))
    train(
        model,
        data.loader,
        config.training,
        evaluate=evaluate or _task_evaluation(config, data),
        seed=config.seeds["dropout"],
        total_steps=config.total_steps,
        keeper=run,
        observer=observer,
        state=state,
        device=device,
        processes=processes,
    )
    return processes.share(lambda: run)


def _first_model(config: RunConfig) -> tuple[nn.Module, dict[str, Any]]:
    """The model as training begins, and where pretrained weights came from, if it has any."""
    if config.start is None:
        return _new_model(config), {}
    model, origin = load_start(config)
    return _to_train(model, config), origin


def _same_first_model(run: Run) -> nn.Module:
    """For a run that was killed before it kept a state."""
    model, origin = _first_model(run.config)
    check_start(run.manifest.start, origin)
    return model


def _new_model(config: RunConfig) -> nn.Module:
    generator = torch.Generator().manual_seed(config.seeds["model"])
    if config.baseline is not None:
        return build_baseline(config.baseline, config.model, generator)
    return _to_train(Transformer(config.model, generator), config)


def _to_train(model: Transformer, config: RunConfig) -> Transformer:
    """The model with what is not to be trained held fixed."""
    if config.training.trained == "last":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith("unembed."))
    return model


def _task_evaluation(config: RunConfig, data: TrainingData) -> Evaluate:
    return build_evaluator(config.task, config.training.evaluation_size, config.seeds["evaluation"], data.splits)


@contextmanager
def _locked(run: Run, processes: Processes) -> Iterator[None]:
    """The first process holds the run's lock for all; when it cannot, none goes on."""
    with ExitStack() as stack:
        processes.share(lambda: stack.enter_context(hold_lock(run.path)))
        yield


def _settle(run: Run, state: TrainingState) -> Run:
    """A kill may have come between the last state and the word that training has ended."""
    run.settle_status(state.tally)
    return run
