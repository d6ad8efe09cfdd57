"""Other people's models: one function for all that is read.

    a directory with config.json    Hugging Face: GPT-2, GPT-NeoX (Pythia), Llama, Mistral, Qwen2
    a directory with ckpt.pt        nanoGPT, as its train.py saves it; or that file itself
    a file                          TransformerLens state dicts (.pth, .safetensors), checkpoints of Bindscope

A file is data: nothing in it is executed. Whatever would change the numbers and cannot be expressed is refused.

>>> model = read_model("pythia-14m")
>>> run(model, tokens, read=["L3.H1.pattern"])
"""

from __future__ import annotations

from pathlib import Path

from bindscope.model.config import Activation
from bindscope.model.convert.checkpoint import build_model, load_checkpoint
from bindscope.model.convert.directory import read_weights, weight_files
from bindscope.model.convert.naming import rename_weights
from bindscope.model.convert.transformer_lens import Norm
from bindscope.model.described import CONFIG, describe_directory
from bindscope.model.transformer import Transformer

NANOGPT = "ckpt.pt"


def read_model(
    path: str | Path,
    *,
    activation: Activation | None = None,
    norm: Norm | None = None,
    parallel: bool | None = None,
    only: str | None = None,
) -> Transformer:
    """The model at a path, in single precision and ready to be evaluated.

    ``activation``, ``norm`` and ``parallel`` are for TransformerLens files, which do not tell them (``transformer_lens``
    says when each is needed). ``only`` takes one type of Hugging Face model and refuses the others.

    >>> read_model("out-shakespeare-char").config.n_layers
    6
    """
    path = _file_of_nanogpt(Path(path))
    if only is None and not path.is_dir():
        return load_checkpoint(path, activation=activation, norm=norm, parallel=parallel)
    described = describe_directory(path, only)
    state = rename_weights(read_weights(path), described, str(path))
    return build_model(described.config, state, str(path))


def list_files(path: Path) -> list[Path]:
    """The files from which ``read_model`` makes the model at a path.

    >>> list_files(Path("pythia-14m"))
    [PosixPath('pythia-14m/config.json'), PosixPath('pythia-14m/model.safetensors')]
    """
    path = _file_of_nanogpt(path)
    return [path / name for name in (CONFIG, *weight_files(path))] if path.is_dir() else [path]


def _file_of_nanogpt(path: Path) -> Path:
    """nanoGPT's file, of a directory in which it is the model."""
    nanogpt = path.is_dir() and not (path / CONFIG).exists() and (path / NANOGPT).is_file()
    return path / NANOGPT if nanogpt else path
