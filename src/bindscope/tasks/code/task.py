"""The family ``code`` as a task: binding programs written as text, for models that read text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.positions import n_positions
from bindscope.tasks.binding.program import DIGITS, LETTERS, Program
from bindscope.tasks.binding.programs import ask_questions
from bindscope.tasks.binding.sampler import sample_questions
from bindscope.tasks.binding.task import BindingTask
from bindscope.tasks.code.forms import Form, find_form
from bindscope.tasks.code.table import TextRendering, TokenTable
from bindscope.tasks.code.tokens import build_table, encode_bytes, read_tokenizer
from bindscope.tasks.task import Batch
from bindscope.tasks.vocabulary import Vocabulary

MOST_SHOTS = 64
N_CHECKED = 64  # programs whose tokens by the table are held to the tokenizer's own
OTHER = "other"


@dataclass(frozen=True)
class CodeTask(BindingTask):
    """Programs of the binding grammar as text: ``a = 5 / b = a / print(b) / >>>``, whose next token is the answer.

    ``tokens`` holds all that is needed of a model's tokenizer (``with_tokenizer``); without it every byte is a token.
    A program's positions are those of ``tasks.binding.positions``: each stands at the last token of its part.

    >>> task = CodeTask(lines=2, max_depth=2)
    >>> task.text_of(task.parse("a=5\\nb=a\\n#b:"))
    'a = 5\\nb = a\\nprint(b)\\n>>>'
    """

    family: ClassVar[str] = "code"
    lines: int = 6
    max_depth: int = 3
    form: str = "python"
    shots: int = 0  # worked examples in front of every program, always the same
    shots_seed: int = 0
    names: tuple[str, ...] = tuple(LETTERS)
    values: tuple[str, ...] = tuple(DIGITS)
    tokens: TokenTable | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        find_form(self.form)
        self._check_words()
        if self.queries != 1 or self.curriculum is not None:
            raise BindscopeError(
                "task.queries, task.curriculum: a program written as text asks one question, each by itself."
            )
        if not 0 <= self.shots <= MOST_SHOTS:
            raise BindscopeError(f"task.shots: must lie between 0 and {MOST_SHOTS}, got {self.shots}.")
        if self.shots_seed < 0:
            raise BindscopeError(f"task.shots_seed: must not be negative, got {self.shots_seed}.")
        if self.tokens is not None:
            self.tokens.check(len(self.names), len(self.values))

    @property
    def surface(self) -> Form:
        """How programs are written."""
        return find_form(self.form)

    @cached_property
    def table(self) -> TokenTable:
        """The tokens of the form."""
        if self.tokens is not None:
            return self.tokens
        return build_table(encode_bytes, self.form, self.names, self.values, 256)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What each token spells, where this task has a use for it, else its number."""
        texts = dict(self.table.texts)
        return Vocabulary(tuple(texts.get(token, f"token {token}") for token in range(self.table.size)))

    @property
    def token_groups(self) -> Mapping[str, Sequence[int]]:
        return {}  # a tokenizer's tokens have no such names

    @property
    def d_out(self) -> int:
        return self.table.size

    def count_tokens(self, n_lines: int) -> int:
        """How many tokens a model reads of a program of ``n_lines`` lines, the worked examples included."""
        return int(self.rendering.columns(n_positions(n_lines))[-1]) + 1

    @cached_property
    def rendering(self) -> TextRendering:
        """How programs are written as tokens, behind the worked examples."""
        table = self.table
        prefix, begins_text = list(table.start), True
        for row, answer in zip(*self._draw_shots()):
            written = TextRendering(table, tuple(prefix), begins_text).write_rows(row[None])[0]
            prefix, begins_text = [*written.tolist(), table.answers[answer], *table.separator], False
        return TextRendering(table, tuple(prefix), begins_text)

    @cached_property
    def examples(self) -> tuple[Program, ...]:
        """The worked examples."""
        return tuple(Program.from_tokens(row) for row in self._draw_shots()[0])

    def with_tokenizer(self, location: Path, d_vocab: int) -> CodeTask:
        """The same task in the tokens of a tokenizer, for a model of ``d_vocab`` tokens.

        >>> CodeTask().with_tokenizer(Path("pythia-70m/step1000"), d_vocab=50304)
        """
        encode, sha256 = read_tokenizer(location, d_vocab)
        task = replace(self, tokens=build_table(encode, self.form, self.names, self.values, d_vocab, sha256))
        drawn = task.sample_batch(np.random.default_rng(0), N_CHECKED)
        for tokens, target in zip(drawn.tokens, drawn.targets[:, 0]):
            program = Program.from_tokens(task.rendering.read_rows(tokens[None])[0])
            text = task.text_of(program, answered=True)
            if [piece.token for piece in encode(text)] != [*tokens, target]:
                raise BindscopeError(
                    f"{location}: writes {text!r} with other tokens than its parts alone; choose another form, not '{self.form}'."
                )
        return task

    def write(self, batch: Batch) -> Batch:
        """Rows of programs as tokens of text, the answer asked for after the last."""
        if batch.layout.blocks is not None:
            raise BindscopeError("a program written as text asks one question; ask several one by one.")
        tokens = self.rendering.write_rows(batch.tokens)
        return replace(
            batch,
            tokens=tokens,
            layout=replace(batch.layout, position_ids=np.arange(tokens.shape[1])),
            target_positions=np.array([tokens.shape[1] - 1]),
            targets=np.array(self.table.answers)[batch.targets],
            rendering=self.rendering,
        )

    def text_of(self, program: Program, answered: bool = False) -> str:
        """All that a model reads of a program, the worked examples first; with its answer if asked."""
        texts = ["".join(piece for _, piece in self._write(each)) + self.surface.separator for each in self.examples]
        asked = "".join(piece for _, piece in self._write(program)[: None if answered else -1])
        return "".join(texts) + (asked if answered else asked.rstrip(" "))

    def read(self, text: str, n_positions: int | None = None) -> Program:
        """A program that a person typed, in the notation of binding programs or in the task's own surface form.

        >>> CodeTask().read("a=5;b=a;#b:") == CodeTask().read("a = 5\\nb = a\\nprint(b)\\n>>>")
        True
        """
        typed = text.replace("\\n", "\n").strip()
        program = self.surface.read(typed + " ", self.names, self.values) or self.parse(typed.replace(";", "\n"))
        self._check_letters(program)
        self.check_length(program, n_positions)
        return program

    def show_tokens(self, program: Program) -> list[str]:
        """The token at each position of a program: the last one of its part."""
        batch = self.to_batch(program)
        symbols = self.vocabulary.decode(batch.tokens[0, self.rendering.columns(len(program.tokens))])
        return [symbol.replace("\n", "\\n") for symbol in symbols]

    def show_outputs(self, n_outputs: int) -> list[str]:
        """The values as they are asked for, then the other tokens of this task's programs, and all others together."""
        return [
            *self.values,
            *(self.vocabulary.symbols[token].replace("\n", "\\n") for token in self._other_outputs),
            OTHER,
        ]

    def name_output(self, output: int) -> str:
        """A value where the output asks for one, else what its token spells."""
        answers = self.table.answers
        return self.values[answers.index(output)] if output in answers else self.vocabulary.symbols[output]

    def gather_outputs(self, fractions: np.ndarray) -> np.ndarray:
        """Probabilities [..., output] of the outputs that are shown, the last one that of all others."""
        shown = fractions[..., [*self.table.answers, *self._other_outputs]]
        return np.concatenate([shown, np.clip(1 - shown.sum(-1, keepdims=True), 0, 1)], axis=-1)

    def check_data(self, fixed: bool, sized: bool) -> None:
        if fixed or sized:
            raise BindscopeError(
                "training.data: programs written as text are drawn as they are needed; leave it at 'stream'."
            )

    @property
    def _other_outputs(self) -> list[int]:
        return [token for token, _ in self.table.texts if token not in self.table.answers]

    def _write(self, program: Program) -> list[tuple[str, str]]:
        return self.surface.write(program, self.names, self.values)

    def _draw_shots(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows [shot, position] and answers [shot] of the worked examples, which are as long as the programs."""
        if not self.shots:
            return np.empty((0, 0), np.int64), np.empty(0, np.int64)
        rng = np.random.default_rng([self.shots_seed, 1])
        batch = ask_questions(*sample_questions(rng, self.grammar, self.shots, self.lines, balance=self.balance))
        return batch.tokens, batch.targets[:, 0]

    def _check_letters(self, program: Program) -> None:
        used = {line.variable for line in program.assignments}
        beyond = sorted(name for name in used if LETTERS.index(name) >= len(self.names))
        beyond += sorted(
            {line.source for line in program.assignments if line.is_constant} - set(DIGITS[: len(self.values)])
        )
        if beyond:
            raise BindscopeError(
                f"'{beyond[0]}' stands for nothing: this task has {len(self.names)} names and {len(self.values)} values."
            )

    def _check_words(self) -> None:
        for setting, words, counted, most in (
            ("names", self.names, "n_variables", len(LETTERS)),
            ("values", self.values, "n_constants", len(DIGITS)),
        ):
            needed = getattr(self, counted)
            if len(words) < needed:
                raise BindscopeError(
                    f"task.{setting}: gives {len(words)} words where task.{counted} is {needed}; set {counted}={len(words)} too."
                )
            if len(set(words)) < len(words) or any(not re.fullmatch(r"\w+", word) for word in words):
                raise BindscopeError(
                    f"task.{setting}: must be different words of letters, digits and '_', got {', '.join(words)}."
                )
            if len(words) > most:
                raise BindscopeError(f"task.{setting}: at most {most} can be used, got {len(words)}.")
        both = sorted(set(self.names) & set(self.values))
        if both:
            raise BindscopeError(f"task.names: '{both[0]}' is among the values too; choose another.")
