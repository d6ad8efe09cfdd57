"""``bindscope predict``: type a program, see what a trained model makes of it."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.questions.opened import Opened
from bindscope.questions.program import Predict

if TYPE_CHECKING:
    import xarray as xr


@asking(Predict, program="-")
def predict_program(question: Predict, /, *, top: AtLeastOne = 5, place: Place = HERE, json: Flag = False) -> None:
    """Give a trained model a program, see what it predicts.

    Without a program, or with '-', it is read from standard input.

    Examples:
        bindscope predict binding-laptop "a=5;b=a;c=3;#b:"
        bindscope predict binding-laptop "a=5;b=a;c=3;#b:" --step all
        bindscope sample binding --n 1 --plain | bindscope predict binding-laptop
        bindscope predict assign-add "c=1 b=17 | b+19" --top 3

    Parameters
    ----------
    top
        How many of the likeliest answers to show.
    json
        One JSON object per checkpoint.
    """
    from bindscope.cli.examples import describe_example

    question = replace(question, program=_read_program(question.program))
    opened = Opened.at(question.run, place)
    dataset = question.answer(opened)
    task = opened.task
    example = describe_example(task, task.to_batch(task.read(question.program, opened.n_positions)), 0)
    predictions = [describe_prediction(task, dataset.sel(step=step), top) for step in dataset.step.values]
    if json:
        print("\n".join(json_format.dumps({**prediction, "answer": example.answer}) for prediction in predictions))
        return
    print(f"{example.text}\n\ntrue answer: {example.answer}")
    print(
        format_table(["step", "predicts", "", "likeliest"], [_format_row(p, example.answer) for p in predictions], [0])
    )


def describe_prediction(task: Any, answered: xr.Dataset, top: int) -> dict[str, Any]:
    """What a model answers, with its likeliest answers and their probabilities (or the number it gives)."""
    import numpy as np

    step = int(answered.step)
    if "value" in answered:
        value, answer = float(answered.value), float(answered.attrs["target"])
        return {"step": step, "prediction": f"{value:+.3f}", "error": abs(value - answer), "top": []}
    fractions = answered.probability.values
    names = task.vocabulary.symbols if len(fractions) == task.d_out else answered.output.values.tolist()
    best = np.argsort(-fractions, kind="stable")[:top]
    shown = [{"answer": names[index], "probability": round(float(fractions[index]), 6)} for index in best]
    prediction = str(answered.likeliest.item()) if "likeliest" in answered else shown[0]["answer"]
    return {"step": step, "prediction": prediction, "top": shown}


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
