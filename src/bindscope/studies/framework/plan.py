"""What measuring results would take, before they are measured: told from a trial on few examples and one checkpoint.

A trial runs the result's own code on eight examples, and then on as many more, up to an eighth of n, as its time allows.
It counts floating-point operations of matrix products and attention (torch's ``FlopCounterMode``), the largest amount of
memory that tensors held at once, and time. A straight line through the two gives the whole; further checkpoints cost as
much as the one tried. So all of it is an estimate. A trial that is not over after ``MOST_SECONDS`` is ended at its next
operation, and what it took until then is a lower bound.

>>> [(plan.name, plan.state) for plan in plan_results(library, ["chain", "heads"])]
[('chain', 'saved'), ('heads', 'to be measured')]
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from bindscope.errors import BindscopeError
from bindscope.studies.framework.results import CHECKPOINT, Context, Library, Result

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run

State = Literal["saved", "read at once", "to be measured", "cannot be told"]
FIRST = 8  # examples of the first trial
LEAST = 2 * FIRST  # … and of the second, where there is time for one
MOST_SECONDS = 30.0  # that the trials of one result take, each operation of torch aside


def _count_attention(query: Any, key: Any, value: Any, *more: Any, **options: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


UNCOUNTED = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _count_attention}  # by torch itself


@dataclass(frozen=True)
class Work:
    """What something takes: operations (a multiplication and an addition are two), seconds, bytes of tensors at once."""

    flops: float
    seconds: float
    memory: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What becomes of one result when it is asked for."""

    name: str
    state: State
    n: int = 0
    checkpoints: int = 0
    work: Work | None = None
    passes: float = 0.0  # so many whole forward passes of one sequence have as many operations
    dataset: xr.Dataset | None = None  # the saved one, or that of the trial
    reason: str = ""
    at_least: bool = False  # the trial was ended: what the work says is a lower bound


def plan_results(library: Library, names: Iterable[str], most_seconds: float = MOST_SECONDS) -> list[Plan]:
    """A plan of each result and of all it needs, in the order in which they would be made; nothing is saved.

    The trials of each take ``most_seconds`` at most.
    """
    plans: dict[str, Plan] = {}
    for name in library.order(names):
        plans[name] = _plan(library, library.results[name], plans, most_seconds)
    return list(plans.values())


def measure_work(function: Any, *arguments: Any, until: float = math.inf) -> tuple[Any, Work]:
    """What a call returns, and what it took; counting takes time too. ``until`` is when it is ended, by the clock of
    ``time.perf_counter``; what it had taken is then in the exception ``Ended``."""
    before = time.perf_counter()
    counter, memory = FlopCounterMode(display=False, custom_mapping=UNCOUNTED), LiveMemory(until)

    def taken() -> Work:
        return Work(float(counter.get_total_flops()), time.perf_counter() - before, float(memory.most))

    try:
        with counter, memory:
            returned = function(*arguments)
    except Ended as end:
        raise Ended(taken()) from end
    return returned, taken()


class Ended(Exception):
    """A trial took too long; ``work`` is what it took until it was ended."""

    def __init__(self, work: Work | None = None) -> None:
        super().__init__("the trial was ended")
        self.work = work or Work(0.0, 0.0, 0.0)


def forward_flops(run: Run) -> float:
    """Operations of one forward pass of the run's last model over its longest sequence."""
    model = run.checkpoint("last")
    tokens = torch.zeros(1, run.config.model.n_positions, dtype=torch.long)
    with torch.no_grad():
        return measure_work(model, tokens)[1].flops


class LiveMemory(TorchDispatchMode):
    """Inside, ``most`` is the largest amount of memory, in bytes, that tensors made inside held at once.

    No operation begins after the moment ``until``.
    """

    def __init__(self, until: float = math.inf) -> None:
        super().__init__()
        self.until = until
        self.now = self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.perf_counter() > self.until:
            raise Ended
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, Tensor):
                self._hold(each.untyped_storage())
        return made

    def _hold(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def _plan(library: Library, result: Result, plans: Mapping[str, Plan], most_seconds: float) -> Plan:
    n = library.settings(result).get("n", 0)
    checkpoints = len(library.steps(result))
    lacking = [plans[need] for need in result.needs if plans[need].dataset is None]
    if lacking:
        return Plan(result.name, "cannot be told", n, checkpoints, reason=lacking[0].reason)
    if all(plans[need].state != "to be measured" for need in result.needs):
        found = library.find(result.name)
        if found is not None:
            state: State = "saved" if found.path is not None else "read at once"
            return Plan(result.name, state, n, checkpoints, dataset=found.dataset, reason=found.reason)
    if checkpoints == 0:
        return Plan(result.name, "cannot be told", n, reason="it reads no checkpoint, and takes long")
    return _try(library, result, n, plans, most_seconds)


def _try(library: Library, result: Result, n: int, plans: Mapping[str, Plan], most_seconds: float) -> Plan:
    steps = library.steps(result)
    before = library.find_before(result.name)
    known = set() if before is None else {str(sha256) for sha256 in before[CHECKPOINT].values}
    due = sum(library.run.manifest.checkpoints[step].sha256 not in known for step in steps)
    found = {need: plans[need].dataset for need in result.needs}
    context = Context(
        _with_one_step(library.run, steps[-1]) if len(steps) > 1 else library.run,
        n,
        library.seed,
        {need: dataset for need, dataset in found.items() if dataset is not None},
        library.runs_directory,
    )
    one_forward = forward_flops(library.run)
    try:
        dataset, whole = _estimate(result, context, time.perf_counter() + most_seconds)
    except BindscopeError as problem:
        return Plan(result.name, "cannot be told", n, len(steps), reason=f"a trial on few examples: {problem}")
    except Ended as end:
        work = Work(due * end.work.flops, due * end.work.seconds, end.work.memory)
        why = f"a trial on few examples was ended after {most_seconds:g} s; its numbers are lower bounds, a longer one may tell more"
        return Plan(result.name, "to be measured", n, due, work, work.flops / one_forward, reason=why, at_least=True)
    work = Work(due * whole.flops, due * whole.seconds, whole.memory)
    return Plan(result.name, "to be measured", n, due, work, work.flops / one_forward, dataset)


def _estimate(result: Result, context: Context, until: float) -> tuple[xr.Dataset, Work]:
    """What the result takes at one checkpoint, told from two trials, or from one where a second would take too long."""
    n = context.n
    small, dataset, first = _try_first(result, context, until)
    large = min(n, max(LEAST, n // 8), int(small * (until - time.perf_counter()) / max(first.seconds, 1e-9)))
    if large <= small:
        return dataset, _extend(None, 0, first, small, n)
    try:
        dataset, second = measure_work(result.compute, replace(context, n=large), until=until)
    except Ended:  # it was slower than in proportion
        return dataset, _extend(None, 0, first, small, n)
    if time.perf_counter() + second.seconds < until:  # again, for counting takes time itself
        before = time.perf_counter()
        result.compute(replace(context, n=large))
        second = replace(second, seconds=time.perf_counter() - before)
    return dataset, _extend(first, small, second, large, n)


def _try_first(result: Result, context: Context, until: float) -> tuple[int, xr.Dataset, Work]:
    """The first trial, on few examples, or on as many as the result needs: how many, its dataset and what it took."""
    n = context.n
    *fewer, most = sorted({min(n, size) for size in (FIRST, LEAST, max(1, n // 8))} if n else {0})
    for size in fewer:
        with suppress(BindscopeError):  # too few, perhaps
            return size, *measure_work(result.compute, replace(context, n=size), until=until)
    return most, *measure_work(result.compute, replace(context, n=most), until=until)


def _extend(first: Work | None, small: int, second: Work, large: int, n: int) -> Work:
    """The straight line through two trials at n; the time in proportion."""
    if large == n or n == 0:
        return second

    def line(name: str) -> float:
        end = getattr(second, name)
        slope = end / large if first is None else max(0.0, end - getattr(first, name)) / (large - small)
        return float(end + slope * (n - large))

    return Work(line("flops"), second.seconds * n / large, line("memory"))


def _with_one_step(run: Run, step: int) -> Run:
    """The same run as if only this checkpoint had been saved."""
    manifest = replace(run.manifest, checkpoints={step: run.manifest.checkpoints[step]})
    return type(run)(run.path, manifest, run.placement)
