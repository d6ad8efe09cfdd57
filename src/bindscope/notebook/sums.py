"""A run on modular addition as Python meets it: typed sums, the nine splits, the circuit in the weights, and transplants."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from bindscope.notebook.asking import asks
from bindscope.notebook.drawn import Drawn
from bindscope.notebook.view import RunView, Step, Steps
from bindscope.questions.program import Predict
from bindscope.questions.sums import Sum

if TYPE_CHECKING:
    from bindscope.tasks.assign_add import AssignAddTask


class SumsView(RunView):
    """A run whose task is to add numbers that may stand behind variables, such as ``c=1 b=17 | b+19``."""

    @property
    def task(self) -> AssignAddTask:
        """What it was asked: modulus, variables, and which pairs were held out."""
        return cast("AssignAddTask", self.run.config.task)

    def parse(self, text: str) -> np.ndarray:
        """A sum of this run's task as its 16 tokens; ``_`` is a PAD, and missing ones go behind the assignments.

        >>> sums.parse("c=1 b=17 | b+19")
        """
        return self.task.read(text)

    @asks(Predict)
    def predict(self, text: str, steps: Steps = "last") -> Drawn:
        """What it answers to a sum: ``probability`` over (step, output).

        >>> sums.predict("c=1 b=17 | b+19", steps="all").plot()
        """
        question = Predict(run=self.name, program=text, steps=self._steps(steps))
        return self._drawn(question.answer(self.opened), "prediction", program=self.task.render(self.parse(text)))

    @asks(Sum)
    def attention(self, text: str, step: Steps = "last") -> Drawn:
        """What each layer attends to: ``pattern`` over (layer, query, key), and ``probability`` over (output).

        With ``step="all"`` or several steps both are over (step, …) too, and the figure shows what ``=`` attends to as
        training goes on.

        >>> sums.attention("c=1 b=17 | b+19").plot()
        """
        dataset = Sum(run=self.name, sequence=text, steps=self._steps(step)).answer(self.opened)
        return self._drawn(dataset.isel(step=0) if dataset.sizes["step"] == 1 else dataset, "sum")

    def splits(self) -> Drawn:
        """Accuracy in the nine splits, over (step, split), and its spikes, over (spike): ``spike_before`` and
        ``spike_after`` are evaluated steps, ``spike_size`` the largest rise, ``spike_splits`` those that rise.

        >>> sums.splits().spike_after
        """
        from bindscope.studies.assign_add.learning.spikes import with_spikes

        return self._drawn(with_spikes(self.trajectory()), "splits")

    def spikes(self) -> Drawn:
        """Accuracy in the nine splits before and after each spike, over (spike, split), and the saved checkpoints around
        it (``kept_before``, ``kept_after``; -1 where none is close by): those that ``transplant`` can be asked with.

        >>> sums.spikes().plot()
        """
        from bindscope.studies.assign_add.learning.spikes import spike_table

        return self._drawn(spike_table(self.run), "spikes")

    def progress(self) -> Drawn:
        """The seven progress measures over (step), measured if they are missing, with the run's spikes.

        >>> sums.progress().plot()
        """
        from bindscope.studies.assign_add.learning.spikes import with_spikes

        return self._drawn(with_spikes(self.trajectory(), self.result("progress")), "progress")

    def circuit(self, step: Step = "last") -> Drawn:
        """The routing circuit read off the weights: ``qk1`` (query, key), ``positions``, ``variable_identity`` …

        >>> sums.circuit().plot()
        """
        from bindscope.measures.arithmetic.circuit import circuit_matrices
        from bindscope.measures.arithmetic.forms import SumForms

        dataset = circuit_matrices(SumForms.of(self.model(step), self.task), self.task)
        return self._drawn(dataset, "circuit", step=self.run.find_step(step))

    def neuron(self, k: int, step: Step = "last") -> Drawn:
        """Neuron ``k`` of the last MLP over all pairs, beside the Fourier component that fits it best: ``preactivation`` and
        ``fitted`` over (source, index_1, index_2), and ``frequency``, ``explained_variance`` … over (source).

        The sources are the whole model on literal sums, and the circuit OV2 e_n1 + OV2 e_n2 alone.

        >>> sums.neuron(70).plot()
        """
        from bindscope.measures.arithmetic.components import describe_neuron

        return self._drawn(describe_neuron(self.model(step), self.task, k), "neuron", step=self.run.find_step(step))
