"""``bindscope sample``: what the model is asked."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from bindscope.cli.asking import option
from bindscope.cli.options import Flag, Seed, Setting
from bindscope.cli.settings import parse_settings
from bindscope.errors import BindscopeError
from bindscope.questions.samples import Sample

if TYPE_CHECKING:
    from bindscope.families import Example


def sample(
    preset: str,
    /,
    *,
    n: int = 3,
    seed: Seed = 0,
    depth: int | None = None,
    split: str | None = None,
    pair: Flag = False,
    lines: Annotated[int | None, option(Sample, "n_lines")] = None,
    distractors: Annotated[int | None, option(Sample, "distractors")] = None,
    settings: Setting = (),
    json: Flag = False,
    plain: Flag = False,
) -> None:
    """Print examples of a task with their true answers.

    Examples:
        bindscope sample binding-tiny
        bindscope sample binding --depth 4 --n 1
        bindscope sample binding --set lines=8 --set exponent=0 --json
        bindscope sample assign-add --split 2add
        bindscope sample binding-laptop --pair --depth 3 --lines 9 --distractors 2

    Parameters
    ----------
    preset
        A preset, or a family: binding, assign-add, templates, code, text (with --set source=PATH), or one of your own; with
        --pair also a run.
    n
        How many examples.
    seed
        The seed that draws them.
    depth
        Only binding programs whose query is this deep.
    split
        Draw from this evaluation split instead of the training data.
    pair
        Print one binding program and its counterfactual, which differs in the constant at the root.
    settings
        Change one of the task's settings, as KEY=VALUE; give it once per setting.
    json
        One JSON object per line.
    plain
        Print the programs only, ready for 'bindscope predict'.
    """
    import numpy as np

    from bindscope.cli.examples import sample_examples

    if pair:
        print_pair(Sample(run=preset, depth=depth, n_lines=lines, distractors=distractors, seed=seed), settings, json)
        return
    if lines is not None or distractors is not None:
        raise BindscopeError("--lines and --distractors: say what a --pair is like; give that too.")
    task = _find_task(preset, settings)
    examples = sample_examples(task, np.random.default_rng(seed), n, split, depth)
    if json:
        print("\n".join(json_format.dumps(asdict(example)) for example in examples))
    elif plain:
        print("\n\n".join(example.text for example in examples))
    else:
        print("\n\n".join(format_example(example) for example in examples))


def print_pair(question: Sample, settings: tuple[str, ...], json: bool) -> None:
    """A program and its counterfactual, of a run's task or a preset's."""
    from bindscope.questions.opened import Opened
    from bindscope.runs.locate import find_run

    try:
        find_run(question.run)
    except BindscopeError:
        task = _find_task(question.run, settings)
    else:
        task = Opened.at(question.run).task_of(question.runs_on)
    drawn = {name: values.item() for name, values in question.answer(task).coords.items()}
    if json:
        print(json_format.dumps(drawn))
        return
    facts = ", ".join(f"{name.replace('_', ' ')} {drawn[name]}" for name in ("depth", "root_line", "distractors"))
    print(f"{drawn['text']}\n  answer {drawn['answer']}, {facts}\n")
    print(f"{drawn['counterfactual']}\n  answer {drawn['counterfactual_answer']}")


def _find_task(preset: str, settings: tuple[str, ...]) -> Any:
    from bindscope.runs.config import override
    from bindscope.studies.framework.presets import find_family_preset

    changes = {f"task.{key.removeprefix('task.')}": value for key, value in parse_settings(settings).items()}
    return override(find_family_preset(preset).config, changes).task


def format_example(example: Example) -> str:
    """A program, then its answer and what there is to know about it."""
    facts = [f"{name.replace('_', ' ')} {_format_fact(value)}" for name, value in example.facts.items()]
    return f"{example.text}\n  answer {example.answer}" + "".join(f", {fact}" for fact in facts)


def _format_fact(value: object) -> str:
    return " ← ".join(map(str, value)) if isinstance(value, list) else str(value)
