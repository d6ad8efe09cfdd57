"""A second device that any machine has: the CPU's numbers under the name ``meta``, as strict as a GPU is.

Tensors that stand elsewhere hold ordinary CPU tensors, so every answer must equal the CPU's bit for bit. What a GPU
refuses is refused: an operation on tensors of two devices (but for single numbers, indices and copies), NumPy without
``cpu()``; and double precision, which mps lacks.

>>> with Elsewhere():
...     torch.zeros(3, device=ELSEWHERE) + torch.zeros(3)   # StrayTensor
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

ELSEWHERE = torch.device("meta")
aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default}
CREATED = {aten.lift_fresh.default, aten.lift_fresh_copy.default}
INDEXING = {  # operations that take their indices from the CPU as well: which arguments those are
    aten.index.Tensor: (1,), aten.index_put_.default: (1,), aten.index_put.default: (1,),
    aten._index_put_impl_.default: (1,), aten._unsafe_index.Tensor: (1,),
}  # fmt: skip


class StrayTensor(RuntimeError):
    """Tensors of two devices met, or one was made that the device cannot hold."""


class Elsewhere(TorchDispatchMode):
    """Inside, tensors can be made on, and moved to, ``ELSEWHERE``. ``n_operations`` counts what was computed there."""

    def __init__(self) -> None:
        super().__init__()
        self.n_operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n_operations += any(isinstance(each, There) for each in tree_flatten((args, kwargs))[0])
        return compute(function, args, kwargs or {})


class There(Tensor):
    """A tensor that stands elsewhere; ``held`` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> There:
        if held.dtype in (torch.float64, torch.complex128):
            raise StrayTensor("this device has no double precision: take the numbers to the CPU first")
        made = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=ELSEWHERE, requires_grad=False,
        )  # fmt: skip
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(function, args, kwargs or {})

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in (Tensor.__getitem__, Tensor.__setitem__):  # torch would move lists to ``meta``, and lose them
            args = (args[0], as_tensors(args[1]), *args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    def __repr__(self, **_: Any) -> str:
        return f"There({self.held!r})"

    def tolist(self) -> Any:
        return self.held.tolist()


def as_tensors(index: Any) -> Any:
    """An index whose lists and arrays are tensors on the CPU."""
    if isinstance(index, tuple):
        return tuple(map(as_tensors, index))
    return torch.as_tensor(index) if isinstance(index, list | np.ndarray) else index


def compute(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operation gives, on the device it belongs to."""
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
    there = any(isinstance(each, There) for each in tensors)
    target = kwargs.get("device")
    if target is not None and torch.device(target) == ELSEWHERE:
        there, kwargs = True, {**kwargs, "device": torch.device("cpu")}
    elif target is not None:
        there = False
    elif not there:
        return function(*args, **kwargs)
    check(function, args, kwargs)
    if function is aten._local_scalar_dense.default:
        there = False
    if any(each.device == ELSEWHERE and not isinstance(each, There) for each in tensors):
        raise StrayTensor(f"{function}: a tensor of torch's own meta device, whose numbers are lost")
    given = tree_map(lambda each: each.held if isinstance(each, There) else each, (args, kwargs))
    found = function(*given[0], **given[1])
    if function in COPIES and function is not aten._to_copy.default:
        return args[0]
    known = {id(each.held): each for each in tensors if isinstance(each, There)}  # changed in place: the same tensor

    def wrap(each: Any) -> Any:
        return known[id(each)] if id(each) in known else There(each) if isinstance(each, Tensor) else each

    return tree_map(wrap, found) if there else found


def check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse tensors of two devices in one operation."""
    if function in COPIES or function in CREATED:
        return
    index = INDEXING.get(function, ())
    found = tree_flatten([[each for place, each in enumerate(args) if place not in index], kwargs])[0]
    found = [each for each in found if isinstance(each, Tensor)]
    indices = tree_flatten([args[place] for place in index])[0]
    there = [isinstance(each, There) for each in found]
    if any(there) and any(not there and each.ndim for there, each in zip(there, found)):
        raise StrayTensor(f"{function}: tensors of two devices")
    if not any(there) and any(isinstance(each, There) for each in indices):
        raise StrayTensor(f"{function}: indices stand elsewhere than what they index")
