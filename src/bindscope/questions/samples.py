"""A new program of a run's task, drawn to a wish, with its counterfactual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bindscope.questions.fields import a_seed
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.tasks.binding import BindingTask
    from bindscope.tasks.binding.examples import ProgramPair


@dataclass(frozen=True, kw_only=True)
class Sample(RunQuestion):
    """A new program of the run's task; what is left out may be anything."""

    command_name, method, runs_on = "sample --pair", "sample", "programs"

    depth: int | None = ask(None, help="Only programs whose query is this deep.", live={"type": int, "ge": 1, "le": 13})
    distractors: int | None = ask(
        None, help="Only programs with so many chains beside the queried one.", live={"type": int, "ge": 0, "le": 30}
    )
    n_lines: int | None = ask(
        None, flag="--lines", help="Only programs of so many lines.", live={"type": int, "ge": 2, "le": 30}
    )
    seed: int = a_seed()

    def answer(self, task: BindingTask) -> xr.Dataset:
        """One pair over (program): both texts, and what describes them."""
        import numpy as np

        from bindscope.tasks.binding.examples import draw_pair

        rng = np.random.default_rng(self.seed)
        return list_pairs([draw_pair(task, rng, self.depth, self.n_lines, self.distractors)])


def list_pairs(pairs: Sequence[ProgramPair]) -> xr.Dataset:
    """Pairs over (program): both texts, and what describes them."""
    import xarray as xr

    columns: dict[str, list[Any]] = {
        "text": [base.text for base, _ in pairs],
        "counterfactual": [other.text for _, other in pairs],
        "depth": [base.depth for base, _ in pairs],
        "n_lines": [base.n_lines for base, _ in pairs],
        "root_line": [base.root_line for base, _ in pairs],
        "distractors": [len(base.distractor_chains) for base, _ in pairs],
        "answer": [base.answer for base, _ in pairs],
        "counterfactual_answer": [other.answer for _, other in pairs],
    }
    return xr.Dataset(coords={name: ("program", values) for name, values in columns.items()})
