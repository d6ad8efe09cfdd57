"""Programs: examples of a run's task, new ones drawn to a wish, and what a model answers, live."""

from __future__ import annotations

from typing import Any

from bindscope.questions.program import Predict
from bindscope.questions.samples import Sample, list_pairs
from bindscope.web.again import in_python
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.programs import KINDS, binding_task

N_EXAMPLES, EXAMPLE_SEED = 24, 0


def list_examples(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Pairs of programs over (program), the same at every visit, covering every depth."""
    import numpy as np

    from bindscope.tasks.binding.examples import draw_examples

    pairs = draw_examples(binding_task(run), np.random.default_rng(EXAMPLE_SEED), N_EXAMPLES)
    call = f"draw_examples(run.run.config.task, np.random.default_rng({EXAMPLE_SEED}), {N_EXAMPLES})"
    imports = ("from bindscope.tasks.binding.examples import draw_examples", "import numpy as np")
    return to_body(
        list_pairs(pairs),
        Provenance(run=run.name, n=len(pairs), seed=EXAMPLE_SEED),
        title="Example programs",
        python=in_python(run, call, *imports),
    )


def sample(lab: Lab, run: LabRun, question: Sample) -> dict[str, Any]:
    """One pair over (program), drawn from the run's own task."""
    dataset = question.answer(binding_task(run))
    return answer_body(question, dataset, "A new program", run=run, n=1, seed=question.seed)


def predict(lab: Lab, run: LabRun, question: Predict) -> dict[str, Any]:
    """Probabilities of every output over (step, output), and the true answer."""
    binding_task(run)
    dataset = question.answer(opened(run))
    only = question.steps if isinstance(question.steps, int) else None
    return answer_body(question, dataset, "What the model answers", run=run, step=only, n=1)


PAGE = Page(
    "program",
    resources=(Resource("runs/{run}/programs.json", list_examples, "Example programs of a run's task", kinds=KINDS),),
    operations=(
        Operation("predict", Predict, predict, "What a model answers to a program", ("steps", "program")),
        Operation(
            "sample", Sample, sample, "A new program of a run's task", ("depth", "distractors", "n_lines", "seed")
        ),
    ),
)
