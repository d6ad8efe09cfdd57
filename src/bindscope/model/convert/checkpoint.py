"""Weights from a file, whoever wrote it. A file is data: nothing in it is ever executed.

Two containers are read, told apart by their first bytes: safetensors, and PyTorch's own (``.pth``, ``.pt``), the latter
only as far as it holds plain tensors. Three ways of naming are understood: Bindscope's, TransformerLens's and nanoGPT's.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.model.config import Activation, ModelConfig
from bindscope.model.convert.naming import rename_weights
from bindscope.model.convert.transformer_lens import (
    Norm,
    is_transformer_lens,
    transformer_lens_to_config,
    transformer_lens_to_state,
)
from bindscope.model.described import describe_nanogpt
from bindscope.model.transformer import Transformer
from bindscope.schema import from_mapping

SMALL = 1_000_000  # parameters that are made even where the weights are of something else
NANOGPT_SHAPE = "model_args"  # beside the weights of nanoGPT
_PICKLED = (b"PK\x03\x04", b"\x80")  # PyTorch's zip container, and its older bare pickle


def load_checkpoint(
    path: str | Path,
    config: ModelConfig | None = None,
    *,
    activation: Activation | None = None,
    norm: Norm | None = None,
    parallel: bool | None = None,
) -> Transformer:
    """The model in a checkpoint, ready to be evaluated.

    Without ``config`` the shape is taken from the file: written in it by Bindscope or nanoGPT, or inferred from the names and
    shapes of a TransformerLens state dict. The latter does not tell all of it: ``transformer_lens`` says when
    ``activation``, ``norm`` and ``parallel`` are needed.

    >>> load_checkpoint("checkpoint_step_20001.pth", activation="relu", norm="none").config.d_out
    59
    """
    path = Path(path)
    state, metadata = read_state(path)
    where = str(path)
    if is_transformer_lens(state):
        told = {"activation": activation, "norm": norm, "parallel": parallel}
        config = config or transformer_lens_to_config(state, **told, where=where)  # type: ignore[arg-type]
        state = transformer_lens_to_state(state, config, where=where)
    elif NANOGPT_SHAPE in metadata:
        described = describe_nanogpt(_read_settings(metadata, NANOGPT_SHAPE, where), where)
        config, state = described.config, rename_weights(state, described, where)
    check_finite(state, where)
    return build_model(config or _config_from_metadata(metadata, where), state, where)


def read_state(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The named tensors of a file, on the CPU, and the text that the file carries beside them."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as problem:
        raise BindscopeError(f"{path}: cannot be read: {problem.strerror}.") from None
    if start.startswith(_PICKLED) and start[8:] != b"{":  # a safetensors file is a length of 8 bytes, then JSON
        return _read_torch(path)
    return _read_safetensors(path)


def build_model(config: ModelConfig, state: Mapping[str, Tensor], where: str) -> Transformer:
    """The model of this shape with these weights, to be evaluated; a shape that they cannot fill takes no memory."""
    check_size(config, state, where)
    model = Transformer(config)
    load_into(model, state, where)
    return model.eval()


def check_size(config: ModelConfig, state: Mapping[str, Tensor], where: str) -> None:
    """Refuse a shape with far more parameters than there are weights, before a model of it takes memory.

    Of one that is only somewhat larger ``load_into`` says which weight is missing or of another shape.
    """
    n_weights = sum(tensor.numel() for tensor in state.values())
    n_needed = config.n_parameters + (config.n_positions * config.d_model if config.positions == "normal" else 0)
    if n_needed > 2 * n_weights + SMALL:
        raise BindscopeError(
            f"{where}: a checkpoint of another model: it holds {n_weights:,} numbers, and one of this shape has {n_needed:,}."
        )


def load_into(model: nn.Module, state: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a model of exactly these names and shapes, in the model's own precision."""
    own = model.state_dict()
    check_names_and_shapes(own, state, where)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(state[name])


def check_finite(state: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights with which a model computes nothing."""
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise BindscopeError(f"{where}: '{name}' holds numbers that are not finite; copy it again.")


def check_names_and_shapes(own: Mapping[str, Tensor], state: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors of another model than the one that ``own`` belongs to."""
    wrong = f"{where}: a checkpoint of another model:"
    missing, extra = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing:
        raise BindscopeError(f"{wrong} it has no '{missing[0]}'.")
    if extra:
        raise BindscopeError(f"{wrong} this model has no '{extra[0]}'.")
    for name, tensor in own.items():
        if tensor.shape != state[name].shape:
            raise BindscopeError(
                f"{wrong} its '{name}' has shape {list(state[name].shape)}, this model's {list(tensor.shape)}."
            )


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError) as problem:
        raise BindscopeError(
            f"{path}: neither a whole safetensors file nor a PyTorch one ({_one_line(problem)}); copy it again."
        ) from None


def _read_torch(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Only tensors, and of nanoGPT its settings: PyTorch's restricted unpickler refuses everything that could run code."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about old or foreign pickles, which are read or refused anyway
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # a damaged or hostile pickle can raise anything; none of it is ours
        raise BindscopeError(
            f"{path}: not a plain PyTorch state dict, or damaged ({_one_line(problem)}); "
            "save it again with torch.save(model.state_dict(), path)."
        ) from None
    if not isinstance(content, Mapping) or not content:
        raise BindscopeError(f"{path}: holds {_kind(content)} where a state dict of named tensors is needed.")
    metadata = {}
    if isinstance(content.get("model"), Mapping) and isinstance(content.get(NANOGPT_SHAPE), Mapping):
        metadata = {NANOGPT_SHAPE: json.dumps(content[NANOGPT_SHAPE], default=str)}
        content = content["model"]
    for name, value in content.items():
        if not isinstance(name, str) or not _is_plain_tensor(value):
            raise BindscopeError(f"{path}: entry {name!r} holds {_kind(value)} where a state dict has a plain tensor.")
    return dict(content), metadata


def _is_plain_tensor(value: Any) -> bool:
    """Dense, in memory and no larger than the bytes behind it (a stride of 0 would claim any size)."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        return False
    return value.numel() * value.element_size() <= value.untyped_storage().nbytes()


def _config_from_metadata(metadata: Mapping[str, str], where: str) -> ModelConfig:
    if "model" not in metadata:
        raise BindscopeError(
            f"{where}: neither a TransformerLens state dict nor a file that says which model it holds; "
            "give its configuration as well."
        )
    return from_mapping(ModelConfig, _read_settings(metadata, "model", where), where=f"{where}: model")


def _read_settings(metadata: Mapping[str, str], key: str, where: str) -> dict[str, Any]:
    try:
        settings = json.loads(metadata[key])
    except ValueError as problem:
        raise BindscopeError(f"{where}: its model configuration is not JSON ({problem}).") from None
    if not isinstance(settings, dict):
        raise BindscopeError(f"{where}: its model configuration is no table of settings.")
    return settings


def _kind(value: Any) -> str:
    return f"an empty {type(value).__name__}" if value == {} else f"a value of type {type(value).__name__}"


def _one_line(problem: Exception) -> str:
    """The first line of another library's message, short enough for a sentence."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    first = lines[0].split(". ")[0].rstrip(".")
    return first if len(first) <= 120 else first[:117] + "..."
