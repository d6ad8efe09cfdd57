"""A schedule of letters and lines: few letters on short programs first, then all letters, then longer programs.

From plain random weights the match of equal names is learned quickly on two lines over four letters and practically
never on sixteen lines over twenty-six (docs/recipe.md). The schedule changes the data and nothing about the weights.
Training passes to the next stage when the model answers fresh programs of the present one well enough.

>>> [str(stage) for stage in Curriculum().stages(n_letters=26, n_lines=4)]
['4 letters, 2 lines', '7 letters, 2 lines', '12 letters, 2 lines', '20 letters, 2 lines', '26 letters, 2 lines',
 '26 letters, 3 lines', '26 letters, 4 lines']
"""

from __future__ import annotations

from dataclasses import dataclass

from bindscope.errors import BindscopeError


@dataclass(frozen=True)
class Stage:
    """What programs are made of for a while."""

    n_letters: int
    n_lines: int

    def __str__(self) -> str:
        return f"{self.n_letters} letters, {self.n_lines} lines"


@dataclass(frozen=True)
class Curriculum:
    """Where the schedule begins and when it goes on.

    A batch of a stage has programs of its full length half of the time, else of any length from ``first_lines`` on. A
    batch of short programs holds more of them and asks fewer queries each, so that every batch has as many tokens.
    """

    first_letters: int = 4
    first_lines: int = 2
    letters_at: int = 2  # how many lines programs have when letters are added
    pass_at: float = 0.95  # accuracy on fresh programs of the present stage that opens the next one
    full: float = 0.0  # fraction of the batches that are the whole task from the beginning
    whole_at_end: bool = False  # once the last stage has begun, every batch is the whole task
    exponent: float = 0.0  # how strongly scheduled programs extend deep chains: 0 = uniform, below 0 = short ones first
    side_by_side: bool = False  # scheduled programs are two chains or more that never branch
    p_constant: float | None = None  # that a later line of a scheduled program is a constant; None: as in the task

    def __post_init__(self) -> None:
        if self.first_lines < 2:
            raise BindscopeError(f"task.curriculum.first_lines: must be at least 2, got {self.first_lines}.")
        if self.first_letters < self.first_lines:
            raise BindscopeError(
                f"task.curriculum.first_letters: {self.first_lines} lines need as many letters, got {self.first_letters}."
            )
        if not 0 < self.pass_at <= 1:
            raise BindscopeError(f"task.curriculum.pass_at: must lie in (0, 1], got {self.pass_at}.")
        if not 0 <= self.full < 1:
            raise BindscopeError(f"task.curriculum.full: must lie in [0, 1), got {self.full}.")
        if self.p_constant is not None and not 0 <= self.p_constant <= 1:
            raise BindscopeError(f"task.curriculum.p_constant: must lie in [0, 1], or none, got {self.p_constant}.")
        if not -10 <= self.exponent <= 10:
            raise BindscopeError(f"task.curriculum.exponent: must lie between -10 and 10, got {self.exponent}.")

    def stages(self, n_letters: int, n_lines: int) -> tuple[Stage, ...]:
        """From the first stage to the whole task: to ``letters_at`` lines, then all letters, then all lines.

        Letters grow by 1.6 + 1, lines by a third.
        """
        letters, lines = min(self.first_letters, n_letters), min(self.first_lines, n_lines)
        stages = [Stage(letters, lines)]
        while lines < min(self.letters_at, n_lines):
            lines += 1
            stages.append(Stage(letters, lines))
        while letters < n_letters:
            letters = min(n_letters, int(1.6 * letters + 1))
            stages.append(Stage(letters, lines))
        while lines < n_lines:
            lines = min(n_lines, lines + max(1, lines // 3))
            stages.append(Stage(letters, lines))
        return tuple(stages)
