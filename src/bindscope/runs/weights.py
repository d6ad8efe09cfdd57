"""Tensors as safetensors bytes and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.schema import to_mapping

StorageType = Literal["float32", "float16"]


def pack_weights(
    tensors: Mapping[str, Tensor], step: int, model: ModelConfig | None = None, dtype: StorageType = "float32"
) -> bytes:
    """A safetensors file that says which step and model it holds: equal tensors make equal files, byte for byte.

    Half precision must not overflow.
    """
    packed = {name: _pack_tensor(name, tensor, step, dtype) for name, tensor in tensors.items()}
    metadata = {"format": "pt", "step": str(step)}
    if model is not None:
        metadata["model"] = json.dumps(to_mapping(model))
    return _order_header(safetensors.torch.save(packed, metadata))


def pack_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file of tensors as they are: equal ones make equal files, byte for byte."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return _order_header(safetensors.torch.save(plain, dict(metadata)))


def unpack_metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors file that was read before."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}


def unpack_tensors(content: bytes, path: Path, what: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, in the order of names; ``path`` is only named in the error."""
    try:
        return dict(sorted(safetensors.torch.load(content).items()))  # safetensors gives another order each time
    except (safetensors.SafetensorError, ValueError, KeyError) as problem:
        raise BindscopeError(f"{path}: {what} is not a readable safetensors file: {problem}.") from None


def _order_header(content: bytes) -> bytes:
    """The same file with its header in one order: safetensors writes the metadata in another one each time."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the tensors begin at a multiple of eight
    return b"".join((len(header).to_bytes(8, "little"), header, memoryview(content)[end:]))


def _pack_tensor(name: str, tensor: Tensor, step: int, dtype: StorageType) -> Tensor:
    tensor = tensor.detach().cpu().contiguous()
    if not tensor.is_floating_point():
        return tensor
    packed = tensor.to(getattr(torch, dtype))
    if dtype == "float16" and not packed.isfinite().all() and tensor.isfinite().all():
        raise BindscopeError(f"step {step}: '{name}' does not fit into half precision; keep it as float32.")
    return packed
