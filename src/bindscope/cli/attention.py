"""``bindscope attention``: what each head attends to while a model reads a program or a sum."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.questions.opened import Opened
from bindscope.questions.program import Attention
from bindscope.questions.sums import Sum

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@asking(Attention)
def attention(question: Attention, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Give a model a program or a sum, see what each head attends to.

    Of a sum, columns 0 to 11 hold the assignments ('_' is a PAD), 12 the operator,
    13 and 14 the operands, 15 the '=' at which the answer is read; --step may then
    be 'all' or a list, to see attention change over training.

    Examples:
        bindscope attention assign-add "c=1 b=17 | b+19"
        bindscope attention assign-add "c=1 _ b=17 | b+c" --step 5400 --out maps.svg
        bindscope attention assign-add "c=1 b=17 | b+19" --step all --out steps.png
        bindscope attention binding-laptop "a=5;b=a;c=3;#b:" --ablate L1.H2

    Parameters
    ----------
    out
        Also write a figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    is_sum = Sum.runs_on in family_of(opened.task).kinds
    if is_sum and question.ablate:
        raise BindscopeError("--ablate: sites are ablated in programs, not in sums; leave it out.")
    if is_sum:
        dataset = Sum(run=question.run, sequence=question.program, steps=question.step).answer(opened)
    else:
        dataset = question.answer(opened)
        dataset = dataset.assign_attrs(program=question.settled(opened).program, step=opened.find_step(question.step))
    dataset = dataset.assign_attrs(run=opened.name)
    table = format_sum(dataset) if is_sum else format_heads(dataset)
    print(json_format.dumps(dataset_to_mapping(dataset)) if json else table)
    if out is not None:
        is_numbers = out.suffix.lower() == NUMBERS
        write_out(dataset, out, None if is_numbers else _draw(dataset, is_sum))
        if not json:
            print(f"\n{'numbers' if is_numbers else 'figure'}  {out}")


def format_heads(dataset: xr.Dataset) -> str:
    """What each head attends to most from the colon, at which the answer is read."""
    tokens = [str(token) for token in dataset.token.values]
    rows = []
    for layer in range(dataset.sizes["layer"]):
        for head in range(dataset.sizes["head"]):
            weights = dataset.pattern.values[layer, head, -1]
            first, second = weights.argsort()[::-1][:2]
            cells = [f"{tokens[index]} @{index}  {weights[index]:.3f}" for index in (first, second)]
            rows.append([f"L{layer}.H{head}", *cells])
    heading = f"{dataset.attrs['run']} at step {dataset.attrs['step']:,}: {dataset.attrs['program']}"
    return f"{heading}\n\n" + format_table(["head", "from the colon most to", "then to"], rows)


def _draw(dataset: xr.Dataset, is_sum: bool) -> Figure:
    from bindscope.notebook.figures import figure_attention
    from bindscope.studies.assign_add.attention.draw import draw_sum

    return draw_sum(dataset) if is_sum else figure_attention(dataset)


def format_sum(dataset: xr.Dataset) -> str:
    """Answer and looks of `=` step by step."""
    from bindscope.measures.arithmetic.one_sum import looks_of_equals

    looks, right = looks_of_equals(dataset), dataset.attrs["answer"]
    positions = dataset.value_position.values.tolist()
    rows = []
    for step in dataset.step.values:
        fractions = dataset.probability.sel(step=step)
        predicted = str(fractions.output.values[int(fractions.argmax("output"))])
        weights = [float(weight) for name in ("operands", "values") for weight in looks[name].sel(step=step)]
        verdict = "right" if predicted == right else "wrong"
        answers = [f"{float(fractions.sel(output=output)):.3f}" for output in (predicted, right)]
        rows.append([f"{step:,}", predicted, verdict, *answers, *(f"{weight:.3f}" for weight in weights)])
    names = [f"L1 = on {column}" for column in dataset.operand_position.values.tolist()]
    names += [f"L{int(dataset.layer[-1])} = on {column}" for column in positions]
    numbers = " and ".join(
        f"{value} in column {column}" for value, column in zip(dataset.value.values.tolist(), positions)
    )
    head = f"{dataset.attrs['text']}\n\ntrue answer: {right}; its operands are {numbers}"
    columns = ["step", "predicts", "", "with", f"p({right})", *names]
    return f"{head}\n{format_table(columns, rows, numbers=[0, *range(3, len(columns))])}"
