"""Attention: what every head attends to in one program, and what becomes of the answer without some of them."""

from __future__ import annotations

from typing import Any

from bindscope.questions.program import Ablate, Attention
from bindscope.web.asking import answer_body, opened
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page

DECIMALS = 4  # of a weight: enough to draw, and a body that is small


def attention(lab: Lab, run: LabRun, question: Attention) -> dict[str, Any]:
    """Attention weights over (layer, head, query, key), four decimals; 0 where a query cannot look."""
    import numpy as np

    dataset = question.answer(opened(run))
    dataset["pattern"] = (dataset.pattern.round(DECIMALS) + 0.0).assign_attrs(units="fraction")
    dataset = dataset.assign_coords({name: np.arange(size) for name, size in dataset.sizes.items()})
    dataset.attrs["ablated"] = " ".join(question.ablate)
    return answer_body(question, dataset, "Where each head looks", run=run, step=question.step, n=1, note=question.note)


def ablate(lab: Lab, run: LabRun, question: Ablate) -> dict[str, Any]:
    """Probabilities over (condition: before, after; output) with the sites' output replaced by zero or by its mean."""
    dataset = question.answer(opened(run))
    return answer_body(
        question, dataset, "The answer before and after", run=run, step=question.step, n=1, note=question.note
    )


PAGE = Page(
    "attention",
    operations=(
        Operation(
            "attention",
            Attention,
            attention,
            "Where each head looks in a program",
            ("step", "program", "ablate", "kind"),
        ),
        Operation("ablate", Ablate, ablate, "The answer without some parts", ("step", "program", "sites", "kind")),
    ),
)
