"""The logit lens: one program live, layer by position, and the run's kept lens over all its checkpoints."""

from __future__ import annotations

from typing import Any

from bindscope.web.again import in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.programs import KINDS, OneStepQuestion, ProgramText, asked_step, read_program


class LensQuestion(OneStepQuestion):
    """What would each layer answer at each position?"""

    program: ProgramText


def lens(lab: Lab, run: LabRun, question: LensQuestion) -> dict[str, Any]:
    """Readings of the stream over (layer, position), at one checkpoint."""
    from bindscope.measures.lens_map import map_lens

    program, step = read_program(run, question.program), run.find_step(question.step)
    return to_body(
        map_lens(run.model(step), program),
        Provenance(run=run.name, step=step, n=1),
        title="What each layer would answer",
        command=f"bindscope lens {run.name} --steps {step} --program '{program.one_line}'",
        python=in_python(run, f'run.lens("{program.one_line}", step={step})'),
    )


def kept_lens(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Answer, line 1's constant and the other constants over (step, layer), with intervals."""
    dataset = kept_result(run, "lens")
    attrs = dataset.attrs
    n, seed = int(attrs.get("asked_n", 0)), int(attrs.get("asked_seed", 0))
    provenance = Provenance(
        run=run.name, n=int(attrs["n"]), seed=seed, interval=f"95 % {attrs['interval']}",
        note=f"{attrs['n_excluded']} programs left out: {attrs['excluded']}",
    )  # fmt: skip
    return to_body(
        dataset,
        provenance,
        title="Answer against line 1, layer by layer over training",
        command=f"bindscope lens {run.name} --n {n} --seed {seed}",
        python=in_python(run, 'run.result("lens")'),
    )


PAGE = Page(
    "logits",
    resources=(Resource("runs/{run}/lens.json", kept_lens, "The logit lens over checkpoints", kinds=KINDS),),
    operations=(Operation("lens", LensQuestion, lens, "What each layer would answer to a program", asked_step),),
)
