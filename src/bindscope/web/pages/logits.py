"""The logit lens: one program live, layer by position, and the run's kept lens over all its checkpoints."""

from __future__ import annotations

from typing import Any

from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Operation, Page, Question, Resource, Step
from bindscope.web.pages.program import ProgramText, one_line, open_run, program_literal, read_program


class LensQuestion(Question):
    """What would each layer answer at each position?"""

    step: Step
    program: ProgramText


def lens(lab: Lab, run: LabRun, question: LensQuestion) -> dict[str, Any]:
    """Readings of the stream over (layer, position), at one checkpoint."""
    from bindscope.measures.lens_map import map_lens

    program, step = read_program(run, question.program), run.find_step(question.step)
    python = (
        open_run(run) + "from bindscope.measures.lens_map import map_lens\n\n"
        f'program = run.config.task.parse("{program_literal(program)}")\n'
        f"map_lens(run.checkpoint({step}), program)"
    )
    return to_body(
        map_lens(run.model(step), program),
        Provenance(run=run.name, step=step, n=1),
        title="What each layer would answer",
        command=f"bindscope lens {run.name} --steps {step} --program '{one_line(program)}'",
        python=python,
    )


def kept_lens(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Answer, line 1's constant and the other constants over (step, layer), with intervals."""
    filled = run.library.fill("lens")
    if filled.dataset is None:
        raise NotMeasured(f"{run.name}: {filled.reason}")
    attrs, steps = filled.dataset.attrs, tuple(filled.dataset.step.values.tolist())
    n, seed = int(attrs.get("asked_n", 0)), int(attrs.get("asked_seed", 0))
    provenance = Provenance(
        run=run.name, n=int(attrs["n"]), seed=seed, interval=f"95 % {attrs['interval']}",
        note=f"{attrs['n_excluded']} programs left out: {attrs['excluded']}",
    )  # fmt: skip
    python = (
        open_run(run) + "import numpy as np\nfrom bindscope.measures.lens import logit_lens\n\n"
        f'programs = run.config.task.sample_evaluation(np.random.default_rng({seed}), {n})["test"]\n'
        f"steps = {'run.steps' if steps == run.run.steps else list(steps)}\n"
        "models = [(step, run.checkpoint(step)) for step in steps]\n"
        f"logit_lens(models, programs, rng=np.random.default_rng({seed}))"
    )
    return to_body(
        filled.dataset,
        provenance,
        title="Answer against line 1, layer by layer over training",
        command=f"bindscope lens {run.name} --n {n} --seed {seed}",
        python=python,
    )


def asked_step(question: LensQuestion, run: LabRun) -> list[int]:
    return [question.step]


PAGE = Page(
    "logits",
    resources=(Resource("runs/{run}/lens.json", kept_lens, "The logit lens over checkpoints", families=("binding",)),),
    operations=(Operation("lens", LensQuestion, lens, "What each layer would answer to a program", asked_step),),
)
