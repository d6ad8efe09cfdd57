"""Attention: what every head attends to in one program, and what becomes of the answer without some of them, in one program and
by depth and hop in many."""

from __future__ import annotations

from typing import Any

from bindscope.questions.program import Ablate, Attention
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.programs import KINDS

DECIMALS = 4  # of a weight: enough to draw, and a body that is small


def attention(lab: Lab, run: LabRun, question: Attention) -> dict[str, Any]:
    """Attention weights over (layer, head, query, key), four decimals; 0 where a query cannot look."""
    import numpy as np

    dataset = question.answer(opened(run))
    dataset["pattern"] = (dataset.pattern.round(DECIMALS) + 0.0).assign_attrs(units="fraction")
    dataset = dataset.assign_coords({name: np.arange(size) for name, size in dataset.sizes.items()})
    dataset.attrs["ablated"] = " ".join(question.ablate)
    return answer_body(
        question, dataset, "Where each head attends", run=run, step=question.step, n=1, note=question.note
    )


def ablate(lab: Lab, run: LabRun, question: Ablate) -> dict[str, Any]:
    """Probabilities over (condition: before, after; output) with the sites' output replaced by zero or by its mean."""
    dataset = question.answer(opened(run))
    return answer_body(
        question, dataset, "The answer before and after", run=run, step=question.step, n=1, note=question.note
    )


def ablate_drawn(lab: Lab, run: LabRun, question: Ablate) -> dict[str, Any]:
    """Of drawn programs by depth, with every head ablated in turn, or with some sites together: ``accuracy`` with its interval
    and ``lost``, the logits of margin that are gone, over (layer, head, depth) or (depth), beside those of the whole model."""
    import xarray as xr

    from bindscope.interventions.answers import accuracy_by, margin_by

    found = question.answer(opened(run))
    dataset = xr.merge([accuracy_by(found), margin_by(found)], combine_attrs="drop").round(DECIMALS)
    dataset.attrs = {"sites": " ".join(question.sites), "kind": question.kind}
    interval = "95 %, Wilson; of logits, over programs"
    return answer_body(
        question, dataset, "Every head in turn" if not question.sites else "Heads together",
        run=run, step=question.step, n=question.n, seed=question.seed, interval=interval, note=found.attrs["programs"],
    )  # fmt: skip


def read_ablations(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Accuracy with each head mean-ablated, everywhere and at each position of the chain, over (ablated_at, layer, head,
    depth), what is ``lost`` by it, and the mean over heads, ``drop`` (depth)."""
    from bindscope.measures.binding.hops import accuracy_drops

    command = in_shell(run, "figure", "ablations")
    kept = kept_result(run, "hops", command)
    ends = ("", "_low", "_high")
    named = [*(f"accuracy{end}" for end in ends), *(f"drop{end}" for end in ends), "base_accuracy"]
    dataset = kept[named].assign(lost=accuracy_drops(kept), n=kept.n.isel(layer=0, head=0)).round(DECIMALS)
    dataset = dataset.drop_vars("position", errors="ignore")
    dataset.attrs = {"step": int(kept.attrs["step"])}
    n, seed = int(kept.attrs["n_programs"]), int(kept.attrs.get("asked_seed", 0))
    return to_body(
        dataset,
        Provenance(
            run=run.name, step=int(kept.attrs["step"]), n=n, seed=seed,
            interval="95 % Wilson interval over programs; of means over heads, a bootstrap",
            note=f"left out: {kept.attrs['excluded']}, where shortcut and mechanism agree",
        ),
        title="Every head, by depth and hop",
        command=command,
        python=in_python(run, 'run.result("hops")'),
    )  # fmt: skip


PAGE = Page(
    "attention",
    resources=(
        Resource(
            "runs/{run}/ablations.json", read_ablations, "Accuracy without each head, by depth and hop", kinds=KINDS
        ),
    ),
    operations=(
        Operation(
            "attention",
            Attention,
            attention,
            "Where each head attends in a program",
            ("step", "program", "ablate", "kind"),
        ),
        Operation(
            "ablations",
            Ablate,
            ablate_drawn,
            "Drawn programs without every head in turn, or without some together, by depth",
            ("step", "sites", "kind", "n", "seed", "first_root_line"),
        ),
        Operation("ablate", Ablate, ablate, "The answer without some parts", ("step", "program", "sites", "kind")),
    ),
)
