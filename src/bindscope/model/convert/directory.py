"""The weights of a local Hugging Face directory: one safetensors file, shards with an index, or ``pytorch_model.bin``.

Nothing of Hugging Face is needed, nothing is downloaded, and of a pickle only tensors are read.

>>> read_weights(Path("gpt2"))["wte.weight"].shape
torch.Size([50257, 768])
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.convert.checkpoint import read_state
from bindscope.model.described import CONFIG, read_json_object

SAFETENSORS, SHARDS, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"


def read_weights(directory: Path) -> dict[str, Tensor]:
    """Every tensor of the directory by the name that its file gives it."""
    weights: dict[str, Tensor] = {}
    for file in weight_files(directory):
        if file != SHARDS:
            weights |= read_state(directory / file)[0]
    return weights


def hash_directory(directory: str | Path) -> str:
    """The hash of the files that are read: what a run that starts from them is recognised by."""
    directory, digest = Path(directory), hashlib.sha256()
    for name in (CONFIG, *weight_files(directory)):
        try:
            with (directory / name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise BindscopeError(f"{directory / name}: cannot be read: {problem.strerror}.") from None
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()


def weight_files(directory: Path) -> tuple[str, ...]:
    """The files that hold the weights, the index of shards among them."""
    if (directory / SAFETENSORS).is_file():
        return (SAFETENSORS,)
    if (directory / SHARDS).is_file():
        return (SHARDS, *_shards(directory))
    if (directory / PICKLED).is_file():
        return (PICKLED,)
    raise BindscopeError(
        f"{directory}: has a {CONFIG} but no weights; copy {SAFETENSORS} (or {PICKLED}) of the same model into it."
    )


def _shards(directory: Path) -> list[str]:
    path = directory / SHARDS
    names = read_json_object(path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise BindscopeError(f"{path}: names no file for any weight; copy the directory again.")
    files = sorted(set(map(str, names.values())))
    for file in files:
        if Path(file).name != file:
            raise BindscopeError(f"{path}: '{file}' is no file of this directory.")
        if not (directory / file).is_file():
            raise BindscopeError(f"{directory}: lacks '{file}', which {SHARDS} names; copy it there.")
    return files
