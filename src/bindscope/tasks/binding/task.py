"""The binding family as a task: symbolic programs that assign variables and ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.combinations import answers_in, hold_out_combinations, roots_in
from bindscope.tasks.binding.curriculum import Curriculum, Stage
from bindscope.tasks.binding.dataset import BindingDataset, make_splits
from bindscope.tasks.binding.positions import n_positions
from bindscope.tasks.binding.program import DIGITS, LETTERS, TOKEN_GROUPS, VOCABULARY, Program, parse_program
from bindscope.tasks.binding.programs import Programs, ask_programs, ask_questions
from bindscope.tasks.binding.sampler import Balance, Grammar, sample_questions
from bindscope.tasks.task import Batch, FixedData, Task
from bindscope.tasks.vocabulary import Vocabulary


@dataclass(frozen=True)
class BindingTask(Task):
    """Programs such as ``a=5 / b=a / #b:``; the answer is the digit that the queried variable holds.

    >>> batch = BindingTask(lines=6, max_depth=3, queries=6).sample_batch(np.random.default_rng(0), 64)
    >>> batch.tokens.shape, batch.targets.shape
    ((64, 42), (64, 6))
    """

    family: ClassVar[str] = "binding"
    lines: int = 16  # assignments a program
    max_depth: int = 4  # longest chain; programs shorter than this have shorter ones
    n_variables: int = 26
    n_constants: int = 10
    p_constant: float = 0.5
    exponent: float = 3.0  # how strongly deep chains are extended: 3 = cubic, 0 = uniform
    queries: int = 1  # queries a program in training; more than one share the program as their prefix
    min_lines: int | None = None  # training draws one length a batch from here to ``lines``; evaluation is at ``lines``
    balance: Balance = "rejection"
    held_out: float = 0.0  # fraction of (variable, constant) combinations that training never shows
    held_out_seed: int = 0
    reassign: float = 0.0  # probability that a line assigns a variable that already has a value
    curriculum: Curriculum | None = None  # training begins with few letters and short programs; evaluation does not

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_chances()
        if not self.reassign and self.lines > self.n_variables:
            raise BindscopeError(
                f"task.lines: {self.lines} lines need {self.lines} variables and there are {self.n_variables}; "
                "use fewer lines or set reassign above 0."
            )
        if self.balance == "rejection" and self.max_depth > 1 and self.p_constant == 1:
            raise BindscopeError(
                "task.p_constant: 1 makes every line a constant and no depth above 1; set max_depth = 1."
            )
        if self.held_out:
            hold_out_combinations(self.n_variables, self.n_constants, self.held_out, self.held_out_seed)
        self._check_curriculum()

    @property
    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    @property
    def token_groups(self) -> Mapping[str, Sequence[int]]:
        return TOKEN_GROUPS

    @property
    def n_positions(self) -> int:
        return self.count_tokens(self.lines)

    def count_tokens(self, n_lines: int) -> int:
        """How many tokens a model reads of a program of ``n_lines`` lines."""
        return n_positions(n_lines)

    @property
    def d_out(self) -> int:
        return len(VOCABULARY)

    @property
    def target_kind(self) -> Literal["token", "real"]:
        return "token"

    @cached_property
    def held_out_combinations(self) -> np.ndarray:
        """Mask [variable, constant] of what training never shows, neither assigned nor as an answer."""
        return hold_out_combinations(self.n_variables, self.n_constants, self.held_out, self.held_out_seed)

    @cached_property
    def grammar(self) -> Grammar:
        """What training programs are drawn from."""
        return Grammar(
            n_variables=self.n_variables,
            n_constants=self.n_constants,
            max_depth=self.max_depth,
            p_constant=self.p_constant,
            exponent=self.exponent,
            reassign=self.reassign,
            assignable=~self.held_out_combinations if self.held_out else None,
        )

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the curriculum, the whole task last; none without a curriculum."""
        return () if self.curriculum is None else self.curriculum.stages(self.n_variables, self.lines)

    @property
    def pass_at(self) -> float:
        """The accuracy that opens the next stage of the curriculum."""
        return 1.0 if self.curriculum is None else self.curriculum.pass_at

    def sample_stage(self, rng: np.random.Generator, n_examples: int, stage: int) -> Batch:
        """A training batch while the curriculum stands at ``stage``, with the tokens of ``n_examples`` full programs."""
        assert self.curriculum is not None
        ended = self.curriculum.whole_at_end and stage == len(self.stages) - 1
        if rng.random() < self.curriculum.full or ended:
            return self._sample_sized(rng, n_examples, Stage(self.n_variables, self.lines), self.grammar)
        now = self.stages[stage]
        n_lines = now.n_lines
        if rng.random() < 0.5:
            n_lines = int(rng.integers(min(self.curriculum.first_lines, n_lines), n_lines + 1))
        return self._sample_sized(rng, n_examples, Stage(now.n_letters, n_lines))

    def sample_probe(self, rng: np.random.Generator, n_examples: int, stage: int) -> Batch:
        """Fresh programs of a stage's own length, on which a model shows whether it has learned the stage."""
        return self._sample_sized(rng, n_examples, self.stages[stage])

    def _sample_sized(
        self, rng: np.random.Generator, n_examples: int, size: Stage, grammar: Grammar | None = None
    ) -> Batch:
        """Programs over so many letters and lines; short ones are more in number and asked fewer queries each."""
        grammar = grammar or self._scheduled_grammar(size)
        n_programs = max(1, n_examples * self.lines // size.n_lines)
        n_queries = max(1, self.queries * size.n_lines // self.lines)
        eligible = self.may_be_asked if self.held_out else None
        drawn = sample_questions(rng, grammar, n_programs, size.n_lines, n_queries, self.balance, eligible=eligible)
        return self.ask(*drawn)

    def _scheduled_grammar(self, size: Stage) -> Grammar:
        """What the programs of a stage are drawn from."""
        assert self.curriculum is not None
        curriculum = self.curriculum
        return replace(
            self.grammar,
            n_variables=size.n_letters,
            exponent=curriculum.exponent,
            first_constants=(2, max(2, size.n_lines // 2)) if curriculum.side_by_side else (1, 1),
            branches=not curriculum.side_by_side,
            p_constant=self.p_constant if curriculum.p_constant is None else curriculum.p_constant,
        )

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """``n_examples`` training programs of one length, each with ``queries`` queries.

        With a curriculum, a batch of its last stage.
        """
        if self.curriculum is not None:
            return self.sample_stage(rng, n_examples, len(self.stages) - 1)
        n_lines = self.lines if self.min_lines is None else int(rng.integers(self.min_lines, self.lines + 1))
        return self.ask(*self.sample_questions(rng, n_examples, n_lines, self.queries))

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """``test``: programs as in training, at ``lines`` lines with one query. With held-out combinations also
        ``held_out``: the queried variable and its answer, or the assignment its chain starts from, is a held-out one.
        """
        evaluated = {"test": self.ask(*self.sample_questions(rng, n_examples, self.lines))}
        if self.held_out:
            everything = replace(self.grammar, assignable=None)
            drawn = sample_questions(
                rng, everything, n_examples, self.lines, balance=self.balance, eligible=self._is_held_out
            )
            evaluated["held_out"] = self.ask(*drawn)
        return evaluated

    def draw_fixed(self, seed: int, sizes: Mapping[str, int], n_evaluated: int) -> FixedData:
        """Splits of distinct programs; ``test`` is the first of the test split with their first query, as every
        evaluation split asks one question an example.
        """
        splits = make_splits(self, seed, sizes, self.queries)
        one_query = splits["test"].tokens[:n_evaluated, : self.n_positions]
        evaluated = {"test": BindingDataset(one_query).batch(slice(None))} if len(one_query) else {}
        return FixedData(splits["train"], splits["train"].content_hash, evaluated)

    def sample_questions(
        self, rng: np.random.Generator, n_programs: int, n_lines: int, n_queries: int = 1
    ) -> tuple[Programs, np.ndarray]:
        """Programs and queried lines [program, query] that training may show."""
        eligible = self.may_be_asked if self.held_out else None
        return sample_questions(rng, self.grammar, n_programs, n_lines, n_queries, self.balance, eligible=eligible)

    def may_be_asked(self, programs: Programs) -> np.ndarray:
        """Lines [program, line] whose variable and value are not a held-out combination."""
        return answers_in(programs, ~self.held_out_combinations)

    def parse(self, text: str) -> Program:
        """A program from its text, with reassignment where this task has it."""
        return parse_program(text, reassignment=self.reassign > 0)

    def read(self, text: str, n_positions: int | None = None) -> Program:
        """A program that a person typed: lines end with a line break, the two characters ``\\n``, or ``;``.

        One that is longer than a model of ``n_positions`` can read (the task's own when left out) is refused.

        >>> BindingTask().read("a=5;b=a;#b:").answer
        5
        """
        program = self.parse(text.replace("\\n", "\n").replace(";", "\n"))
        self.check_length(program, n_positions)
        return program

    def check_length(self, program: Program, n_positions: int | None = None) -> None:
        """Refuse a program that is longer than a model of ``n_positions`` can read, the task's own when left out."""
        most, n_tokens = self.n_positions if n_positions is None else n_positions, self.count_tokens(program.n_lines)
        if n_tokens > most:
            raise BindscopeError(
                f"the program has {program.n_lines} lines and {n_tokens} tokens; the model reads {most}: leave out lines."
            )

    def to_batch(self, program: Program) -> Batch:
        """A program as a batch of one, with its true answer."""
        return self.write(ask_programs([program]))

    def ask(self, programs: Programs, queries: np.ndarray) -> Batch:
        """Questions about the lines ``queries`` [program, query], as this task's model reads them."""
        return self.write(ask_questions(programs, queries))

    def write(self, batch: Batch) -> Batch:
        """Rows of programs as this task's model reads them: here as they are."""
        return batch

    def show_tokens(self, program: Program) -> list[str]:
        """What stands at each position of a program, as it can be shown."""
        return program.shown_tokens

    def show_outputs(self, n_outputs: int) -> list[str]:
        """The name of each output that ``gather_outputs`` gives."""
        return self.vocabulary.shown(n_outputs)

    def name_output(self, output: int) -> str:
        """What one output says."""
        return self.vocabulary.symbols[output]

    def gather_outputs(self, fractions: np.ndarray) -> np.ndarray:
        """Probabilities [..., output] as they are shown: those of all outputs."""
        return fractions

    def _is_held_out(self, programs: Programs) -> np.ndarray:
        return answers_in(programs, self.held_out_combinations) | roots_in(programs, self.held_out_combinations)

    def _check_sizes(self) -> None:
        limits = {
            "lines": (2, 30),
            "max_depth": (1, 13),
            "n_variables": (1, len(LETTERS)),
            "n_constants": (1, len(DIGITS)),
        }
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise BindscopeError(f"task.{name}: must lie between {least} and {most}, got {getattr(self, name)}.")
        if self.queries < 1:
            raise BindscopeError(f"task.queries: must be at least 1, got {self.queries}.")
        if self.min_lines is not None and not 2 <= self.min_lines <= self.lines:
            raise BindscopeError(f"task.min_lines: must lie between 2 and lines = {self.lines}, got {self.min_lines}.")
        if self.held_out_seed < 0:
            raise BindscopeError(f"task.held_out_seed: must not be negative, got {self.held_out_seed}.")

    def _check_curriculum(self) -> None:
        if self.curriculum is None:
            return
        if self.min_lines is not None:
            raise BindscopeError("task.min_lines: the curriculum chooses the lengths of programs; set it to none.")
        if self.curriculum.first_letters > self.n_variables or self.curriculum.first_lines > self.lines:
            raise BindscopeError(
                f"task.curriculum: it begins with {self.stages[0]}, more than the task's {self.n_variables} and {self.lines}."
            )

    def _check_chances(self) -> None:
        for name in ("p_constant", "reassign"):
            if not 0 <= getattr(self, name) <= 1:
                raise BindscopeError(f"task.{name}: must lie between 0 and 1, got {getattr(self, name)}.")
        if not 0 <= self.held_out < 1:
            raise BindscopeError(f"task.held_out: must be at least 0 and below 1, got {self.held_out}.")
        if not -10 <= self.exponent <= 10:
            raise BindscopeError(f"task.exponent: must lie between -10 and 10, got {self.exponent}.")
        if self.balance not in ("rejection", "weights", "none"):
            raise BindscopeError(f"task.balance: must be 'rejection', 'weights' or 'none', got {self.balance!r}.")
