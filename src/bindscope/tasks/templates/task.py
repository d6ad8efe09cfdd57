"""The task of study 3: a fixed training set over one alphabet, tests over symbols that training never shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.task import Batch, FixedData, Layout, SampledDataset, Task, hash_batch
from bindscope.tasks.templates.named import NAMED_TASKS, RandomTemplates, TemplateSet
from bindscope.tasks.templates.template import Template, Wildcard, check_templates
from bindscope.tasks.vocabulary import Vocabulary

CLS = "CLS"
Name = Literal[
    "same-different",
    "aba-abb",
    "aabb-abab",
    "majority-2",
    "majority-4",
    "majority-6",
    "majority-8",
    "counting-5",
    "counting-7",
    "copy",
    "print-real",
    "print-swapped",
    "print-symbolic",
    "random",
    "custom",
]


@dataclass(frozen=True)
class TemplateTask(Task):
    """Sequences made from templates by giving each wildcard a symbol of its own, labelled by their template.

    The training set has ``alphabet`` sequences over ``alphabet`` symbols and follows from ``seed``. Validation and test
    sequences use ``test_alphabet`` other symbols each. Every row ends with a CLS token, where the answer is read.

    >>> task = TemplateTask(name="aba-abb", alphabet=8)
    >>> batch = task.training_set()
    >>> task.render(batch.tokens[0]), batch.targets[0]
    ('train_7 train_4 train_4', array([-1.], dtype=float32))
    """

    family: ClassVar[str] = "templates"

    name: Name = "same-different"
    alphabet: int = 1024
    test_alphabet: int = 256
    seed: int = 0
    random: RandomTemplates = field(default_factory=RandomTemplates)  # used by name = "random"
    templates: tuple[str, ...] = ()  # used by name = "custom", as are the labels
    labels: tuple[float | str, ...] = ()

    def __post_init__(self) -> None:
        if self.name != "custom" and (self.templates or self.labels):
            raise BindscopeError(f"task.templates: '{self.name}' has its own templates; use name = 'custom' for yours.")
        self._check_labels()
        check_templates(self.parsed_templates)
        for setting, size in (("alphabet", self.alphabet), ("test_alphabet", self.test_alphabet)):
            if size < self.n_wildcards:
                raise BindscopeError(
                    f"task.{setting}: {size} symbols are too few for a template with {self.n_wildcards} wildcards."
                )
        for token in self.regular_tokens:
            if re.fullmatch(rf"{CLS}|(train|validation|test)_[0-9]+", token):
                raise BindscopeError(f"task.templates: '{token}' names a symbol; choose another regular token.")

    @cached_property
    def template_set(self) -> TemplateSet:
        """The templates in their text form and their labels."""
        if self.name == "custom":
            return TemplateSet(self.templates, self.labels)
        return self.random.draw() if self.name == "random" else NAMED_TASKS[self.name]

    @cached_property
    def parsed_templates(self) -> tuple[Template, ...]:
        return tuple(map(Template.parse, self.template_set.templates))

    @cached_property
    def parsed_labels(self) -> tuple[Wildcard | str, ...]:
        """Symbolic labels as tokens; empty for real labels."""
        if self.target_kind == "real":
            return ()
        return tuple(Template.parse(str(label)).tokens[0] for label in self.template_set.labels)

    @cached_property
    def n_wildcards(self) -> int:
        """The most wildcards that one template has."""
        return max(len(template.wildcards) for template in self.parsed_templates)

    @cached_property
    def regular_tokens(self) -> tuple[str, ...]:
        in_templates = [token for template in self.parsed_templates for token in template.regular_tokens]
        return tuple(dict.fromkeys([*in_templates, *(label for label in self.parsed_labels if isinstance(label, str))]))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Regular tokens, training symbols, validation symbols, test symbols, CLS."""
        sizes = {"train": self.alphabet, "validation": self.test_alphabet, "test": self.test_alphabet}
        symbols = [f"{name}_{index}" for name, size in sizes.items() for index in range(size)]
        return Vocabulary((*self.regular_tokens, *symbols, CLS))

    @cached_property
    def alphabets(self) -> dict[str, range]:
        """Token ids of the symbols that ``train``, ``validation`` and ``test`` sequences use."""
        train = range(len(self.regular_tokens), len(self.regular_tokens) + self.alphabet)
        validation = range(train.stop, train.stop + self.test_alphabet)
        return {"train": train, "validation": validation, "test": range(validation.stop, len(self.vocabulary) - 1)}

    @property
    def n_positions(self) -> int:
        return len(self.parsed_templates[0]) + 1

    @property
    def d_out(self) -> int:
        return 1 if self.target_kind == "real" else len(self.vocabulary)

    @property
    def target_kind(self) -> Literal["token", "real"]:
        return "token" if any(isinstance(label, str) for label in self.template_set.labels) else "real"

    def training_set(self) -> Batch:
        """All ``alphabet`` training sequences, the same for the same task."""
        return self._training_set

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """Rows of the training set, drawn with replacement."""
        return self._training_set.take(rng.integers(self.alphabet, size=n_examples))

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """``train``: rows of the training set. ``validation`` and ``test``: new sequences of unseen symbols."""
        return {
            "train": self.sample_batch(rng, n_examples),
            "validation": self.draw_sequences(rng, n_examples, "validation"),
            "test": self.draw_sequences(rng, n_examples, "test"),
        }

    def check_data(self, fixed: bool, sized: bool) -> None:
        if sized:
            raise BindscopeError("dataset: template tasks have a training set of their own; set task.alphabet instead.")

    def count_fixed(self, n_asked: int) -> int:
        return self.alphabet

    def draw_fixed(self, seed: int, sizes: Mapping[str, int], n_evaluated: int) -> FixedData:
        """The task's own training set, whatever the seed and the sizes."""
        examples = self.training_set()
        return FixedData(SampledDataset(examples), hash_batch(examples))

    def draw_sequences(self, rng: np.random.Generator, n_examples: int, alphabet: str) -> Batch:
        """New sequences over the symbols of ``train``, ``validation`` or ``test``, templates and symbols uniform."""
        if alphabet not in self.alphabets:
            raise BindscopeError(f"'{alphabet}' is not an alphabet.{suggest_nearest(alphabet, self.alphabets)}")
        return self._draw(rng, n_examples, self.alphabets[alphabet])

    def parse(self, text: str) -> np.ndarray:
        """Symbols separated by spaces (``train_6 train_3 train_6``) to tokens with CLS at the end."""
        symbols = text.split()
        if len(symbols) != self.n_positions - 1:
            raise BindscopeError(
                f"a sequence of this task has {self.n_positions - 1} symbols, such as '{self._example}'; got {len(symbols)}."
            )
        for index, symbol in enumerate(symbols, start=1):
            if symbol not in self.vocabulary.ids:
                raise BindscopeError(
                    f"symbol {index}: '{symbol}' is not a token of this task; a sequence of it is '{self._example}'."
                )
        return np.array(self.vocabulary.encode([*symbols, CLS]), dtype=np.int64)

    def read(self, text: str, n_positions: int | None = None) -> np.ndarray:
        """A sequence that a person typed, as tokens; all sequences of a task are equally long, so every model reads them."""
        return self.parse(text)

    def render(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Tokens to text; ``parse`` is its inverse."""
        return " ".join(self.vocabulary.decode(list(tokens)[:-1]))

    def find_template(self, tokens: Sequence[int] | np.ndarray) -> tuple[int, dict[str, str]]:
        """Which template a row comes from, and the symbol of each of its wildcards."""
        symbols = self.vocabulary.decode(list(tokens)[:-1])
        for index, template in enumerate(self.parsed_templates):
            substitution = template.match(symbols)
            if substitution is not None and not set(substitution.values()) & set(self.regular_tokens):
                return index, substitution
        raise BindscopeError(f"'{' '.join(symbols)}' matches none of the templates of this task.")

    def solve(self, tokens: Sequence[int] | np.ndarray) -> float | int:
        """The reference interpreter for one row: its real label, or the token id of its symbolic one."""
        index, substitution = self.find_template(tokens)
        if self.target_kind == "real":
            return float(self.template_set.labels[index])
        label = self.parsed_labels[index]
        return self.vocabulary.ids[substitution[label.name] if isinstance(label, Wildcard) else label]

    @cached_property
    def _training_set(self) -> Batch:
        return self.draw_sequences(np.random.default_rng(self.seed), self.alphabet, "train")

    @property
    def _example(self) -> str:
        """One sequence, to show how they are written."""
        return self.render(self._training_set.tokens[0])

    @cached_property
    def _codes(self) -> np.ndarray:
        """[template, position]: w for the wildcard that appears as number w, else an index after them in ``_constants``.
        The last position of a row is CLS, and with symbolic labels one more holds the answer."""
        constants = {token: self.n_wildcards + index for index, token in enumerate((*self.regular_tokens, CLS))}
        rows = []
        for index, template in enumerate(self.parsed_templates):
            order = {name: number for number, name in enumerate(template.wildcards)}
            tokens = [*template.tokens, CLS, *self.parsed_labels[index : index + 1]]
            rows.append([order[token.name] if isinstance(token, Wildcard) else constants[token] for token in tokens])
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _real_labels(self) -> np.ndarray:
        """[template, target] float32."""
        return np.array(self.template_set.labels, dtype=np.float32)[:, None]

    @cached_property
    def _constants(self) -> np.ndarray:
        """[constant, 1]: token ids of the regular tokens and of CLS."""
        return np.array(self.vocabulary.encode((*self.regular_tokens, CLS)))[:, None]

    def _draw(self, rng: np.random.Generator, n_examples: int, alphabet: range) -> Batch:
        chosen = rng.integers(len(self.parsed_templates), size=n_examples)  # [batch] template
        sources = np.empty((self.n_wildcards + len(self._constants), n_examples), dtype=np.int64)  # [source, batch]
        sources[: self.n_wildcards] = _draw_distinct(rng, self.n_wildcards, n_examples, len(alphabet))
        sources[: self.n_wildcards] += alphabet.start
        sources[self.n_wildcards :] = self._constants
        positions = self._codes.take(chosen, axis=0) * n_examples + np.arange(n_examples)[:, None]  # [batch, position]
        rows = sources.reshape(-1).take(positions)
        return Batch(
            tokens=rows[:, : self.n_positions],
            layout=Layout(position_ids=np.arange(self.n_positions)),
            target_positions=np.array([self.n_positions - 1]),
            targets=self._real_labels.take(chosen, axis=0)
            if self.target_kind == "real"
            else rows[:, self.n_positions :],
            labels={"template": chosen[:, None]},
        )

    def _check_labels(self) -> None:
        templates, labels = self.template_set.templates, self.template_set.labels
        if not templates or len(templates) != len(labels):
            raise BindscopeError(
                f"task.labels: {len(templates)} templates and {len(labels)} labels; give one label for each template."
            )
        if self.target_kind == "real":
            if not all(math.isfinite(label) for label in labels if not isinstance(label, str)):
                raise BindscopeError("task.labels: real labels have to be finite numbers.")
            return
        for template, label in zip(self.parsed_templates, labels):
            tokens = Template.parse(label).tokens if isinstance(label, str) else ()
            if len(tokens) != 1:
                raise BindscopeError(f"task.labels: {label!r} is not one token; labels are all numbers or all tokens.")
            if isinstance(tokens[0], Wildcard) and tokens[0].name not in template.wildcards:
                raise BindscopeError(f"task.labels: wildcard {label} does not occur in its template {template}.")


def _draw_distinct(rng: np.random.Generator, n_items: int, n_examples: int, n_choices: int) -> np.ndarray:
    """[item, batch]: integers below n_choices, no two of one example the same, every such choice equally likely."""
    if n_choices <= 4 * n_items:
        return rng.random((n_examples, n_choices)).argsort(axis=1)[:, :n_items].T
    draws = rng.integers(n_choices, size=(n_items, n_examples))
    while len(clashes := np.flatnonzero(_has_repetition(draws))):
        draws[:, clashes] = rng.integers(n_choices, size=(n_items, len(clashes)))
    return draws


def _has_repetition(draws: np.ndarray) -> np.ndarray:
    """[batch] bool: whether two items of [item, batch] are the same."""
    repeated = np.zeros(draws.shape[1], dtype=bool)
    for first, second in combinations(draws, 2):
        repeated |= first == second
    return repeated
