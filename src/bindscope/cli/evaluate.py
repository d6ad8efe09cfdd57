"""``bindscope evaluate``: how good one checkpoint is, with intervals."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def evaluate(
    run: str,
    /,
    *,
    step: str = "last",
    n: int = 2000,
    seed: int = 1,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure a checkpoint's accuracy, by depth and more.

    Every share comes with its 95 % Wilson interval. The examples are drawn anew with --seed, never from training.

    Examples:
        bindscope evaluate binding-laptop
        bindscope evaluate binding-laptop --step 1000 --n 10000
        bindscope evaluate runs/fast --json

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    step
        Which checkpoint: a step, or 'last'.
    n
        How many examples each pool has.
    seed
        The seed that draws them.
    json
        Print the measurements as JSON instead of tables.
    """
