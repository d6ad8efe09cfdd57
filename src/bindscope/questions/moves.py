"""Which heads move the value, or a pointer to it, from where to where, in one program or on the mean over many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.questions.fields import one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.pairs import PairQuestion
from bindscope.questions.program import Progress
from bindscope.questions.question import ask

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.binding.moves.patches import Moved
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.task import Batch


@dataclass(frozen=True, kw_only=True)
class Moves(PairQuestion):
    """Which heads move the value along the chain, or a pointer to it, from which position to which?"""

    command_name, method = "moves", "moves"

    step: Step = one_step()
    n: int = ask(24, help="How many pairs to draw for the value and for each reference.", ge=2, live={"le": 64})
    depth: int | None = ask(
        None, help="The depth of drawn chains; the deepest of the task when left out.", live={"ge": 1, "le": 99}
    )

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Effects over (what, layer, index, position), means over pairs with intervals (``stream_moves``)."""
        found = []
        for dataset, n in self._grow(opened):
            found.append(dataset)
            if on_progress is not None:
                on_progress(len(found), n)
        return found[-1]

    def parts(self, opened: Opened) -> Iterator[xr.Dataset]:
        """The same answer as it grows; what is still to come is missing."""
        for dataset, _ in self._grow(opened):
            yield dataset

    def _grow(self, opened: Opened) -> Iterator[tuple[xr.Dataset, int]]:
        from bindscope.measures.binding.moves.patches import stream_moves

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        model = opened.load(step)
        if not model.config.causal:
            raise BindscopeError("moves are read in models that see what stands before alone; this one sees both ways.")
        moved, reference, about = self._typed(opened, task) if self.program is not None else self._drawn(model, task)
        for dataset in stream_moves(model, moved, reference):
            yield self._read(dataset, about | {"run": opened.name, "step": step}), len(moved) + 1

    def _typed(self, opened: Opened, task: Any) -> tuple[list[Moved], Batch | None, dict[str, Any]]:
        """The typed pair, and of its base program a pair for every reference that could name another variable."""
        import numpy as np

        from bindscope.measures.binding.moves.patches import pointer_contrast, value_contrast
        from bindscope.measures.binding.one_program import other_programs
        from bindscope.tasks.binding import (
            PointerPairs,
            outputs_of_digits,
            pair_programs,
            point_elsewhere,
            read_pair,
            references_of,
        )

        assert self.program is not None
        assert self.counterfactual is not None
        program, other, pairs = read_pair(task, self.program, self.counterfactual, opened.n_positions)
        base, source = (program, other) if self.direction == "noising" else (other, program)
        if base.depth != source.depth or base.chain != source.chain:
            raise BindscopeError("the two programs follow different lines; change the constant at the root alone.")
        moved, turned = [value_contrast(pairs, self.direction)], {}
        for reference in references_of(base.depth):
            if (elsewhere := point_elsewhere(base, reference)) is None:
                continue
            both = pair_programs(base, elsewhere[0], task)
            target = outputs_of_digits(both.base)[np.array([elsewhere[1]])]
            moved.append(pointer_contrast(PointerPairs(both, reference, target)))
            turned[reference] = elsewhere[0].one_line
        about = {"pairs": f"one typed pair, of depth {base.depth}", "n_pairs": 1, "program": base.one_line}
        about["spelled"] = "".join(base.assignments[line - 1].source for line in base.chain[::-1]) + f"{base.query}:"
        about["pointers"] = "\n".join(f"{name}: {text}" for name, text in turned.items())
        return moved, other_programs(task, base.n_lines), about

    def _drawn(self, model: Transformer, task: Any) -> tuple[list[Moved], Batch | None, dict[str, Any]]:
        """Pairs of one depth, of which both programs are answered correctly."""
        import numpy as np

        from bindscope.measures.binding.mechanism import answers_right
        from bindscope.measures.binding.moves.patches import pointer_contrast, value_contrast
        from bindscope.tasks.binding import references_of, sample_pointer_pairs

        depth = self.depth or min(task.max_depth, (task.lines - self.first_root_line + 1) // 2)
        value, rights = replace(self, depth=depth).draw(task).pairs, []
        drawn = [value_contrast(value)]
        rights.append(answers_right(model, value))
        for reference in references_of(depth):
            rng = np.random.default_rng([self.seed, depth])
            pointers = sample_pointer_pairs(task, rng, self.n, depth, reference, self.first_root_line)
            drawn.append(pointer_contrast(pointers))
            rights.append(answers_right(model, pointers.pairs))
        n = min(int(right.sum()) for right in rights)
        if n < 2:
            raise BindscopeError(
                f"of {self.n} pairs of depth {depth} both programs are answered correctly in {n}; "
                "ask a later checkpoint, another depth, or more pairs."
            )
        moved = [each.take(np.flatnonzero(right)[:n]) for each, right in zip(drawn, rights)]
        note = (
            f"{n} pairs of depth {depth} that are answered correctly, drawn with seed {self.seed}; "
            f"roots from line {self.first_root_line} on"
        )
        return moved, None, {"pairs": note, "n_pairs": n}

    def _read(self, dataset: xr.Dataset, about: dict[str, Any]) -> xr.Dataset:
        """Means over pairs with intervals, and what they say."""
        import numpy as np

        from bindscope.interventions.outcome import summarise_outcomes
        from bindscope.measures.binding.moves.reading import tell_moves

        if about["n_pairs"] > 1:
            mean = summarise_outcomes(dataset, np.random.default_rng([self.seed, 1])).drop_vars("n")
            about = about | {"interval": "95 %, bootstrap over pairs"}
        else:
            mean = dataset.isel(pair=0, drop=True)
        spelled = dict(zip(dataset.position.values.tolist(), str(about.get("spelled", ""))))
        mean = mean.assign_coords(spelled=("position", [spelled.get(name, "") for name in mean.position.values]))
        return mean.assign_attrs({**about, "finding": tell_moves(mean, spelled)})
