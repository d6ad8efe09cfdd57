"""The few ideas that every task family shares.

A *task* is a frozen dataclass. It samples examples with a generator that is passed in, encodes them as tokens, knows
the true answer by its reference interpreter, and maps the structure of an example to token positions and back.

A *batch* is token rows with a *layout*: position ids and, where several queries share one program, the block that each
column belongs to. Column i may see column j when j ≤ i and j lies in the shared prefix (block 0) or in i's own block,
which makes every query block exactly a sequence of its own:

    columns    a = 5 \\n  # a :  # b :
    positions  0 1 2 3   4 5 6  4 5 6
    blocks     0 0 0 0   1 1 1  2 2 2
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Layout:
    """How the columns of a batch are read, the same for all its rows."""

    position_ids: np.ndarray  # [position] int64
    blocks: np.ndarray | None = None  # [position] int64: 0 = shared prefix, k ≥ 1 = query block k; None = one sequence

    @property
    def n_blocks(self) -> int:
        return 1 if self.blocks is None else int(self.blocks.max())


class Rendering(Protocol):
    """How a family's own rows of tokens are written as those of a model that reads something else, such as text."""

    def read_rows(self, tokens: np.ndarray) -> np.ndarray:
        """The family's own rows [batch, position] back from a model's tokens [batch, column]."""
        ...

    def columns(self, n_positions: int) -> np.ndarray:
        """The column [position] at which a model has read each position of a row of ``n_positions``; they ascend."""
        ...

    @property
    def output_of_digit(self) -> np.ndarray:
        """The output [digit] that answers with each digit."""
        ...


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples ready for a model. ``labels`` describe each answer (its depth, its root line, …)."""

    tokens: np.ndarray  # [batch, position] int64
    layout: Layout
    target_positions: np.ndarray  # [target] int64: the columns whose output is trained or read
    targets: np.ndarray  # [batch, target] int64 output ids, or float32 for real labels
    weights: np.ndarray | None = None  # [target] float32: how often each target counts; None = once
    labels: Mapping[str, np.ndarray] = field(default_factory=dict)  # each [batch, target]
    rendering: Rendering | None = None  # how the rows were written; None: in the family's own tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: slice | np.ndarray) -> Batch:
        """The same batch with only these rows."""
        labels = {name: values[rows] for name, values in self.labels.items()}
        return replace(self, tokens=self.tokens[rows], targets=self.targets[rows], labels=labels)

    def shard(self, index: int, n_shards: int) -> Batch:
        """The part of a global batch that process ``index`` of ``n_shards`` works on."""
        return self.take(slice(index, None, n_shards))


class Dataset(Protocol):
    """A fixed set of examples, numbered from 0."""

    def __len__(self) -> int: ...

    def batch(self, indices: np.ndarray) -> Batch: ...


@dataclass(frozen=True, eq=False)
class SampledDataset:
    """One large batch as a fixed dataset."""

    examples: Batch

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, indices: np.ndarray) -> Batch:
        return self.examples.take(indices)


@dataclass(frozen=True, eq=False)
class FixedData:
    """A fixed training set, the hash it is recognised by, and splits to evaluate on that belong to it."""

    dataset: Dataset
    sha256: str
    splits: Mapping[str, Batch] = field(default_factory=dict)  # instead of the task's own of the same name


class Task(Protocol):
    """What training, measures and studies ask of any family. A task derives from it and fills in the abstract ones."""

    family: ClassVar[str]

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary: ...

    @property
    @abstractmethod
    def n_positions(self) -> int:
        """One more than the largest position id any batch uses."""
        ...

    @property
    def d_out(self) -> int:
        """How many outputs the model needs."""
        return len(self.vocabulary)

    @property
    def target_kind(self) -> Literal["token", "real"]:
        return "token"

    @property
    def token_groups(self) -> Mapping[str, Sequence[int]]:
        """Named groups of tokens, each token in one, whose embeddings can be told apart; none unless a task says so."""
        return {}

    @abstractmethod
    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """A training batch with answer-only targets."""
        ...

    @abstractmethod
    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """Named held-out splits of one-answer examples."""
        ...

    def read(self, text: str, n_positions: int | None = None) -> Any:
        """What a person typed as an example of this task; one that a model of ``n_positions`` cannot read is refused."""
        if not hasattr(self, "parse"):
            raise BindscopeError(f"examples of the family '{self.family}' cannot be typed: its task has no 'parse'.")
        return self.parse(text.strip())

    def to_batch(self, example: Any) -> Batch:
        """An example that ``read`` gave as a batch of one, whose answer, by ``solve``, is read at its last position."""
        answer_type = np.float32 if self.target_kind == "real" else np.int64
        return Batch(
            tokens=example[None],
            layout=Layout(position_ids=np.arange(len(example))),
            target_positions=np.array([len(example) - 1]),
            targets=np.array([[self.solve(example)]], dtype=answer_type),  # type: ignore[attr-defined]
        )

    def check_data(self, fixed: bool, sized: bool) -> None:
        """Refuse training data that this task cannot give: a ``fixed`` set of it, or one ``sized`` by the settings."""
        if fixed != sized:
            raise BindscopeError("dataset: give its sizes with training.data = 'fixed', and only then.")

    def count_fixed(self, n_asked: int) -> int:
        """How many examples a fixed training set has when the settings ask for so many."""
        return n_asked

    def draw_fixed(self, seed: int, sizes: Mapping[str, int], n_evaluated: int) -> FixedData:
        """A fixed training set of ``sizes["train"]`` examples; splits that belong to it have ``n_evaluated`` each."""
        examples = self.sample_batch(np.random.default_rng(seed), sizes["train"])
        return FixedData(SampledDataset(examples), hash_batch(examples))

    def recognise_stream(self) -> dict[str, Any] | None:
        """What an endless stream is recognised by, such as a file's hash; None: by its first batch."""
        return None


def hash_batch(batch: Batch) -> str:
    """The SHA-256 of what a batch holds."""
    digest = hashlib.sha256()
    for array in (batch.tokens, batch.layout.position_ids, batch.target_positions, batch.targets):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def supervise_every_token(batch: Batch) -> Batch:
    """Next-token targets at every column, besides the answers.

    With shared prefixes each prefix token counts once per query block, as it would in separate sequences.
    """
    layout = batch.layout
    blocks = np.zeros_like(layout.position_ids) if layout.blocks is None else layout.blocks
    follows = layout.position_ids[None, :] == layout.position_ids[:, None] + 1
    reachable = (blocks[:, None] == blocks[None, :]) | (blocks[:, None] == 0)
    here, after = np.nonzero(follows & reachable)
    counts = np.where(blocks[after] == 0, layout.n_blocks, 1).astype(np.float32)
    answer_weights = np.ones(len(batch.target_positions), np.float32) if batch.weights is None else batch.weights
    return replace(
        batch,
        target_positions=np.concatenate([here, batch.target_positions]),
        targets=np.concatenate([batch.tokens[:, after], batch.targets], axis=1),
        weights=np.concatenate([counts, answer_weights]),
        labels={},
    )
