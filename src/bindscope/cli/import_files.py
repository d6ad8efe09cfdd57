"""``bindscope import``: checkpoints from elsewhere become a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bindscope.cli.display import accuracy_of
from bindscope.cli.options import HERE, Flag, Place, Setting
from bindscope.cli.settings import parse_settings
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY

CONFIG, NANOGPT = "config.json", "ckpt.pt"  # what a directory with a model has
CALLED_BY_STEP = re.compile(
    r"(?:.*[-_.])?(?:step|checkpoint|ckpt|iter)[-_]?\d+(?:\.(?:pth?|safetensors))?", re.IGNORECASE
)
UNTOLD = ("model.activation", "model.norm", "model.parallel")  # by TransformerLens files


def import_files(
    *files: Path,
    family: str = "binding",
    as_: Annotated[str, Parameter(name="--as")],
    out: Path = RUNS_DIRECTORY,
    n: int = 2000,
    link: Flag = False,
    tokenizer: Path | None = None,
    settings: Setting = (),
    note: str = "",
    place: Place = HERE,
) -> None:
    """Make a run of checkpoints from elsewhere.

    Reads Hugging Face directories (GPT-2, GPT-NeoX, Llama, Mistral, Qwen2),
    nanoGPT's ckpt.pt, TransformerLens state dicts and safetensors files; no
    code in them is run. The step of each is the last number in its name; a
    single directory without a number is step 0. One folder that holds
    step1000/, step_1000/ or checkpoint-1000/ is a series.

    Examples:
        bindscope import checkpoints/*.pth --family assign-add --as released
        bindscope import exported/step*/ --as mine --set lines=8
        bindscope import exported/ --as mine --link
        bindscope import pythia-70m/ --family code --as pythia --link

    Parameters
    ----------
    files
        The checkpoint files or directories, all of one model; or one folder that holds them.
    family
        The task that the model was trained on: assign-add, binding, templates, or one of your own as PATH.py:NAME; or code,
        which asks a language model binding programs as text.
    as_
        The name of the new run.
    out
        The directory that holds runs.
    n
        How many examples each split has on which every checkpoint is measured.
    link
        Copy no weights: read them where they are, as long as the files have the hashes they have now.
    tokenizer
        With --family code: a tokenizer.json or the directory of one, where none lies beside the models.
    settings
        Change one of the task's settings, or model.activation, model.norm or model.parallel (which TransformerLens files
        do not tell), as KEY=VALUE; give it once per setting.
    note
        What the checkpoints are, in a sentence; it stands wherever the run is described.
    """
    from bindscope.measures.evaluation import build_evaluator
    from bindscope.runs.adopt import adopt_checkpoints
    from bindscope.runs.config import override
    from bindscope.runs.lineage import describe_lineage
    from bindscope.studies.framework.presets import find_family_preset

    found, left_out = find_series(files)
    by_step = order_by_step(found)
    changes = {_qualify(key): value for key, value in parse_settings(settings).items()}
    config = override(find_family_preset(family).config, {**changes, "name": as_})
    run = adopt_checkpoints(
        config,
        by_step,
        out / as_,
        lambda task: build_evaluator(task, n, config.seeds["evaluation"]),
        told=[key.removeprefix("model.") for key in changes if key in UNTOLD],
        report=_print_line,
        link=link,
        tokenizer=tokenizer,
        placement=place,
        note=note,
    )
    for sentence in (*left_out, *describe_lineage(run.manifest.data)):
        print(f"Note: {sentence}")
    counted = "1 checkpoint is" if len(by_step) == 1 else f"{len(by_step)} checkpoints are"
    print(f"{counted} now the run {run.path}. Next: bindscope trajectory {run.path}")


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


def find_series(files: Sequence[Path]) -> tuple[Sequence[Path], list[str]]:
    """The checkpoints in a folder that is named alone, by how they are called, and a sentence about other models in it.

    A folder without any is taken for a checkpoint itself.
    """
    missing = [str(file) for file in files if not file.exists()]
    if missing:
        raise BindscopeError(f"{', '.join(missing)}: no such file or directory; nothing is downloaded.")
    if len(files) != 1 or not files[0].is_dir():
        return files, []
    folder = files[0]
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = [path for path in inside if CALLED_BY_STEP.fullmatch(path.name)]
    others = [path for path in inside if path not in found and _holds_model(path)]
    if not found and _holds_model(folder):
        return files, []
    if not found:
        raise BindscopeError(
            f"{folder}: holds no checkpoint: neither a {CONFIG} nor anything that is called as in step1000 or checkpoint-1000."
        )
    others += [folder] if _holds_model(folder) else []
    names = ", ".join(map(str, others))
    return found, [f"left out, for the name is not like step1000: {names}."] if others else []


def _holds_model(path: Path) -> bool:
    return any((path / name).is_file() for name in (CONFIG, NANOGPT))


def order_by_step(files: Iterable[Path]) -> dict[int, Path]:
    """Each file by its step, the last number in its name. A directory that is alone and tells none is step 0."""
    from bindscope.runs.manifest import is_step

    files, found = list(files), dict[int, Path]()
    if len(files) == 1 and files[0].is_dir() and not re.search(r"\d", files[0].name):
        return {0: files[0]}
    for file in files:
        numbers = re.findall(r"\d+", file.name if file.is_dir() else file.stem)
        if not numbers or not is_step(numbers[-1]):
            raise BindscopeError(f"{file}: its name holds no step; rename it, as in 'step_1000{file.suffix}'.")
        step = int(numbers[-1])
        if step in found:
            raise BindscopeError(f"{file}: step {step} is also the step of {found[step]}; rename one of them.")
        found[step] = file
    if not found:
        raise BindscopeError("name at least one checkpoint file.")
    return found
