"""The task of language modelling: windows of a text, in which every token is asked for from those before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.task import Batch, Layout, Task
from bindscope.tasks.text.corpus import SPLITS, Corpus, load_corpus
from bindscope.tasks.text.tokenizer import FEWEST_TOKENS
from bindscope.tasks.vocabulary import Vocabulary


@dataclass(frozen=True)
class TextTask(Task):
    """The next token of a text, at every position of a window of ``context`` tokens.

    ``source`` is a text file, a directory of them, a dataset directory of Hugging Face, or ``python-library``: the
    documentation that comes with Python. It is first read when examples are drawn, so a run whose text is gone can
    still be opened and asked. ``tokenizer`` is a ``tokenizer.json`` or a directory that has one, or GPT-2's
    ``vocab.json`` and ``merges.txt``; without it a byte-level BPE of ``vocabulary_size`` tokens is trained on the
    training part of the text. Splits that the source does not name are cut from the end of its training text.

    >>> task = TextTask(source="python-library", vocabulary_size=1024, context=128)
    >>> batch = task.sample_batch(np.random.default_rng(0), n_examples=16)
    >>> task.decode(batch.tokens[0])
    ' the object is not a string.  If *encoding* is given …'
    """

    family: ClassVar[str] = "text"

    source: str = ""
    tokenizer: str = ""
    vocabulary_size: int = 1024
    context: int = 128
    column: str = "text"  # of a table: the one that holds the text
    validation_share: float = 0.05
    test_share: float = 0.05

    def __post_init__(self) -> None:
        if self.vocabulary_size < FEWEST_TOKENS:
            raise BindscopeError(
                f"task.vocabulary_size: must be at least {FEWEST_TOKENS}, one for each byte and one for the end of a "
                f"text, got {self.vocabulary_size}."
            )
        if self.context < 2:
            raise BindscopeError(f"task.context: must be at least 2 tokens, got {self.context}.")
        for name in ("validation_share", "test_share"):
            if not 0 < getattr(self, name) < 0.5:
                raise BindscopeError(f"task.{name}: must lie between 0 and 0.5, got {getattr(self, name)}.")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """A name for each token id. What it spells depends on the text, and ``decode`` says it."""
        return Vocabulary(tuple(f"token_{index}" for index in range(self.vocabulary_size)))

    @property
    def n_positions(self) -> int:
        return self.context

    @property
    def d_out(self) -> int:
        return self.vocabulary_size

    @property
    def target_kind(self) -> Literal["token", "real"]:
        return "token"

    @property
    def corpus(self) -> Corpus:
        """The text as tokens, read once in a process; each of its parts fills one window or more."""
        corpus = load_corpus(
            self.source, self.tokenizer, self.vocabulary_size, self.column, self.validation_share, self.test_share
        )
        for name, split in corpus.splits.items():
            if len(split.tokens) <= self.context:
                raise BindscopeError(
                    f"task.source: the {name} part of '{self.source}' has {len(split.tokens)} tokens, and one window "
                    f"needs {self.context + 1}; give a longer text or a smaller task.context."
                )
        return corpus

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """Windows of the training text that begin anywhere."""
        tokens = self.corpus.splits["train"].tokens
        return self._windows(tokens, rng.integers(len(tokens) - self.context, size=n_examples))

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """At most ``n_examples`` windows of each split, spread evenly over it and without overlap."""
        splits = {}
        for name in SPLITS:
            tokens = self.corpus.splits[name].tokens
            n_windows = (len(tokens) - 1) // self.context
            chosen = np.linspace(0, n_windows - 1, min(n_examples, n_windows)).round().astype(np.int64)
            splits[name] = self._windows(tokens, chosen * self.context)
        return splits

    def check_data(self, fixed: bool, sized: bool) -> None:
        if fixed or sized:
            raise BindscopeError("training.data: windows of a text begin anywhere in it; leave it at 'stream'.")

    def recognise_stream(self) -> dict[str, Any]:
        """The hash of the text and its tokenizer."""
        corpus = self.corpus
        return {"kind": "text", "sha256": corpus.sha256, "source": corpus.description}

    def read(self, text: str, n_positions: int | None = None) -> np.ndarray:
        """Text has no question and no answer, so what a person types cannot be asked."""
        raise BindscopeError("a text run has no answers to typed examples; 'bindscope evaluate' gives its perplexity.")

    def encode(self, text: str) -> np.ndarray:
        """The token ids of a text."""
        return self.corpus.tokenizer.encode(text)

    def decode(self, tokens: np.ndarray) -> str:
        """What token ids spell."""
        return self.corpus.tokenizer.decode(tokens)

    def _windows(self, tokens: np.ndarray, starts: np.ndarray) -> Batch:
        columns = starts[:, None] + np.arange(self.context + 1)  # [batch, context + 1]
        rows = tokens[columns].astype(np.int64)
        return Batch(
            tokens=rows[:, :-1],
            layout=Layout(position_ids=np.arange(self.context)),
            target_positions=np.arange(self.context),
            targets=rows[:, 1:],
        )
