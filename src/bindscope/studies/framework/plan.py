"""What measuring results would take, before they are measured: told from a trial on few examples and one checkpoint.

A trial runs the result's own code with n of about an eighth, and with half of that, and counts: floating-point
operations of matrix products and attention (torch's ``FlopCounterMode``), the largest amount of memory that tensors held
at once, and time. A straight line through the two gives the whole; further checkpoints cost as much as the one tried.

>>> [(plan.name, plan.state) for plan in plan_results(library, ["chain", "heads"])]
[('chain', 'saved'), ('heads', 'to be measured')]
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Mapping
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
LEAST = 16  # examples of the larger trial


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


def plan_results(library: Library, names: Iterable[str]) -> list[Plan]:
    """A plan of each result and of all it needs, in the order in which they would be made; nothing is saved."""
    plans: dict[str, Plan] = {}
    for name in library.order(names):
        plans[name] = _plan(library, library.results[name], plans)
    return list(plans.values())


def measure_work(function: Any, *arguments: Any) -> tuple[Any, Work]:
    """What a call returns, and what it took; counting takes time too."""
    before = time.perf_counter()
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter, LiveMemory() as memory:
        returned = function(*arguments)
    return returned, Work(float(counter.get_total_flops()), time.perf_counter() - before, float(memory.most))


def forward_flops(run: Run) -> float:
    """Operations of one forward pass of the run's last model over its longest sequence."""
    model = run.checkpoint("last")
    tokens = torch.zeros(1, run.config.model.n_positions, dtype=torch.long)
    with torch.no_grad():
        return measure_work(model, tokens)[1].flops


class LiveMemory(TorchDispatchMode):
    """Inside, ``most`` is the largest amount of memory, in bytes, that tensors made inside held at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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


def _plan(library: Library, result: Result, plans: Mapping[str, Plan]) -> Plan:
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
    return _try(library, result, n, plans)


def _try(library: Library, result: Result, n: int, plans: Mapping[str, Plan]) -> Plan:
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
    large = min(n, max(LEAST, n // 8))
    small = large // 2
    try:
        first = measure_work(result.compute, replace(context, n=small))[1] if 0 < small < large < n else None
        dataset, second = measure_work(result.compute, replace(context, n=large))
        before_last = time.perf_counter()
        result.compute(replace(context, n=large))  # again, for counting takes time itself
        second = replace(second, seconds=time.perf_counter() - before_last)
    except BindscopeError as problem:
        return Plan(result.name, "cannot be told", n, len(steps), reason=f"a trial on {large} examples: {problem}")
    whole = _extend(first, small, second, large, n)
    work = Work(due * whole.flops, due * whole.seconds, whole.memory)
    passes = work.flops / forward_flops(library.run)
    return Plan(result.name, "to be measured", n, due, work, passes, dataset)


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
    return type(run)(run.path, manifest)
