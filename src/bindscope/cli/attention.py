"""``bindscope attention``: where a model of sums looks while it reads one."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import Flag
from bindscope.cli.outcome import check_out, write_out
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run


def attention(
    run: str,
    sequence: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    step: str = "last",
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Give a model of modular addition a sequence, see what each layer attends to.

    Columns 0 to 11 hold the assignments ('_' is a PAD), 12 the operator, 13 and 14
    the operands, 15 the '=' at which the answer is read.

    Examples:
        bindscope attention assign-add "c=1 b=17 | b+19"
        bindscope attention assign-add "c=1 _ b=17 | b+c" --step 5400 --out maps.svg
        bindscope attention assign-add "c=1 b=17 | b+19" --step all --out steps.png

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name: a run on sums.
    sequence
        The sum: assignments, '|', and two operands that are numbers or assigned variables.
    step
        Which checkpoint: a step, 'last', or 'all' to see the looks change over training.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    from bindscope.runs.directory import Run
    from bindscope.studies.assign_add.attention.draw import draw_sum

    check_out(out)
    opened = Run.open(find_run(run))
    dataset = read_sum(opened, sequence, step)
    print(json_format.dumps(dataset_to_mapping(dataset)) if json else format_sum(dataset))
    if out is not None:
        write_out(dataset, out, None if out.suffix.lower() == ".nc" else draw_sum(dataset))
        if not json:
            print(f"\n{'numbers' if out.suffix.lower() == '.nc' else 'figure'}  {out}")


def read_sum(run: Run, text: str, step: str) -> xr.Dataset:
    """The maps and answers of one sum over (step, …)."""
    from bindscope.studies.assign_add.attention.one_sum import attention_over_steps
    from bindscope.tasks.assign_add import AssignAddTask

    task = run.config.task
    if not isinstance(task, AssignAddTask):
        raise BindscopeError(f"{run.name}: its task is {task.family}; this command needs a run on sums.")
    tokens = task.read(text)
    steps = run.steps if step == "all" else (run.find_step(step),)
    dataset = attention_over_steps(((kept, run.checkpoint(kept)) for kept in steps), task, tokens)
    return dataset.assign_attrs(run=run.name)


def format_sum(dataset: xr.Dataset) -> str:
    """Answer and looks of `=` step by step."""
    from bindscope.studies.assign_add.attention.one_sum import looks_of_equals

    looks, right = looks_of_equals(dataset), dataset.attrs["answer"]
    places = dataset.value_position.values.tolist()
    rows = []
    for step in dataset.step.values:
        shares = dataset.probability.sel(step=step)
        predicted = str(shares.output.values[int(shares.argmax("output"))])
        weights = [float(weight) for name in ("operands", "values") for weight in looks[name].sel(step=step)]
        verdict = "right" if predicted == right else "wrong"
        answers = [f"{float(shares.sel(output=output)):.3f}" for output in (predicted, right)]
        rows.append([f"{step:,}", predicted, verdict, *answers, *(f"{weight:.3f}" for weight in weights)])
    names = [f"L1 = on {column}" for column in dataset.operand_position.values.tolist()]
    names += [f"L{int(dataset.layer[-1])} = on {column}" for column in places]
    numbers = " and ".join(
        f"{value} in column {column}" for value, column in zip(dataset.value.values.tolist(), places)
    )
    head = f"{dataset.attrs['text']}\n\ntrue answer: {right}; its operands are {numbers}"
    columns = ["step", "predicts", "", "with", f"p({right})", *names]
    return f"{head}\n{format_table(columns, rows, numbers=[0, *range(3, len(columns))])}"
