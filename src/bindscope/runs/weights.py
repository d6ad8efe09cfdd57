"""Tensors as safetensors bytes and back into a model, checked name by name and shape by shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.schema import to_mapping

StorageType = Literal["float32", "float16"]


def pack_weights(
    tensors: Mapping[str, Tensor], step: int, model: ModelConfig | None = None, dtype: StorageType = "float32"
) -> bytes:
    """A safetensors file that says which step and model it holds. Half precision must not overflow."""
    packed = {name: _pack_tensor(name, tensor, step, dtype) for name, tensor in tensors.items()}
    metadata = {"format": "pt", "step": str(step)}
    if model is not None:
        metadata["model"] = json.dumps(to_mapping(model))
    return safetensors.torch.save(packed, metadata)


def unpack_tensors(content: bytes, path: Path, what: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file; ``path`` is only named in the error."""
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as problem:
        raise BindscopeError(f"{path}: {what} is not a readable safetensors file: {problem}.") from None


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors into a model of the same names and shapes, in the model's precision."""
    own = model.state_dict()
    check_names_and_shapes(own, tensors, path)
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(tensors[name])


def check_names_and_shapes(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], path: Path) -> None:
    wrong = f"{path}: a checkpoint of another model:"
    missing, extra = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing:
        raise BindscopeError(f"{wrong} it has no '{missing[0]}'.")
    if extra:
        raise BindscopeError(f"{wrong} this model has no '{extra[0]}'.")
    for name, value in own.items():
        if value.shape != tensors[name].shape:
            raise BindscopeError(
                f"{wrong} its '{name}' has shape {list(tensors[name].shape)}, this model's {list(value.shape)}."
            )


def _pack_tensor(name: str, tensor: Tensor, step: int, dtype: StorageType) -> Tensor:
    tensor = tensor.detach().cpu().contiguous()
    if not tensor.is_floating_point():
        return tensor
    packed = tensor.to(getattr(torch, dtype))
    if dtype == "float16" and not packed.isfinite().all() and tensor.isfinite().all():
        raise BindscopeError(f"step {step}: '{name}' does not fit into half precision; keep it as float32.")
    return packed
