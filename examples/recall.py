"""Associative recall as a family of tasks: ``a3 c7 b1 | c`` asks which digit stands behind c, and the answer is 7.

A complete family in one file, outside Bindscope. Try it from the directory that holds this one:

    bindscope train --family examples/recall.py:RecallFamily
    bindscope trajectory recall-small --family examples/recall.py:RecallFamily
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.families import Family
from bindscope.tasks.task import Batch, Layout, Task
from bindscope.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.phases import Phase
    from bindscope.studies.framework.preset import Preset
    from bindscope.studies.plots.curves import Panel

LETTERS, DIGITS = "abcdefghijklmnop", "0123456789"
VOCABULARY = Vocabulary((*LETTERS, *DIGITS, "|"))
FIRST_DIGIT, BAR = len(LETTERS), len(VOCABULARY) - 1  # token ids
KNOWS_DIGITS, RECALLS = 0.2, 0.9  # accuracies that begin the second and the third phase


@dataclass(frozen=True)
class RecallTask(Task):
    """Pairs of a letter and a digit, then one of the letters; no letter stands twice."""

    family: ClassVar[str] = "recall"
    n_pairs: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.n_pairs <= len(LETTERS):
            raise BindscopeError(f"task.n_pairs: must lie between 2 and {len(LETTERS)}, got {self.n_pairs}.")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    @property
    def n_positions(self) -> int:
        return 2 * self.n_pairs + 2

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        letters = rng.random((n_examples, len(LETTERS))).argsort(axis=1)[:, : self.n_pairs]  # [batch, pair]
        digits = rng.integers(FIRST_DIGIT, BAR, size=(n_examples, self.n_pairs))
        asked = rng.integers(self.n_pairs, size=n_examples)
        tokens = np.full((n_examples, self.n_positions), BAR)
        tokens[:, 0:-2:2], tokens[:, 1:-2:2] = letters, digits
        tokens[:, -1] = letters[np.arange(n_examples), asked]
        return self.to_batch(tokens)

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """``test``: as in training. ``last``: the last pair is asked, which is the easiest to find."""
        last = self.sample_batch(rng, n_examples).tokens
        last[:, -1] = last[:, -4]
        return {"test": self.sample_batch(rng, n_examples), "last": self.to_batch(last)}

    def to_batch(self, tokens: np.ndarray) -> Batch:
        """Rows [batch, position] with the answers that the interpreter gives."""
        tokens = np.atleast_2d(tokens)
        position = np.array([[list(row[0:-2:2]).index(row[-1])] for row in tokens])  # [batch, 1]: which pair is asked
        answers = np.take_along_axis(tokens, 2 * position + 1, axis=1)
        layout = Layout(position_ids=np.arange(tokens.shape[1]))
        return Batch(tokens, layout, np.array([tokens.shape[1] - 1]), answers, labels={"pair": position + 1})

    def parse(self, text: str) -> np.ndarray:
        """``a3 c7 b1 | c`` to tokens; ``render`` is its inverse."""
        pairs, bar, asked = (part.split() for part in text.partition("|"))
        right = all(len(pair) == 2 and pair[0] in LETTERS and pair[1] in DIGITS for pair in pairs)
        if not bar or not right or len(asked) != 1 or asked[0] not in {pair[0] for pair in pairs}:
            raise BindscopeError(f"'{text}': write pairs, a bar and one of their letters, as in 'a3 c7 b1 | c'.")
        if len(pairs) != self.n_pairs or len({pair[0] for pair in pairs}) < len(pairs):
            raise BindscopeError(f"'{text}': this task has {self.n_pairs} pairs of different letters.")
        return np.array(VOCABULARY.encode([*"".join(pairs), "|", *asked]))

    def render(self, tokens: np.ndarray) -> str:
        symbols = VOCABULARY.decode(list(tokens))
        pairs = [letter + digit for letter, digit in zip(symbols[0:-2:2], symbols[1:-2:2], strict=True)]
        return " ".join([*pairs, *symbols[-2:]])


class RecallFamily(Family):
    """What stands around the task. Everything left out here has a default."""

    task = RecallTask
    subject = "pairs to recall"
    counted = "lists"

    def presets(self) -> Sequence[Preset]:
        from bindscope.model.config import InitConfig
        from bindscope.runs.config import RunConfig
        from bindscope.studies.framework.preset import Preset, model_for
        from bindscope.training.config import CheckpointPlan, OptimizerConfig, TrainingConfig

        task, identity = RecallTask(), {"identity_qk": True, "identity_vo": True, "identity_gain": 20.0}
        model = model_for(task, n_layers=2, n_heads=2, d_model=64, init=InitConfig(scheme="fan_in"), **identity)
        optimizer, checkpoints = OptimizerConfig(lr=2e-3), CheckpointPlan(every=50)
        training = TrainingConfig(250, 64, optimizer=optimizer, checkpoints=checkpoints, evaluate_every=10)
        return (Preset(RunConfig("recall-small", task, model, training), "Four letters with digits, one asked again."),)

    def watch(self, evaluation: Mapping[str, Any]) -> dict[str, float | None]:
        return {"test": evaluation["test"]["accuracy"]}

    def describe_phases(self) -> dict[str, str]:
        return {
            "guessing": f"At most {KNOWS_DIGITS:.0%} of the answers are right: any digit, or no digit at all.",
            "choosing": "The answer is one of the digits in the list more often, and often the wrong one.",
            "recalling": f"At least {RECALLS:.0%} of the answers are the digit behind the letter.",
            "any": "A phase once entered holds at two evaluations running, and at 80 % of those until its last.",
        }

    def find_phases(self, dataset: xr.Dataset, criterion: Any = None) -> list[Phase]:
        from bindscope.measures.phases import phases_from_readings

        accuracy = dataset.split_accuracy.sel(split="test").values
        readings = np.select([accuracy <= KNOWS_DIGITS, accuracy < RECALLS], self.phase_names[:2], self.phase_names[2])
        return phases_from_readings(readings, self.phase_names, dataset.step.values, accuracy, 2, 0.8)

    def panels(self, dataset: xr.Dataset) -> list[Panel]:
        from bindscope.studies.plots.curves import Panel, draw_splits, loss_panel

        splits = list(dataset.split.values)
        note = f"right digits of {int(dataset.split_n[0]):,} lists; last: the last pair is asked"
        return [Panel("accuracy", "Recall", note, lambda axes: draw_splits(axes, dataset, splits)), loss_panel(dataset)]
