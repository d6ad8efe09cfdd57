"""How a binding is looked up: whether names and values are tied by identifiers, and where address, pointer and payload are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from bindscope.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class LookupQuestion(RunQuestion):
    """Something measured of one checkpoint on drawn programs."""

    runs_on: ClassVar[str] = "programs"

    step: Step = one_step()
    n: int = ask(80, help="How many programs to draw.", ge=8)
    seed: int = a_seed()

    def answer(self, opened: Opened) -> xr.Dataset:
        """What ``measure`` gives of the checkpoint, on programs of the run's task."""
        import numpy as np

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        measured = self.measure(opened.load(step), task, np.random.default_rng(self.seed))
        return measured.assign_attrs(run=opened.name, step=step)

    def measure(self, model: Transformer, task: Any, rng: np.random.Generator) -> xr.Dataset:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Identifiers(LookupQuestion):
    """What swaps two bindings, and what leaves them as they are?"""

    command_name, method = "identifiers", "identifiers"

    n: int = ask(60, help="How many programs to draw for each intervention.", ge=8)

    def measure(self, model: Transformer, task: Any, rng: np.random.Generator) -> xr.Dataset:
        """``swapped`` and ``kept`` over (intervention, part, layer) with their intervals."""
        from bindscope.measures.binding.identifiers import draw_identifier_programs, measure_identifiers

        return measure_identifiers(model, draw_identifier_programs(task, rng, self.n, self.seed))


@dataclass(frozen=True, kw_only=True)
class Lookbacks(LookupQuestion):
    """In which layers does a value stand beside its name, and the end hold a pointer, or the value it points to?"""

    command_name, method = "lookbacks", "lookbacks"

    n: int = ask(80, help="How many pairs to draw of each kind.", ge=8)

    def measure(self, model: Transformer, task: Any, rng: np.random.Generator) -> xr.Dataset:
        """``binding`` over (layer, moved), ``source`` over (frozen, layer), ``end`` over (position, layer, came)."""
        from bindscope.measures.binding.lookbacks import draw_lookback_pairs, measure_lookbacks

        return measure_lookbacks(model, draw_lookback_pairs(task, rng, self.n))
