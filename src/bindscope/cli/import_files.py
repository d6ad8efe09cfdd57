"""``bindscope import``: checkpoints from elsewhere become a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bindscope.cli.display import accuracy_of
from bindscope.cli.options import Setting
from bindscope.cli.settings import parse_settings
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY

UNTOLD = ("model.activation", "model.norm", "model.parallel")  # by TransformerLens files


def import_files(
    *files: Path,
    family: str = "binding",
    as_: Annotated[str, Parameter(name="--as")],
    out: Path = RUNS_DIRECTORY,
    n: int = 2000,
    settings: Setting = (),
) -> None:
    """Make a run of checkpoints from elsewhere.

    Reads Hugging Face directories (GPT-2, GPT-NeoX, Llama, Mistral, Qwen2),
    nanoGPT's ckpt.pt, TransformerLens state dicts and safetensors files; no
    code in them is run. The step of each is the last number in its name.

    Examples:
        bindscope import checkpoints/*.pth --family assign-add --as released
        bindscope import exported/step*/ --as mine --set lines=8

    Parameters
    ----------
    files
        The checkpoint files or directories, all of one model.
    family
        The task that the model was trained on: assign-add, binding, templates, or one of your own as PATH.py:NAME.
    as_
        The name of the new run.
    out
        The directory that holds runs.
    n
        How many examples each split has on which every checkpoint is measured.
    settings
        Change one of the task's settings, or model.activation, model.norm or model.parallel (which TransformerLens files
        do not tell), as KEY=VALUE; give it once per setting.
    """
    from bindscope.measures.evaluation import build_evaluator
    from bindscope.runs.adopt import adopt_checkpoints
    from bindscope.runs.config import override
    from bindscope.studies.framework.presets import find_family_preset

    by_step = order_by_step(files)
    changes = {_qualify(key): value for key, value in parse_settings(settings).items()}
    config = override(find_family_preset(family).config, {**changes, "name": as_})
    run = adopt_checkpoints(
        config,
        by_step,
        out / as_,
        build_evaluator(config.task, n, config.seeds["evaluation"]),
        told=[key.removeprefix("model.") for key in changes if key in UNTOLD],
        report=_print_line,
    )
    print(f"{len(by_step)} checkpoints are now the run {run.path}. Next: bindscope trajectory {run.path}")


def _print_line(step: int, evaluation: Mapping[str, Any], difference: float | None) -> None:
    compared = "" if difference is None else f"  largest difference of logits from transformers {difference:.1e}"
    print(f"step {step:,}  accuracy {accuracy_of(evaluation):.3f}{compared}", flush=True)


def _qualify(key: str) -> str:
    """A setting's whole name: the task's may be given without ``task.``, and of the model's those that files cannot tell."""
    section = key.partition(".")[0]
    if key not in UNTOLD and section in ("model", "training", "dataset", "baseline", "start"):
        raise BindscopeError(
            f"--set {key}: an import takes this from the files or has no use for it; only the task's settings, "
            f"{', '.join(UNTOLD[:-1])} and {UNTOLD[-1]} can be set."
        )
    return key if section in ("task", "model") else f"task.{key}"


def order_by_step(files: Iterable[Path]) -> dict[int, Path]:
    """Each file by its step, the last number in its name."""
    found: dict[int, Path] = {}
    for file in files:
        numbers = re.findall(r"\d+", file.name if file.is_dir() else file.stem)
        if not numbers:
            raise BindscopeError(f"{file}: its name holds no step; rename it, as in 'step_1000{file.suffix}'.")
        step = int(numbers[-1])
        if step in found:
            raise BindscopeError(f"{file}: step {step} is also the step of {found[step]}; rename one of them.")
        found[step] = file
    if not found:
        raise BindscopeError("name at least one checkpoint file.")
    return found
