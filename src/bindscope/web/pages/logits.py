"""The logit lens: one program live, layer by position, and the run's saved lens over all its checkpoints."""

from __future__ import annotations

from typing import Any

from bindscope.questions.program import Lens
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.programs import KINDS


def lens(lab: Lab, run: LabRun, question: Lens) -> dict[str, Any]:
    """Readings of the residual stream over (layer, position), at one checkpoint."""
    dataset = question.answer(opened(run))
    return answer_body(question, dataset, "What each layer would answer", run=run, step=question.step, n=1)


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
        command=in_shell(run, "lens", n=n, seed=seed),
        python=in_python(run, 'run.result("lens")'),
    )


PAGE = Page(
    "logits",
    resources=(Resource("runs/{run}/lens.json", kept_lens, "The logit lens over checkpoints", kinds=KINDS),),
    operations=(Operation("lens", Lens, lens, "What each layer would answer to a program", ("step", "program")),),
)
