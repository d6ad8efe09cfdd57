"""``bindscope construct``: the ideal mechanism as a run."""

from __future__ import annotations

from pathlib import Path

from bindscope.cli.options import HERE, AtLeastOne, Place
from bindscope.runs.locate import CONSTRUCTED_NAME, RUNS_DIRECTORY


def construct(
    *,
    name: str = CONSTRUCTED_NAME,
    lines: AtLeastOne = 16,
    max_depth: AtLeastOne = 4,
    out: Path = RUNS_DIRECTORY,
    n: AtLeastOne = 2000,
    place: Place = HERE,
) -> None:
    """Write a transformer that binds variables by design, as a run beside the learned ones.

    Nothing is trained: its weights are written so that one head follows the
    chain, one line a layer, and every step of its circuit is known. Look at it
    as at any run; what is claimed about learning cannot be tested on it.

    Examples:
        bindscope construct
        bindscope predict binding-constructed "a=5;b=a;#b:"
        bindscope circuit binding-constructed --depth 3
        bindscope construct --name short --lines 6 --max-depth 2

    Parameters
    ----------
    name
        The run's name.
    lines
        How many lines its programs have at most.
    max_depth
        How deep their chains are at most; each link takes a layer.
    out
        The directory that holds runs.
    n
        How many programs it is evaluated on.
    """
    from bindscope.cli.display import accuracy_of
    from bindscope.errors import BindscopeError
    from bindscope.runs.config import check_name
    from bindscope.runs.construct import construct_run

    check_name(name)
    if max_depth > lines:
        raise BindscopeError(f"--max-depth: {lines} lines hold no chain of depth {max_depth}; give at most {lines}.")
    run = construct_run(out / name, lines, max_depth, n, place)
    print(f"Constructed, accuracy {accuracy_of(run.metrics[-1]):.4f}, saved in {run.path}.")
    print(f"Next: bindscope circuit {run.path} --depth {min(2, max_depth)}")
