"""Kinds of options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

Device = Literal["auto", "cpu", "cuda", "mps"]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Setting = Annotated[tuple[str, ...], Parameter(name="--set", negative="", show_default=False)]
