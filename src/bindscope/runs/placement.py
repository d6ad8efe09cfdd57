"""Where a run's models are put when they are read, and in which number type: a property of the opened run.

>>> Run.open("runs/binding-tiny", Placement("cuda", "bfloat16")).checkpoint("last")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, cast

if TYPE_CHECKING:
    from torch import nn

    Model = TypeVar("Model", bound=nn.Module)


Device = Literal["auto", "cpu", "cuda", "mps"]
Dtype = Literal["float32", "float64", "bfloat16", "float16"]


@dataclass(frozen=True)
class Placement:
    """A device and a number type."""

    device: Device = "cpu"
    dtype: Dtype = "float32"

    def check(self) -> Placement:
        """The same with ``auto`` decided; a device that is not there, or lacks the number type, is refused."""
        if not self.options:
            return CPU
        from bindscope.training.device import select_device, select_dtype

        device = select_device(self.device)
        select_dtype(self.dtype, device)
        return Placement(cast(Device, device.type), self.dtype)

    def place(self, model: Model) -> Model:
        """The model, moved there once; whatever is computed with it takes its device and type from it."""
        from bindscope.training.device import select_device, select_dtype

        device = select_device(self.device)
        return model.to(device, select_dtype(self.dtype, device))

    @property
    def options(self) -> list[str]:
        """What a command needs to be put there again; nothing for the CPU in single precision."""
        device = [] if self.device == CPU.device else ["--device", self.device]
        return device if self.dtype == CPU.dtype else [*device, "--dtype", self.dtype]

    @property
    def recorded(self) -> dict[str, str]:
        """What the manifest of a run that is evaluated when it is made says of its numbers, beside the device."""
        return {} if self.dtype == CPU.dtype else {"evaluated_in": self.dtype}

    @property
    def results_in(self) -> str:
        """The folder inside a run's results that holds what was measured in this type: float32 stands in none.

        The device is not part of it: another one rounds differently, as another number of threads does.
        """
        return "" if self.dtype == CPU.dtype else self.dtype


CPU = Placement()
