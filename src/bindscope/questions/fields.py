"""Fields that several questions share, with the same help and bounds in each."""

from __future__ import annotations

from typing import Any

from bindscope.questions.question import MOST_SEED, ask, to_step, to_steps, to_texts

MOST_PROGRAM = 400  # characters that a server reads: forty lines of six
LIVE_STEP = {"type": int, "ge": 0, "le": 10**12}
LIVE_STEPS = {"type": list[int], "item": LIVE_STEP, "min_length": 1, "max_length": 600}
SITE = {"min_length": 1, "max_length": 40}


def one_step(**more: Any) -> Any:
    """Which checkpoint."""
    about = {"help": "Which checkpoint: a step, 'first' or 'last'.", **more}
    return ask("last", convert=to_step, live={**LIVE_STEP, "required": True}, **about)


def some_steps(default: str = "last", **more: Any) -> Any:
    """Which checkpoints."""
    about = {"help": "Which checkpoints: a step, 'first', 'last', 'all', or a list such as 0,1000,last.", **more}
    live = {**LIVE_STEPS, "required": True}
    return ask(default, convert=to_steps, settle="steps", joined=True, live=live, **about)


def other_step(**more: Any) -> Any:
    """A second checkpoint, if any."""
    return ask(None, convert=to_step, live=LIVE_STEP, **more)


def a_program(*default: None, **more: Any) -> Any:
    """A typed program; without a default it is needed."""
    live = {"type": str, "min_length": 1, "max_length": MOST_PROGRAM, "required": True}
    return ask(*default, positional=True, settle="program", live=live, **more)


def some_sites(**more: Any) -> Any:
    """Names of sites."""
    live = {"type": list[str], "item": SITE, "max_length": 64, **more.pop("live", {})}
    return ask((), convert=to_texts, live=live, **more)


def a_seed(default: int = 0, help: str = "The seed that draws them.", **more: Any) -> Any:
    """A seed of random numbers."""
    return ask(default, help=help, ge=0, live={"le": MOST_SEED}, **more)
