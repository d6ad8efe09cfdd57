"""``bindscope sample``: what the model is asked."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING

from bindscope.cli.options import Flag, Seed, Setting
from bindscope.cli.settings import parse_settings

if TYPE_CHECKING:
    from bindscope.cli.examples import Example


def sample(
    preset: str,
    /,
    *,
    n: int = 3,
    seed: Seed = 0,
    depth: int | None = None,
    pool: str | None = None,
    settings: Setting = (),
    json: Flag = False,
    plain: Flag = False,
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
        A preset, or a family: binding, assign-add, templates, text (with --set source=PATH).
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
    plain
        Print the programs only, ready for 'bindscope run'.
    """
    import numpy as np

    from bindscope.cli.examples import sample_examples
    from bindscope.runs.config import override
    from bindscope.studies.framework.presets import find_family_preset

    changes = {f"task.{key.removeprefix('task.')}": value for key, value in parse_settings(settings).items()}
    task = override(find_family_preset(preset).config, changes).task
    examples = sample_examples(task, np.random.default_rng(seed), n, pool, depth)
    if json:
        print("\n".join(json_format.dumps(asdict(example)) for example in examples))
    elif plain:
        print("\n\n".join(example.text for example in examples))
    else:
        print("\n\n".join(format_example(example) for example in examples))


def format_example(example: Example) -> str:
    """A program, then its answer and what there is to know about it."""
    facts = [f"{name.replace('_', ' ')} {_format_fact(value)}" for name, value in example.facts.items()]
    return f"{example.text}\n  answer {example.answer}" + "".join(f", {fact}" for fact in facts)


def _format_fact(value: object) -> str:
    return " ← ".join(map(str, value)) if isinstance(value, list) else str(value)
