"""A hypothesis is a small causal model over a program: variables, their parents, and where each should live.

It is a function of the depth of the queried chain that gives its variables in order, the last one the answer:

    def value_forward(depth):
        return [Variable("value 1", "rhs 1", lambda program, lines: program.values[lines[0] - 1]), …]

``compute(program, lines, *parents)`` gives a variable's value; ``lines`` are the numbers of the base program's chain, from
its root on. Exchanging a variable (an interchange intervention) sets it in the base program to its value in the source
program and computes everything after it again; what then stands in the last variable is the hypothesis's prediction:

    >>> exchange(value_forward(2), base, source, "value 2")
    8

A position is ``rhs k`` or ``lhs k`` of the base program's chain, ``query``, ``colon``, or ``line N``, the right-hand
side of a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.own_files import OwnCodeFailed, explain, load_named
from bindscope.tasks.binding import Program

Lines = tuple[int, ...]


@dataclass(frozen=True)
class Variable:
    """One variable of a causal model and the position whose residual stream should hold it."""

    name: str
    position: str
    compute: Callable[..., Any]  # of the program, the lines of the base's chain, and the parents' values
    parents: tuple[str, ...] = ()


Variables = Sequence[Variable]
Function = Callable[[int], Variables]


@dataclass(frozen=True)
class Hypothesis:
    """A causal model for each depth, under a name."""

    name: str
    function: Function
    location: str = ""  # PATH.py:NAME, if it is a person's own

    def variables(self, depth: int) -> tuple[Variable, ...]:
        """Its variables for chains of a depth, checked: each after its parents, each at a position there is."""
        found = self.run(self.function, depth)
        if not isinstance(found, Sequence) or not found or not all(isinstance(each, Variable) for each in found):
            raise OwnCodeFailed(f"{self.where}: it must return a list of Variable for depth {depth}, the answer last.")
        known: list[str] = []
        for each in found:
            missing = [parent for parent in each.parents if parent not in known]
            if missing:
                raise OwnCodeFailed(
                    f"{self.where}: '{each.name}' needs '{missing[0]}' before it.{_hint(missing[0], known)}"
                )
            if each.name in known:
                raise OwnCodeFailed(f"{self.where}: two variables are called '{each.name}'.")
            if not is_position(each.position, depth):
                raise OwnCodeFailed(
                    f"{self.where}: '{each.name}' lives at '{each.position}', which a chain of depth {depth} does not have; "
                    f"it has rhs 1 to rhs {depth}, lhs, query, colon and line N."
                )
            known.append(each.name)
        return tuple(found)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call of a person's own code; what goes wrong in it is one sentence with its line."""
        try:
            return function(*arguments)
        except Exception as problem:
            code = getattr(function, "__code__", None)
            raise OwnCodeFailed(
                f"{self.where} failed{explain(problem, code.co_filename if code else None)}"
            ) from problem

    @property
    def where(self) -> str:
        return self.location or self.name


def evaluate(
    hypothesis: Hypothesis, variables: Variables, program: Program, lines: Lines, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The value of every variable; those that are ``given`` are not computed."""
    values: dict[str, Any] = {}
    for each in variables:
        if given is not None and each.name in given:
            values[each.name] = given[each.name]
        else:
            values[each.name] = hypothesis.run(each.compute, program, lines, *(values[name] for name in each.parents))
    return values


def exchange(hypothesis: Hypothesis, variables: Variables, base: Program, source: Program, name: str = "") -> Any:
    """The answer that a hypothesis predicts when a variable of the base has its value in the source; '' exchanges none."""
    lines = tuple(reversed(base.chain))
    if not name:
        return evaluate(hypothesis, variables, base, lines)[variables[-1].name]
    taken = evaluate(hypothesis, variables, source, lines)[name]
    return evaluate(hypothesis, variables, base, lines, {name: taken})[variables[-1].name]


def is_position(position: str, depth: int) -> bool:
    match = re.fullmatch(r"(?:rhs|lhs) (\d+)|query|colon|line [1-9]\d*", position)
    return match is not None and (match[1] is None or 1 <= int(match[1]) <= depth)


def value_forward(depth: int) -> list[Variable]:
    """The value comes forward: from right-hand side to right-hand side, to the query, to the colon."""

    def value_of(hop: int) -> Callable[..., int]:
        def compute(program: Program, lines: Lines, before: int) -> int:
            follows = program.references[lines[hop] - 1] == lines[hop - 1]
            return before if follows else program.values[lines[hop] - 1]

        return compute

    def at_query(program: Program, lines: Lines, before: int) -> int:
        return before if program.query_line == lines[-1] else program.answer

    first = Variable("value 1", "rhs 1", lambda program, lines: program.values[lines[0] - 1])
    chain = [Variable(f"value {k}", f"rhs {k}", value_of(k - 1), (f"value {k - 1}",)) for k in range(2, depth + 1)]
    query = Variable("queried value", "query", at_query, (f"value {depth}",))
    return [first, *chain, query, Variable("answer", "colon", lambda program, lines, value: value, ("queried value",))]


def pointer_backward(depth: int) -> list[Variable]:
    """A pointer goes back: the colon holds the queried name, then the name that this one is assigned, last the digit."""

    def follow(program: Program, lines: Lines, name: str) -> str | int:
        latest = {each.variable: each.source for each in program.assignments}
        return latest.get(name, name)  # a digit leads nowhere further

    names = [Variable("name 1", "colon", lambda program, lines: program.query)]
    names += [Variable(f"name {k}", "colon", follow, (f"name {k - 1}",)) for k in range(2, depth + 1)]
    answer = Variable("answer", "colon", lambda *given: int(follow(*given)), (f"name {depth}",))
    return [*names, answer]


def early_line(depth: int) -> list[Variable]:
    """The heuristic of the second phase: whatever is asked, the constant of line 1 is given."""
    first = Variable("constant of line 1", "line 1", lambda program, lines: program.values[0])
    return [first, Variable("answer", "colon", lambda program, lines, value: value, ("constant of line 1",))]


SHIPPED: Mapping[str, Function] = {
    "value-forward": value_forward,
    "pointer-backward": pointer_backward,
    "early-line": early_line,
}


def find_hypothesis(given: str | Function | Hypothesis, option: str = "--first") -> Hypothesis:
    """One that comes with Bindscope by its name, one in a file by PATH.py:NAME, or a function itself.

    >>> find_hypothesis("value-forward").name
    'value-forward'
    """
    if isinstance(given, Hypothesis):
        return given
    if not isinstance(given, str):
        return Hypothesis(getattr(given, "__name__", "hypothesis"), given)
    if given in SHIPPED:
        return Hypothesis(given, SHIPPED[given])
    if ":" not in given:
        raise BindscopeError(
            f"{option}: there is no hypothesis '{given}'; one of your own is PATH.py:NAME.{suggest_nearest(given, SHIPPED)}"
        )
    return Hypothesis(given.rpartition(":")[2], load_named(given, option, "function", callable), given)


def _hint(word: str, known: Sequence[str]) -> str:
    return suggest_nearest(word, known) if known else ""
