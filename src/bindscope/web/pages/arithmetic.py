"""Sums: how a run learned them, what its weights say, and what it answers to one, live."""

from __future__ import annotations

from typing import Any

from bindscope.errors import BindscopeError
from bindscope.web.again import in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Operation, Page, Question, Resource
from bindscope.web.programs import Steps
from bindscope.web.sums import FAMILIES, SumText, read_sum, sum_task

DECIMALS = 4  # of a weight: enough to draw, and a body that is small
N_EXAMPLES, EXAMPLE_SEED = 2, 0  # of each pool
WILSON = "95 % Wilson interval over sums"
ONE_SUM = "bindscope.studies.assign_add.one_sum"


class SumQuestion(Question):
    """Where does the model look in this sum, and what does it answer, at these checkpoints?"""

    steps: Steps
    sequence: SumText


def read_pools(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Accuracy of the nine pools over (step), the halves of those with held-out pairs, and where several jump."""
    from bindscope.studies.trajectory import trajectory_dataset

    try:
        dataset = trajectory_dataset(run.run.metrics)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    n = int(dataset.pool_n.values[0])
    dataset = dataset[["pool_accuracy", "pool_accuracy_low", "pool_accuracy_high", "half_accuracy"]]
    return to_body(
        dataset,
        Provenance(run=run.name, n=n, seed=run.run.config.seed, interval=WILSON),
        title="Nine pools over training",
        command=f"bindscope trajectory {run.name}",
        python=in_python(run, "run.trajectory()"),
    )


def list_sums(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Sums over (sum), the same at every visit, some of each pool."""
    import numpy as np
    import xarray as xr

    task = sum_task(run)
    pools = task.sample_evaluation(np.random.default_rng(EXAMPLE_SEED), N_EXAMPLES)
    order = sorted(pools, key=lambda pool: pool.startswith("0"))  # first those with something to look up
    rows = [(pool, *row) for pool in order for row in zip(pools[pool].tokens, pools[pool].targets)]
    columns: dict[str, list[Any]] = {
        "text": [task.render(row) for _, row, _ in rows],
        "pool": [pool for pool, _, _ in rows],
        "answer": [int(answer[0]) for _, _, answer in rows],
    }
    dataset = xr.Dataset(coords={name: ("sum", values) for name, values in columns.items()})
    call = f"run.run.config.task.sample_evaluation(np.random.default_rng({EXAMPLE_SEED}), {N_EXAMPLES})"
    return to_body(
        dataset,
        Provenance(run=run.name, n=len(rows), seed=EXAMPLE_SEED),
        title="Example sums",
        command=f"bindscope sample {run.name}",
        python=in_python(run, call, "import numpy as np"),
    )


def ask_sum(lab: Lab, run: LabRun, question: SumQuestion) -> dict[str, Any]:
    """Attention over (step, layer, query, key), four decimals, and probabilities over (step, output)."""
    from bindscope.studies.assign_add.one_sum import attention_over_steps

    task, tokens, steps = sum_task(run), read_sum(run, question.sequence), question.steps
    dataset = attention_over_steps(((step, run.model(step)) for step in steps), task, tokens)
    dataset["pattern"] = (dataset.pattern.round(DECIMALS) + 0.0).assign_attrs(units="share")
    text = task.render(tokens)
    only = steps[0] if len(steps) == 1 else None
    at = "run.steps" if tuple(steps) == run.run.steps else str(steps)
    call = (
        f'task = run.run.config.task\nmodels = ((step, run.model(step)) for step in {at})\n'
        f'attention_over_steps(models, task, task.parse("{text}"))'
    )
    return to_body(
        dataset,
        Provenance(run=run.name, step=only, n=1),
        title="Where the model looks, and what it answers",
        command=f"bindscope attention {run.name} '{text}' --step {'all' if only is None else only}",
        python=in_python(run, call, f"from {ONE_SUM} import attention_over_steps"),
    )


def asked_steps(question: SumQuestion, run: LabRun) -> list[int]:
    return question.steps


PAGE = Page(
    "arithmetic",
    resources=(
        Resource("runs/{run}/sums.json", list_sums, "Example sums of a run's task", families=FAMILIES),
        Resource("runs/{run}/pools.json", read_pools, "The nine pools over training", families=FAMILIES),
    ),
    operations=(Operation("sum", SumQuestion, ask_sum, "What a model makes of a sum", asked_steps),),
)
