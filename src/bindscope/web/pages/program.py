"""Programs: examples of a run's task, new ones drawn to a wish, and what a model answers, live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from bindscope.web.again import in_python, steps_in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Question, Resource
from bindscope.web.programs import FAMILIES, ProgramText, Steps, binding_task, read_program

if TYPE_CHECKING:
    from bindscope.tasks.binding.examples import ProgramPair

N_EXAMPLES, EXAMPLE_SEED = 24, 0


class PredictQuestion(Question):
    """What does the model answer at these checkpoints?"""

    steps: Steps
    program: ProgramText


class SampleQuestion(Question):
    """A new program of the run's task; what is null may be anything."""

    depth: Annotated[int, Field(ge=1, le=13)] | None = None
    distractors: Annotated[int, Field(ge=0, le=30)] | None = None  # chains beside the queried one
    n_lines: Annotated[int, Field(ge=2, le=30)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


def list_examples(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Pairs of programs over (program), the same at every visit, covering every depth."""
    import numpy as np

    from bindscope.tasks.binding.examples import draw_examples

    pairs = draw_examples(binding_task(run), np.random.default_rng(EXAMPLE_SEED), N_EXAMPLES)
    call = f"draw_examples(run.run.config.task, np.random.default_rng({EXAMPLE_SEED}), {N_EXAMPLES})"
    return _pairs_to_body(run, pairs, EXAMPLE_SEED, "Example programs", call)


def sample(lab: Lab, run: LabRun, question: SampleQuestion) -> dict[str, Any]:
    """One pair over (program), drawn from the run's own task."""
    import numpy as np

    from bindscope.tasks.binding.examples import draw_pair

    wish = {"depth": question.depth, "n_lines": question.n_lines, "n_chains": question.distractors}
    pair = draw_pair(binding_task(run), np.random.default_rng(question.seed), **wish)
    asked = "".join(f", {name}={value}" for name, value in wish.items() if value is not None)
    call = f"draw_pair(run.run.config.task, np.random.default_rng({question.seed}){asked})"
    return _pairs_to_body(run, [pair], question.seed, "A new program", call)


def predict(lab: Lab, run: LabRun, question: PredictQuestion) -> dict[str, Any]:
    """Probabilities of every output over (step, output), and the true answer."""
    from bindscope.studies.binding.behaviour.one_program import predict_program

    program, steps = read_program(run, question.program), question.steps
    dataset = predict_program(((step, run.model(step)) for step in steps), program)
    only = steps[0] if len(steps) == 1 else None
    return to_body(
        dataset,
        Provenance(run=run.name, step=only, n=1),
        title="What the model answers",
        command=f"bindscope predict {run.name} '{program.one_line}' --step {'all' if only is None else only}",
        python=in_python(run, f'run.predict("{program.one_line}", steps={steps_in_python(run, steps)})'),
    )


def _pairs_to_body(run: LabRun, pairs: Sequence[ProgramPair], seed: int, title: str, call: str) -> dict[str, Any]:
    import xarray as xr

    columns: dict[str, list[Any]] = {
        "text": [base.text for base, _ in pairs],
        "counterfactual": [other.text for _, other in pairs],
        "depth": [base.depth for base, _ in pairs],
        "n_lines": [base.n_lines for base, _ in pairs],
        "root_line": [base.root_line for base, _ in pairs],
        "distractors": [len(base.distractor_chains) for base, _ in pairs],
        "answer": [base.answer for base, _ in pairs],
        "counterfactual_answer": [other.answer for _, other in pairs],
    }
    dataset = xr.Dataset(coords={name: ("program", values) for name, values in columns.items()})
    provenance = Provenance(run=run.name, n=len(pairs), seed=seed)
    drawing = f"from bindscope.tasks.binding.examples import {call.split('(')[0]}"
    return to_body(dataset, provenance, title=title, python=in_python(run, call, drawing, "import numpy as np"))


def asked_steps(question: PredictQuestion, run: LabRun) -> list[int]:
    return question.steps


def no_steps(question: SampleQuestion, run: LabRun) -> list[int]:
    return []


PAGE = Page(
    "program",
    resources=(
        Resource("runs/{run}/programs.json", list_examples, "Example programs of a run's task", families=FAMILIES),
    ),
    operations=(
        Operation("predict", PredictQuestion, predict, "What a model answers to a program", asked_steps),
        Operation("sample", SampleQuestion, sample, "A new program of a run's task", no_steps),
    ),
)
