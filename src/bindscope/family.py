"""A family is one object: everything that Bindscope needs to know about one kind of task.

The task itself says what is asked (``tasks.task.Task``). Its *family* joins it to what stands around it: presets to train,
how a split is scored, phases and panels of a trajectory, how examples are typed and printed, the view in a notebook and
the pages that apply. No other package asks which family a run is of; it asks the family.

>>> class Recall(Family):
...     task = RecallTask
...     def presets(self): return (Preset(RunConfig("recall-small", RecallTask(), …), "Look up a letter's digit."),)
>>> register_family(Recall)

Everything but ``task`` has a default, so that a family says only what is special about it. A method that gives None leaves
the answer to whoever asks: ``measures.evaluation`` scores tokens, ``studies.framework`` draws one curve a split. What needs
torch, matplotlib or xarray is imported inside methods, since families are asked while presets are listed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import xarray as xr
    from matplotlib.axes import Axes

    from bindscope.tasks.task import Batch, Task

Evaluation = Mapping[str, Any]  # split name → scores, and "watched"


@dataclass(frozen=True)
class Example:
    """One example as a person reads it."""

    text: str
    answer: str
    facts: dict[str, Any]  # what else there is to say of it, ready for JSON


@dataclass(frozen=True, eq=False)
class LearnedParts:
    """What a run learns one after the other: the accuracy of each part over steps, and how many examples it has."""

    what: str  # one of them: "split"
    title: str  # "When each split was learned"
    accuracy: Mapping[str, np.ndarray]  # name → [step]
    n: Sequence[int]


@dataclass(frozen=True)
class EventTable:
    """Something that happened during training, as a table: its heading, its rows, and in words what makes one."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]  # columns that hold numbers
    words: Mapping[str, str]


class Family:
    """One kind of task and what stands around it. Derive from it, name the ``task``, and say what is special."""

    task: ClassVar[type[Task]]  # its ``family`` is the family's name
    subject: str = ""  # what its runs are on, in a sentence: "a run on modular addition"
    kinds: tuple[str, ...] = ()  # what can be asked of its runs: the pages and commands on "programs", "sums", …
    counted: str = "examples"  # what a split is counted in
    view: str | type = "bindscope.notebook.view:RunView"  # of a run in a notebook
    preset: str = ""  # the preset that stands for the family; the first one when left out
    verified_as: str = ""  # the name of a study whose claims are about experiments instead of runs
    published_model: Mapping[str, Any] = {}  # settings that files of published checkpoints do not tell
    settings_to_measure: Mapping[str, str] = {}
    usual_parts: tuple[str, ...] = ("embeddings", "QK", "OV", "MLP", "unembedding")  # that are transplanted unasked

    # what its trajectory holds and how it is drawn
    counted_by: Mapping[str, str] = {}
    cell_curves: tuple[str, ...] = ("split_accuracy", "training_loss")  # what an experiment keeps of a trajectory
    accuracy_note: str = "right answers, 95 % interval"  # under the panel of accuracies
    step_scale: Literal["auto", "linear", "log"] = "auto"

    location: str = ""  # PATH.py:NAME, as --family takes it; empty where the family is found by itself
    origin: str = ""  # where it was defined, for the manifests of its runs; empty where it comes with Bindscope

    @property
    def name(self) -> str:
        return self.task.family

    @property
    def option(self) -> str:
        """The name as it is typed: ``assign-add``."""
        return self.name.replace("_", "-")

    # ── what there is to train and to check ──────────────────────────────────────────────────────────────────────────

    def presets(self) -> Sequence[Any]:
        """``studies.framework.preset.Preset`` of this family."""
        return ()

    def experiments(self) -> Sequence[Any]:
        """``studies.framework.experiments.Experiment`` on presets of this family."""
        return ()

    def study(self) -> Any:
        """The ``studies.framework.claims.Study`` whose claims are about its runs; None without one."""
        return None

    @property
    def pages(self) -> tuple[str, ...]:
        """Groups of pages that apply to its runs: its kinds, and "claims" where it has a study."""
        return (*self.kinds, "claims") if type(self).study is not Family.study else self.kinds

    def pages_of(self, task: Any) -> tuple[str, ...]:
        """Groups of pages that apply to runs on this task."""
        return self.pages

    def settings_of_seed(self, seed: int) -> Mapping[str, Any]:
        """Further settings that change with the seed of a run in an experiment."""
        return {}

    # ── examples: drawn, typed, printed ──────────────────────────────────────────────────────────────────────────────

    def draw_examples(self, task: Any, rng: np.random.Generator, n: int) -> Batch:
        """Training examples with one answer each."""
        return task.sample_batch(rng, n)  # type: ignore[no-any-return]

    def draw_whole(self, task: Any, rng: np.random.Generator, n: int) -> Batch:
        """Examples of the whole task, as evaluation asks them, with as many answers each as training asks for."""
        return task.sample_batch(rng, n)  # type: ignore[no-any-return]

    def check_depth(self, task: Any, depth: int) -> None:
        """Refuse to draw examples of one depth, where examples have none."""
        raise BindscopeError(f"--depth: only binding programs have a depth, not those of {self.name}.")

    def predict(self, task: Any, models: Iterable[tuple[int, Any]], example: Any) -> xr.Dataset | None:
        """What models at some steps answer to an example that ``task.read`` gave, over (step, …); None: as for any task."""
        return None

    def describe_example(self, task: Any, batch: Batch, row: int) -> Example:
        """One row of a batch with its first answer."""
        labels = {name: values[row, 0].item() for name, values in batch.labels.items()}
        answer = self.format_answer(task, batch.targets[row, 0])
        return Example(self.render_tokens(task, batch.tokens[row]), answer, labels)

    def render_tokens(self, task: Any, tokens: np.ndarray) -> str:
        """Token ids as the family writes them."""
        return str(task.render(tokens)) if hasattr(task, "render") else " ".join(task.vocabulary.decode(tokens))

    def format_answer(self, task: Any, target: Any) -> str:
        """A target, or a model's output, in the task's own words."""
        return f"{float(target):+.3f}" if task.target_kind == "real" else str(task.vocabulary.symbols[int(target)])

    def fit_task(self, task: Any, path: Path, d_vocab: int, tokenizer: Path | None = None) -> Any:
        """The task as a model from elsewhere reads it, by the tokenizer beside the model or the one that was named; None
        where the task's own tokens must be the model's."""
        if tokenizer is not None:
            raise BindscopeError(
                f"--tokenizer: runs of the family '{self.name}' have tokens of their own; leave it out."
            )
        return None

    # ── evaluation ───────────────────────────────────────────────────────────────────────────────────────────────────

    def score_split(self, task: Any, model: Any, name: str, batch: Batch) -> dict[str, Any] | None:
        """All that is recorded of a split, ready for JSON, with ``n``, ``accuracy`` and ``loss``; None: the usual."""
        return None

    def watch(self, evaluation: Evaluation) -> Mapping[str, float | None]:
        """The accuracies that must all be high for the task to count as learned: those of all splits."""
        return {name: scores["accuracy"] for name, scores in evaluation.items()}

    def watch_loss(self, evaluation: Evaluation) -> float | None:
        """A loss that training may stop at; None without one."""
        return None

    # ── the life of a run ────────────────────────────────────────────────────────────────────────────────────────────

    def trajectory_variables(
        self, evaluations: Sequence[Evaluation], splits: Sequence[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Variables and coordinates of the trajectory besides the curves of its splits, in xarray's terms."""
        return {}, {}

    def describe_phases(self) -> Mapping[str, str]:
        """The phases in their order → what makes each; ``any`` says what holds of all. Empty where none are defined."""
        return {}

    @property
    def phase_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.describe_phases() if name != "any")

    def find_phases(self, dataset: xr.Dataset, criterion: Any = None) -> Sequence[Any]:
        """The ``measures.phases.Phase`` of a trajectory, in order."""
        return ()

    def list_events(self, dataset: xr.Dataset) -> Sequence[EventTable]:
        """Whatever else happened during training."""
        return ()

    def learned_parts(self, dataset: xr.Dataset) -> LearnedParts | None:
        """What is learned one after the other; None: its splits."""
        return None

    def summarise_cell(self, trajectory: xr.Dataset) -> xr.Dataset | None:
        """What an experiment keeps of one run; None: ``cell_curves``, and how each split ended."""
        return None

    # ── parts of one checkpoint in another ───────────────────────────────────────────────────────────────────────────

    def ask_transplants(self, task: Any, rng: np.random.Generator, n: int) -> Any:
        """The ``measures.transplanting.Asked`` that a checkpoint with parts of another is asked."""
        raise BindscopeError(f"transplants are not defined for runs of the family '{self.name}'.")

    def find_jumps(self, run: Any) -> Sequence[tuple[int, int]]:
        """Saved steps before and after each jump of a run, between which parts are transplanted."""
        raise BindscopeError(f"{run.name}: name two checkpoints with --from and --to.")

    # ── figures and the report ───────────────────────────────────────────────────────────────────────────────────────

    def panels(self, dataset: xr.Dataset) -> Sequence[Any] | None:
        """The ``studies.plots.curves.Panel`` of a trajectory; None: loss and accuracy of all splits."""
        return None

    def mark(self, axes: Axes, dataset: xr.Dataset) -> None:
        """Draw what happened during training into a panel over steps."""

    def describe_run(self, dataset: xr.Dataset, phases: Sequence[Any]) -> Any:
        """The ``studies.plots.report.Told`` of a run: what a report says of it beyond its splits. None: nothing."""
        return None

    def show_examples(self, run: Any, phases: Sequence[Any]) -> Sequence[Any]:
        """A few ``studies.plots.report.ExampleProgram`` with what checkpoints answered."""
        return ()
