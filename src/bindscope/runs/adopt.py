"""Checkpoints that were trained elsewhere, made into a run like any other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.model.convert import read_model
from bindscope.model.convert.compare import differ_from_transformers
from bindscope.model.convert.tokenizer import check_tokens
from bindscope.model.described import CONFIG
from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run, write_empty_run
from bindscope.runs.folders import new_directory
from bindscope.runs.lineage import Lineage
from bindscope.runs.manifest import IMPORTED, NOTE, Manifest, describe_origin
from bindscope.runs.originals import link_original, read_original
from bindscope.runs.placement import CPU, Placement
from bindscope.tasks.task import Task

Evaluate = Callable[[Transformer], Mapping[str, Any]]
BuildEvaluate = Callable[[Task], Evaluate]
Report = Callable[[int, Mapping[str, Any], float | None], None]  # step, evaluation, difference from transformers


def adopt_checkpoints(
    config: RunConfig,
    files: Mapping[int, Path],
    destination: Path,
    build_evaluate: BuildEvaluate,
    told: Iterable[str] = (),
    report: Report = lambda step, evaluation, difference: None,
    link: bool = False,
    tokenizer: Path | None = None,
    placement: Placement = CPU,
    note: str = "",
) -> Run:
    """A run with the weights of ``files`` (by step), each evaluated. Nothing is left on disk unless all of them fit.

    A file may be a directory of Hugging Face, whose tokens must be the task's. ``report`` is then told by how much its
    logits differ from those that ``transformers`` computes, where it is installed.

    The model's shape is that of the first file. What files do not tell is what the family says of published ones, and
    for the settings named in ``told`` what ``config.model`` says. With ``link`` no weights are copied: the run reads the
    files where they are, as long as their hashes are the same. A family may take the task's tokens from the tokenizer
    beside the model, or from ``tokenizer``; it must then be the same for all files. ``placement`` is for the evaluations;
    weights are read, compared and saved on the CPU. A ``note`` says what the checkpoints are.

    >>> adopt_checkpoints(config, {401: Path("checkpoint_step_401.pth")}, Path("runs/released"), build_evaluate)
    """
    placement, steps, family = placement.check(), sorted(files), family_of(config.task)
    given = {name: getattr(config.model, name) for name in told}
    model = read_model(files[steps[0]], **{**family.published_model, **given})
    _check_given(model, given, files[steps[0]])
    task = _fit_task(config.task, [files[step] for step in steps], model.config.d_vocab, tokenizer)
    read: dict[str, Any] = {"fitted": _changed_settings(config.task, task)} if task != config.task else {}
    read |= {} if tokenizer is None else {"tokenizer": str(tokenizer)}
    read |= {NOTE: note} if note else {}
    config = dataclasses.replace(config, task=task, model=model.config)
    evaluate = build_evaluate(task)
    manifest = Manifest(
        name=config.name,
        config=config_to_mapping(config),
        seeds={},
        total_steps=steps[-1],
        status="finished",
        thinned=True,
        data={"kind": IMPORTED, "files": {str(step): str(files[step]) for step in steps}, "told": given}
        | read
        | placement.recorded,
        family_from=family.origin,
        **describe_origin(placement.device, n_threads=0, n_processes=0),
    )
    with new_directory(destination) as unfinished:
        write_empty_run(unfinished, manifest)
        run = Run(unfinished, manifest)
        lineage = Lineage()
        for step in steps:
            model = _keep_weights(run, step, files[step], lineage, link)
            hugging_face = (files[step] / CONFIG).is_file()
            difference = differ_from_transformers(model, files[step]) if hugging_face else None
            evaluation = evaluate(placement.place(model))  # last: it moves the weights
            run.keep_evaluation({"step": step, **evaluation})
            report(step, evaluation, difference)
    return Run.open(destination)


def _keep_weights(run: Run, step: int, file: Path, lineage: Lineage, link: bool) -> Transformer:
    """Copy or link a checkpoint and say how it goes on from the one before."""
    original = link_original(file) if link else None
    model = read_original(file, run.config.model)
    if original is None:
        run.write_checkpoint(step, model.state_dict())
    else:
        run.link_checkpoint(step, model.state_dict(), original)
    descent = lineage.add(step, model.state_dict())
    if descent is not None:
        run.keep_lineage(step, descent)
    return model


def _fit_task(task: Task, files: Sequence[Path], d_vocab: int, tokenizer: Path | None) -> Task:
    """The task in the tokens of these models, which must be the same for all."""
    family = family_of(task)
    fitted: Task | None = family.fit_task(task, files[0], d_vocab, tokenizer)
    for file in files:
        if fitted is None:
            check_tokens(file, task.vocabulary)
        elif family.fit_task(task, file, d_vocab, tokenizer) != fitted:
            raise BindscopeError(f"{file}: has another tokenizer than {files[0]}; import them one by one.")
    return task if fitted is None else fitted


def _changed_settings(task: Any, fitted: Any) -> list[str]:
    """Names of the settings that were read from the files."""
    return [
        field.name for field in dataclasses.fields(task) if getattr(task, field.name) != getattr(fitted, field.name)
    ]


def _check_given(model: Transformer, given: Mapping[str, Any], file: Path) -> None:
    for name, value in given.items():
        found = getattr(model.config, name)
        if found != value:
            raise BindscopeError(f"{file}: says that model.{name} is {found}, not {value}; leave out the setting.")
