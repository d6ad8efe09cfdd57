"""Attention: where every head looks in one program, and what becomes of the answer without some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from bindscope.web.again import in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page
from bindscope.web.programs import (
    OneStepQuestion,
    ProgramText,
    Sites,
    asked_step,
    binding_task,
    read_program,
)

if TYPE_CHECKING:
    from bindscope.interventions.ablation import Kind
    from bindscope.studies.binding.behaviour.one_program import Ablated
    from bindscope.tasks.binding.program import Program

DECIMALS = 4  # of a weight: enough to draw, and a body that is small


class AblateQuestion(OneStepQuestion):
    """What does the model answer without these parts?"""

    program: ProgramText
    sites: Sites = Field(default_factory=list)
    kind: Literal["zero", "mean"] = "zero"


class AttentionQuestion(OneStepQuestion):
    """Where does every head look, perhaps without some parts?"""

    program: ProgramText
    ablate: Sites = Field(default_factory=list)
    kind: Literal["zero", "mean"] = "zero"


def attention(lab: Lab, run: LabRun, question: AttentionQuestion) -> dict[str, Any]:
    """Attention weights over (layer, head, query, key), four decimals; 0 where a query cannot look."""
    import numpy as np

    from bindscope.studies.binding.behaviour.one_program import attention_dataset

    program = read_program(run, question.program)
    found = _ablate(run, question.step, program, question.ablate, question.kind)
    dataset = attention_dataset([pattern.round(DECIMALS) + 0.0 for pattern in found.patterns], program)
    dataset = dataset.assign_coords({name: np.arange(size) for name, size in dataset.sizes.items()})
    dataset.attrs["ablated"] = " ".join(question.ablate)
    return to_body(
        dataset,
        Provenance(run=run.name, step=question.step, n=1, note=_note(question.ablate, question.kind)),
        title="Where each head looks",
        command=_command(run, question.step, question.ablate, question.kind),
        python=_python(run, question.step, program, question.ablate, question.kind, "ablated.patterns"),
    )


def ablate(lab: Lab, run: LabRun, question: AblateQuestion) -> dict[str, Any]:
    """Probabilities over (condition: before, after; output) with the sites' output replaced by zero or by its mean."""
    import numpy as np
    import xarray as xr

    from bindscope.tasks.binding.program import VOCABULARY

    program = read_program(run, question.program)
    found = _ablate(run, question.step, program, question.sites, question.kind)
    shares = np.stack([found.before, found.after])
    dataset = xr.Dataset({"probability": (("condition", "output"), shares, {"units": "share"})})
    dataset = dataset.assign_coords(condition=["before", "after"], output=VOCABULARY.shown(len(found.before)))
    dataset.attrs = {"answer": str(program.answer), "sites": " ".join(question.sites)}
    return to_body(
        dataset,
        Provenance(run=run.name, step=question.step, n=1, note=_note(question.sites, question.kind)),
        title="The answer before and after",
        command=_command(run, question.step, question.sites, question.kind)
        or f"bindscope predict {run.name} '{program.one_line}' --step {question.step}",
        python=_python(run, question.step, program, question.sites, question.kind, "ablated.before, ablated.after"),
    )


def _ablate(run: LabRun, step: int, program: Program, sites: list[str], kind: Kind) -> Ablated:
    from bindscope.studies.binding.behaviour.one_program import ablate_program

    return ablate_program(run.model(run.find_step(step)), binding_task(run), program, sites, kind)


def _command(run: LabRun, step: int, sites: list[str], kind: str) -> str:
    """The same parts taken away on many programs; nothing where none is."""
    given = " ".join(f"--of '{site}'" for site in sites)
    return f"bindscope ablate {run.name} {given} --kind {kind} --step {step}" if sites else ""


def _note(sites: list[str], kind: str) -> str:
    from bindscope.studies.binding.behaviour.one_program import N_REFERENCE

    if not sites:
        return ""
    means = f" (means of {N_REFERENCE} other programs of this length, seed 0)" if kind == "mean" else ""
    return f"without {', '.join(sites)}: {kind}{means}"


def _python(run: LabRun, step: int, program: Program, sites: list[str], kind: str, wanted: str) -> str:
    if not sites and wanted == "ablated.patterns":
        return in_python(run, f'run.attention("{program.one_line}", step={step})')
    given = f'run.model({step}), run.run.config.task, run.parse("{program.one_line}"), {sites!r}, {kind!r}'
    importing = "from bindscope.studies.binding.behaviour.one_program import ablate_program"
    return in_python(run, f"ablated = ablate_program({given})\n{wanted}", importing)


PAGE = Page(
    "attention",
    operations=(
        Operation("attention", AttentionQuestion, attention, "Where each head looks in a program", asked_step),
        Operation("ablate", AblateQuestion, ablate, "The answer without some parts", asked_step),
    ),
)
