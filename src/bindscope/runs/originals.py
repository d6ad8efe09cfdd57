"""Checkpoints from elsewhere, read where they are; of a linked one every file must still have its recorded hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert import load_checkpoint, read_model
from bindscope.model.convert.read import list_files
from bindscope.model.transformer import Transformer
from bindscope.runs.manifest import Original


def read_original(path: Path, config: ModelConfig) -> Transformer:
    """The model of a file or directory, which must have this shape."""
    model = load_checkpoint(path, config) if path.is_file() else read_model(path)
    if model.config != config:
        raise BindscopeError(f"{path}: has another shape than the first checkpoint; import them one by one.")
    return model


def link_original(path: Path) -> Original:
    """What a run records of a file or directory that it does not copy."""
    path = path.absolute()
    return Original(str(path), {str(file): _hash_file(file) for file in list_files(path)})


def read_linked(original: Original, config: ModelConfig) -> Transformer:
    """The model of a linked checkpoint; a file that is gone, was changed or was added to what is read is named."""
    for name, sha256 in original.files.items():
        if _hash_file(Path(name)) != sha256:
            raise BindscopeError(f"{name}: was changed since it was linked; put the file back, or import it again.")
    path = Path(original.path)
    added = [str(file) for file in list_files(path) if str(file) not in original.files]
    if added:
        raise BindscopeError(f"{added[0]}: was not there when {path} was linked; take it away, or import it again.")
    return read_original(path, config)


def _hash_file(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        raise BindscopeError(f"{path}: is linked and no longer there; put the file back, or import it again.")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise BindscopeError(f"{path}: is linked and cannot be read: {problem.strerror}.") from None
