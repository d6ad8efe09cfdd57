"""What moves where in a run on programs, as Python meets it: circuits, algorithms and how bindings are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bindscope.notebook.asking import asks
from bindscope.notebook.drawn import Drawn
from bindscope.notebook.view import RunView, Step
from bindscope.questions.algorithm import Algorithm
from bindscope.questions.edges import Edges, Method
from bindscope.questions.hypotheses import Hypotheses
from bindscope.questions.lookups import Identifiers, Lookbacks
from bindscope.questions.mixture import Mixture
from bindscope.questions.moves import Moves
from bindscope.questions.pairs import Direction
from bindscope.questions.reassignment import Reassignment

if TYPE_CHECKING:
    from bindscope.tasks.binding import BindingTask


class MechanismsView(RunView):
    """The part of ``ProgramsView`` that asks how answers come about."""

    @property
    def task(self) -> BindingTask:
        """What it was asked: lines, variables and depths."""
        return cast("BindingTask", self.run.config.task)

    @asks(Edges)
    def edges(
        self,
        *,
        step: Step = "last",
        points: int = 8,
        checked: int = 24,
        method: Method = "gradient",
        random: int = 4,
        n: int = 32,
        depth: int | None = None,
        first_root_line: int | None = None,
        seed: int = 0,
    ) -> Drawn:
        """Every edge between parts attributed, some patched exactly, and circuits of the strongest tried.

        >>> run.edges(depth=2, n=8, checked=4).faithfulness.sel(circuit="attributed")
        """
        question = Edges(
            run=self.name, step=step, points=points, checked=checked, estimate=method, random=random, n=n,
            depth=depth,
            first_root_line=self._root_line(first_root_line), seed=seed,
        )  # fmt: skip
        return self._drawn(question.answer(self.opened), "edges")

    @asks(Moves)
    def moves(
        self,
        program: str | None = None,
        counterfactual: str | None = None,
        *,
        step: Step = "last",
        direction: Direction = "noising",
        n: int = 24,
        depth: int | None = None,
        first_root_line: int | None = None,
        seed: int = 0,
    ) -> Drawn:
        """Every head patched and ablated at every position of the chain: ``head`` over (what, layer, index, position), what
        ``together`` all heads of a layer do there, what the residual stream ``held``; ``.attrs["finding"]`` says it in words.

        >>> run.moves("k=9;c=k;t=6;b=c;#b:", "k=4;c=k;t=6;b=c;#b:").together.sel(what="value", position="colon")
        """
        question = Moves(
            run=self.name, program=program, counterfactual=counterfactual, step=step, direction=direction, n=n, depth=depth,
            first_root_line=self._root_line(first_root_line), seed=seed,
        )  # fmt: skip
        return self._drawn(question.answer(self.opened), "moves")

    @asks(Algorithm)
    def algorithm(self, step: Step = "last", *, n: int = 48, seed: int = 0) -> Drawn:
        """Patches that tell how chains are followed; ``.plot()`` draws which hop is made in which layer.

        >>> run.algorithm(n=12).hop.sel(depth=2, reference="query")
        """
        question = Algorithm(run=self.name, step=step, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "algorithm")

    @asks(Mixture)
    def mixture(
        self, step: Step = "last", *, layer: int | None = None, depth: int = 1, n: int = 300, seed: int = 0
    ) -> Drawn:
        """Weights of the accounts that patched questions are looked up by: ``weight`` over (layer, position, account).

        >>> run.mixture(n=100).weight.sel(position="end", account="lexical")
        """
        question = Mixture(run=self.name, step=step, layer=layer, depth=depth, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "mixture")

    @asks(Identifiers)
    def identifiers(self, step: Step = "last", *, n: int = 60, seed: int = 0) -> Drawn:
        """What swaps two bindings: ``swapped`` and ``kept`` over (intervention, part, layer), with controls.

        >>> run.identifiers(n=20).swapped.sel(intervention=["mean", "random vector"], part="value")
        """
        question = Identifiers(run=self.name, step=step, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "identifiers")

    @asks(Lookbacks)
    def lookbacks(self, step: Step = "last", *, n: int = 80, seed: int = 0) -> Drawn:
        """Address, pointer and payload: ``binding``, ``source`` and ``end`` over layers.

        >>> run.lookbacks(n=40).end.sel(position="end", came="pointer")
        """
        question = Lookbacks(run=self.name, step=step, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "lookbacks")

    @asks(Reassignment)
    def reassignment(self, step: Step = "last", *, n: int = 60, seed: int = 0) -> Drawn:
        """Which write wins, what holds the overwrite, which state is kept: ``answered``, ``write``, ``undone``, ``excess``.

        >>> open_run("binding-reassign").reassignment(n=20).undone.sel(operation="constant", part="value")
        """
        question = Reassignment(run=self.name, step=step, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "reassignment")

    @asks(Hypotheses)
    def hypotheses(
        self,
        first: Any = "value-forward",
        second: Any = "pointer-backward",
        *,
        step: Step = "last",
        n: int = 48,
        seed: int = 0,
    ) -> Drawn:
        """Which of two hypotheses the model agrees with, site by site and layer by layer; a function will do as one.

        >>> run.hypotheses("value-forward", "pointer-backward", n=12).score
        """
        question = Hypotheses(run=self.name, first=first, second=second, step=step, n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "hypotheses")

    def _root_line(self, given: int | None) -> int:
        return first_root_line(self.task) if given is None else given


def first_root_line(task: BindingTask) -> int:
    """The first line that may hold the root's constant: line 3, where shortcuts are wrong, if programs are long enough."""
    return min(3, max(1, task.lines - task.max_depth))
