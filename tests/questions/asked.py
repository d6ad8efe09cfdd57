"""Questions of every kind, drawn at random, and a way to see what a door asks without having it answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from bindscope.questions.algorithm import Algorithm
from bindscope.questions.coefficient import Coefficient
from bindscope.questions.diagnostics import Diagnostics
from bindscope.questions.edges import Edges
from bindscope.questions.grids import Grids
from bindscope.questions.hypotheses import Hypotheses
from bindscope.questions.lookups import Identifiers, Lookbacks
from bindscope.questions.mixture import Mixture
from bindscope.questions.moves import Moves
from bindscope.questions.patch import Patch
from bindscope.questions.patch import Path as PathPatch
from bindscope.questions.program import Ablate, Attention, Lens, Predict
from bindscope.questions.question import Question
from bindscope.questions.reassignment import Reassignment
from bindscope.questions.samples import Sample
from bindscope.questions.subspace import Project, Swap
from bindscope.questions.sums import Sum
from bindscope.questions.table import QUESTIONS
from bindscope.questions.templates import Kernel, TemplateCheck, TemplateSamples
from bindscope.questions.transplants import Retrain, Transplant
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run

ON_PROGRAMS, ON_SUMS = "binding-laptop", "assign-add"
PROGRAM, OTHER = "c=1;d=2;a=5;b=a;#b:", "c=1;d=2;a=8;b=a;#b:"
SUM = "c=1 _ b=17 | b+19"

SAVED = sorted(set(Run.open(find_run(ON_PROGRAMS)).steps) & set(Run.open(find_run(ON_SUMS)).steps))
saved = st.sampled_from(SAVED)
step = st.one_of(st.sampled_from(["first", "last"]), saved)
several = st.lists(saved, min_size=2, max_size=4, unique=True).map(lambda steps: tuple(sorted(steps)))
steps = st.one_of(step, st.just("all"), several)
seed = st.integers(0, 2**31 - 1)
site = st.sampled_from(["L2.H1", "L3.mlp_out", "L2.H1@rhs 2", "L1.resid_pre@2,6", "embed"])
sites = st.lists(site, max_size=3, unique=True).map(tuple)
template = st.text("ABCαxy+'(), $`\"\\", min_size=1, max_size=6).filter(lambda text: text.strip() and "'" not in text)
templates = st.lists(template, min_size=1, max_size=4).map(tuple)
number = st.one_of(st.integers(-1000, 1000).map(float), st.floats(-1e6, 1e6).map(lambda value: float(f"{value:.6g}")))
labels = st.one_of(st.none(), st.lists(number, min_size=1, max_size=4).map(tuple))
positive = st.floats(0, 1e6).map(lambda value: float(f"{value:.6g}"))
direction = st.sampled_from(["noising", "denoising"])
drawn = {"n": st.integers(1, 500), "depth": st.one_of(st.none(), st.integers(1, 4)), "seed": seed}
lines = {"first_root_line": st.integers(1, 9)}
OWN_HYPOTHESIS = f"{Path(__file__).parents[2]}/examples/hypotheses.py:last_line"
OWN_METRIC = f"{Path(__file__).parents[2]}/examples/metrics.py:margin"
metric = {"metric": st.sampled_from([None, "success", "kept", "kl", OWN_METRIC])}
pair = {"program": st.just(PROGRAM), "counterfactual": st.just(OTHER), "direction": direction}

FIELDS: list[tuple[type[Question], dict[str, Any]]] = [
    (Edges, {"run": st.just(ON_PROGRAMS), "step": step, **drawn, **lines, "n": st.integers(4, 200), "points": st.integers(1, 64),
             "checked": st.integers(2, 200), "random": st.integers(1, 32)}),
    (Moves, {"run": st.just(ON_PROGRAMS), **pair, "step": step}),
    (Moves, {"run": st.just(ON_PROGRAMS), "step": step, **drawn, **lines, "n": st.integers(2, 64)}),
    (Predict, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "steps": steps}),
    (Predict, {"run": st.just(ON_SUMS), "program": st.just(SUM), "steps": steps}),
    (Lens, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "step": saved}),
    (Attention, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "step": step, "ablate": sites,
                 "kind": st.sampled_from(["zero", "mean"])}),
    (Ablate, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "step": step, "sites": sites,
              "kind": st.sampled_from(["zero", "mean"])}),
    (Ablate, {"run": st.just(ON_PROGRAMS), "step": step, "cut": st.just(("colon>query",)), "layer": st.integers(0, 4),
              **drawn, **lines}),
    (Patch, {"run": st.just(ON_PROGRAMS), **pair, **metric, "steps": steps, "sites": sites.filter(bool),
             "source_step": st.one_of(st.none(), step), "neurons": st.lists(st.integers(0, 9), max_size=2).map(tuple)}),
    (Patch, {"run": st.just(ON_PROGRAMS), **pair, "steps": step, "approximate": st.booleans(),
             "grid": st.sampled_from(["chain", "residual", "heads", "mlps"])}),
    (Patch, {"run": st.just(ON_PROGRAMS), "grid": st.just("heads"), **drawn, **lines, **metric}),
    (Grids, {"run": st.just(ON_PROGRAMS), **drawn, **lines, "direction": direction, "steps": steps,
             "grid": st.sampled_from(["chain", "residual", "heads", "mlps"]),
             "metric": st.sampled_from(["logit_difference", "new_logit", "kl", "kept"])}),
    (Patch, {"run": st.just(ON_PROGRAMS), "grid": st.sampled_from(["chain", "residual"]), **drawn, **lines, **metric,
             "tolerance": st.sampled_from([0.0, 0.001, 0.25])}),
    (PathPatch, {"run": st.just(ON_PROGRAMS), **pair, "sender": site, "receivers": sites.filter(bool), "step": step}),
    (PathPatch, {"run": st.just(ON_PROGRAMS), "sender": site, "receivers": sites.filter(bool), **drawn, **lines,
                 **metric}),
    (Algorithm, {"run": st.just(ON_PROGRAMS), "step": step, "n": st.integers(8, 100), "seed": seed}),
    (Mixture, {"run": st.just(ON_PROGRAMS), "step": step, "layer": st.one_of(st.none(), st.integers(0, 5)),
               "depth": st.integers(1, 4), "n": st.integers(40, 500), "seed": seed}),
    (Identifiers, {"run": st.just(ON_PROGRAMS), "step": step, "n": st.integers(8, 100), "seed": seed}),
    (Lookbacks, {"run": st.just(ON_PROGRAMS), "step": step, "n": st.integers(8, 100), "seed": seed}),
    (Reassignment, {"run": st.just(ON_PROGRAMS), "step": step, "n": st.integers(8, 100), "seed": seed}),
    (Hypotheses, {"run": st.just(ON_PROGRAMS), "first": st.sampled_from(["value-forward", OWN_HYPOTHESIS]),
                  "second": st.sampled_from(["pointer-backward", "early-line"]), "step": step, "n": st.integers(8, 100),
                  "seed": seed}),
    (Swap, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "counterfactual": st.just(OTHER), "step": step,
            "quality": st.sampled_from(["values", "names"]), "control": st.sampled_from(["found", "random", "shuffled", "rest"]),
            "seed": seed, "draws": st.integers(1, 20)}),
    (Project, {"run": st.just(ON_PROGRAMS), "program": st.just(PROGRAM), "quality": st.sampled_from(["values", "names"]),
               "step": step, "axes": st.sampled_from(["frozen", "refitted", "random"])}),
    (Sample, {"run": st.just(ON_PROGRAMS), "depth": st.one_of(st.none(), st.integers(1, 13)), "seed": seed,
              "n_lines": st.one_of(st.none(), st.integers(2, 30)), "distractors": st.one_of(st.none(), st.integers(0, 9))}),
    (Sum, {"run": st.just(ON_SUMS), "sequence": st.just(SUM), "steps": steps}),
    (Transplant, {"run": st.just(ON_SUMS), "receiver": step, "donor": step, "seed": seed, "n": st.integers(1, 1000),
                  "controls": st.integers(0, 100),
                  "parts": st.lists(st.sampled_from(["QK1", "QK1 + MLP", "variable b"]), min_size=1).map(tuple)}),
    (Retrain, {"run": st.just(ON_PROGRAMS), "receiver": step, "donor": step, "seed": seed, "n": st.integers(50, 1000),
               "parts": st.lists(st.sampled_from(["L0.QK", "L1-2.OV + MLP", "letters"]), min_size=1).map(tuple),
               "seeds": st.integers(1, 20), "most_steps": st.integers(100, 1000), "every": st.integers(1, 100)}),
    (Kernel, {"templates": templates, "labels": labels, "beta": positive, "gamma": positive, "cls": st.booleans(),
              "activation": st.sampled_from(["cos", "relu"]), "points": st.integers(16, 4096), "seed": seed}),
    (TemplateSamples, {"templates": templates, "n": st.integers(1, 50), "seed": seed}),
    (Coefficient, {"run": st.sampled_from([ON_PROGRAMS, ON_SUMS]), "steps": steps, "part": st.sampled_from(["all", "L1.H0"]),
                   "data": st.sampled_from(["all", "depth=2"]), "n": st.integers(64, 2048), "chains": st.integers(2, 8),
                   "draws": st.integers(24, 400), "burn_in": st.integers(0, 20), "step_size": positive.map(lambda x: x + 1e-6),
                   "elasticity": positive, "seed": seed}),
    (Diagnostics, {"run": st.sampled_from([ON_PROGRAMS, ON_SUMS]), "steps": steps, "n": st.integers(16, 256), "seed": seed}),
    (TemplateCheck, {"templates": templates, "labels": labels}),
]  # fmt: skip


def questions() -> st.SearchStrategy[Question]:
    """Any question."""
    return st.one_of(*(st.builds(question, **fields) for question, fields in FIELDS))


class Asked(Exception):
    """What a door asked."""

    def __init__(self, question: Question) -> None:
        super().__init__(str(question))
        self.question = question


@contextmanager
def unanswered() -> Iterator[None]:
    """Inside, asking for an answer raises ``Asked`` with the question."""

    def tell(self: Question, *_: object, **__: object) -> None:
        raise Asked(self)

    with pytest.MonkeyPatch.context() as patch:
        for question in QUESTIONS:
            for name in ("answer", "report", "draw", "read", "distributions", "empty"):
                if callable(getattr(question, name, None)):
                    patch.setattr(question, name, tell)
        yield
