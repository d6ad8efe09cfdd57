"""Kinds of options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bindscope.runs.cluster import N_RETRIES, PerRun
from bindscope.runs.placement import Device, Dtype, Placement

AtLeastOne = Annotated[int, Parameter(validator=Number(gte=1))]
Jobs = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=1),
        help="How many processes measure, with one thread each; as many as there are processors where that pays, when left "
        "out. The numbers are the same.",
    ),
]
Cluster = Annotated[
    str | None,
    Parameter(
        help="Measure on the machines of a Ray cluster instead: its address, or auto for the one this machine belongs to. All "
        "must share the run's directory; the numbers are the same.",
    ),
]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Setting = Annotated[tuple[str, ...], Parameter(name="--set", negative="", show_default=False)]


@Parameter(name="*", help="What each run of a sweep asks of a cluster.")
@dataclass(frozen=True)
class EachRun(PerRun):
    """What each run of a sweep asks of a cluster."""

    cpus: Annotated[
        int,
        Parameter(name="--cpus-per-run", help="With --cluster: how many processors, and threads, each run has."),
    ] = 1
    gpus: Annotated[
        float | None,
        Parameter(
            name="--gpus-per-run",
            help="With --cluster: how many GPUs each run has; a fraction shares one. One with --device cuda, when left out.",
        ),
    ] = None
    retries: Annotated[
        int,
        Parameter(
            name="--retries",
            help="With --cluster: how often a run goes on elsewhere when its machine or process is lost.",
        ),
    ] = N_RETRIES


EACH_RUN = EachRun()


@Parameter(name="*", help="Where the models of the command are put.")
@dataclass(frozen=True)
class Place(Placement):
    """Where a command's models are put: two options of every command that runs one."""

    device: Annotated[Device, Parameter(help="Where the model computes: the fastest there is, or this one.")] = "cpu"
    dtype: Annotated[Dtype, Parameter(help="The numbers it computes in, where the device has them.")] = "float32"


HERE = Place()
