"""``bindscope sample``: what the model is asked."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.train import Setting


def sample(
    preset: str,
    /,
    *,
    n: int = 3,
    seed: int = 0,
    depth: int | None = None,
    pool: str | None = None,
    settings: Setting = (),
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print examples of a task with their true answers.

    Examples:
        bindscope sample binding-tiny
        bindscope sample binding --depth 4 --n 1
        bindscope sample binding --set lines=8 --set exponent=0 --json
        bindscope sample assign-add --pool 2add

    Parameters
    ----------
    preset
        A preset, or a family: binding, assign-add, templates.
    n
        How many examples.
    seed
        The seed that draws them.
    depth
        Only binding programs whose query is this deep.
    pool
        Draw from this evaluation pool instead of the training data.
    settings
        Change one of the task's settings, as KEY=VALUE; give it once per setting.
    json
        One JSON object per line.
    """
