"""``bindscope run``: type a program, see what a trained model makes of it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def run_program(
    run: str,
    program: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    step: str = "last",
    top: int = 5,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Give a trained model a program, see what it predicts.

    Examples:
        bindscope run binding-laptop "a=5;b=a;c=3;#b:"
        bindscope run binding-laptop "a=5;b=a;c=3;#b:" --step all
        bindscope sample binding-tiny --n 1 --plain | bindscope run runs/binding-tiny
        bindscope run runs/assign-add "c=1 b=17 | b+19" --top 3

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    program
        The program, or '-' to read it from standard input. Lines end with a line break, the two characters \\\\n, or ';'.
    step
        Which checkpoint: a step, 'last', or 'all' to see the prediction change over training.
    top
        How many of the likeliest answers to show.
    json
        One JSON object per checkpoint.
    """
