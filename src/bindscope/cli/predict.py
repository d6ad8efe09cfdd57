"""``bindscope predict``: type a program, see what a trained model makes of it."""

from __future__ import annotations

import json as json_format
import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bindscope.cli.options import Flag
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run

if TYPE_CHECKING:
    from bindscope.tasks.task import Batch, Task


def predict_program(
    run: str,
    program: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-",
    /,
    *,
    step: str = "last",
    top: int = 5,
    json: Flag = False,
) -> None:
    """Give a trained model a program, see what it predicts.

    Examples:
        bindscope predict binding-laptop "a=5;b=a;c=3;#b:"
        bindscope predict binding-laptop "a=5;b=a;c=3;#b:" --step all
        bindscope sample binding --n 1 --plain | bindscope predict binding-laptop
        bindscope predict assign-add "c=1 b=17 | b+19" --top 3

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    program
        The program, or '-' to read it from standard input. Lines end with a line break, the characters \\n, or ';'.
    step
        Which checkpoint: a step, 'last', or 'all' to see the prediction change over training.
    top
        How many of the likeliest answers to show.
    json
        One JSON object per checkpoint.
    """
    from bindscope.cli.examples import describe_example
    from bindscope.runs.directory import Run

    if top < 1:
        raise BindscopeError(f"--top: must be at least 1, got {top}.")
    opened = Run.open(find_run(run))
    task: Any = opened.config.task
    batch = task.to_batch(task.read(_read_program(program), opened.config.model.n_positions))
    steps = opened.steps if step == "all" else (opened.find_step(step),)
    predictions = [{"step": kept, **predict(task, opened.checkpoint(kept), batch, top)} for kept in steps]
    example = describe_example(task, batch, 0)
    if json:
        print("\n".join(json_format.dumps({**prediction, "answer": example.answer}) for prediction in predictions))
        return
    print(f"{example.text}\n\ntrue answer: {example.answer}")
    print(
        format_table(["step", "predicts", "", "likeliest"], [_format_row(p, example.answer) for p in predictions], [0])
    )


def predict(task: Task, model: Any, batch: Batch, top: int) -> dict[str, Any]:
    """What a model answers, with its likeliest answers and their probabilities (or the number it gives)."""
    import numpy as np

    from bindscope.cli.examples import format_answer
    from bindscope.measures.evaluation import read_answers

    outputs = read_answers(model, batch)[0].astype(float)  # [output]
    if task.target_kind == "real":
        error = abs(float(outputs[0]) - float(batch.targets[0, 0]))
        return {"prediction": format_answer(task, outputs[0]), "error": error, "top": []}
    weights = np.exp(outputs - outputs.max())
    probabilities = weights / weights.sum()
    best = np.argsort(-probabilities, kind="stable")[:top]
    shown = [
        {"answer": format_answer(task, token), "probability": round(float(probabilities[token]), 6)} for token in best
    ]
    return {"prediction": shown[0]["answer"], "top": shown}


def _read_program(program: str) -> str:
    if program != "-":
        if program.startswith("--"):
            raise BindscopeError(f"unknown option: {program}. See 'bindscope predict --help'.")
        return program
    if sys.stdin.isatty():
        print("Type a program and end it with Ctrl-D:", file=sys.stderr)
    return sys.stdin.read()


def _format_row(prediction: dict[str, Any], answer: str) -> list[str]:
    from bindscope.tasks.vocabulary import show_symbol

    likeliest = "  ".join(f"{show_symbol(shown['answer'])} {shown['probability']:.3f}" for shown in prediction["top"])
    verdict = "right" if prediction["prediction"] == answer else "wrong"
    if "error" in prediction:
        verdict = f"off by {prediction['error']:.3f}"
    return [f"{prediction['step']:,}", show_symbol(prediction["prediction"]), verdict, likeliest]
