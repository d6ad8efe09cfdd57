"""Which of two hypotheses a checkpoint agrees with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.program import Progress
from bindscope.questions.question import BadValue, RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr

KNOWN = "value-forward, pointer-backward or early-line, or a function of your own, PATH.py:NAME (docs/hypotheses.md)."


def to_hypothesis(value: Any, option: str) -> Any:
    """One that comes with Bindscope by its name; or one's own, from its location or as the function itself."""
    from bindscope.measures.binding.hypotheses.causal import find_hypothesis

    return find_hypothesis(value, option)


@dataclass(frozen=True, kw_only=True)
class Hypotheses(RunQuestion):
    """Does the model do what this causal model says, or what that one does?

    No request has the fields ``first`` and ``second``: a server never loads a file that somebody names.
    """

    command_name, method, runs_on = "hypotheses", "hypotheses", "programs"

    first: Any = ask(
        "value-forward", convert=partial(to_hypothesis, option="--first"), live={"never": True},
        help=f"One hypothesis: {KNOWN}",
    )  # fmt: skip
    second: Any = ask(
        "pointer-backward", convert=partial(to_hypothesis, option="--second"), live={"never": True},
        help=f"The other: {KNOWN}",
    )  # fmt: skip
    step: Step = one_step()
    n: int = ask(48, help="How many pairs to draw of each kind and depth.", ge=8)
    seed: int = a_seed()

    def values(self) -> dict[str, Any]:
        from bindscope.measures.binding.hypotheses.causal import SHIPPED

        written = {}
        for name in ("first", "second"):
            each = getattr(self, name)
            if not each.location and each.name not in SHIPPED:
                raise BadValue(name, f"'{each.name}' stands in no file; put it into one to write the question down.")
            written[name] = each.location or each.name
        return super().values() | written

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """``followed`` and ``rival`` over (condition, site, layer), and ``score`` over (hypothesis, condition)."""
        import numpy as np

        from bindscope.measures.binding.hypotheses.scoring import score_hypotheses

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        rng = np.random.default_rng(self.seed)
        dataset = score_hypotheses(opened.load(step), task, self.first, self.second, rng, self.n, on_progress)
        return dataset.assign_attrs(run=opened.name, step=step)
