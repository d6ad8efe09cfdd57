"""Abstract symbols: how much training each model needs, and what a kernel says of templates that a reader types.

Nothing here is about a run. Curves come from datasets of experiments; kernels and samples are made of templates alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bindscope.errors import suggest_nearest
from bindscope.questions.render import write_command
from bindscope.questions.templates import Kernel, TemplateSamples
from bindscope.web.asking import answer_body
from bindscope.web.body import Provenance, to_body
from bindscope.web.claims import claim_figure, claims_body, drawable_claims
from bindscope.web.lab import Lab, Missing
from bindscope.web.page import SVG, Operation, Page, Parameters, Resource
from bindscope.web.symbols import (
    curve_experiments,
    dataset_files,
    find_curves,
    read_dataset,
    study_files,
    study_subject,
)

if TYPE_CHECKING:
    from bindscope.studies.framework.experiments import Experiment

MOST_TOKENS = 10
MOST_GELU = 4  # templates whose kernel with gelu, which is integrated number by number, is ready within a second
MOST_STORED = 32  # templates of a named task whose kernel is stored
SEEDS = "95 % over seeds, or over sequences where there is one seed"
JACKKNIFE = "95 % by leaving out each random shift"
Asked = TypeVar("Asked", Kernel, TemplateSamples)


def list_experiments(lab: Lab) -> dict[str, Any]:
    """Over (experiment): its question, what differs between its runs, and the command that trains them."""
    import xarray as xr

    from bindscope.studies.framework.experiments import find_experiment_dataset

    known = curve_experiments()
    kinds = {name: _kind(experiment) for name, experiment in known.items()}
    dataset = xr.Dataset(
        {
            "question": ("experiment", [experiment.question for experiment in known.values()]),
            "kind": ("experiment", [kinds[name] for name in known]),
            "trained": ("experiment", [find_experiment_dataset(name, lab.kept_in) is not None for name in known]),
            "how": ("experiment", [write_command("experiment", name) for name in known]),
        },
        {"experiment": list(known)},
    )
    return to_body(dataset, Provenance(), title="Experiments on symbols", command=write_command("experiment"))


def list_tasks(lab: Lab) -> dict[str, Any]:
    """Over (task): the templates of each named task, a space between, its labels, and what it asks."""
    import xarray as xr

    from bindscope.tasks.templates import NAMED_TASKS

    columns = {
        "templates": [" ".join(found.templates) for found in NAMED_TASKS.values()],
        "labels": [",".join(_show_label(label) for label in found.labels) for found in NAMED_TASKS.values()],
        "about": [found.about for found in NAMED_TASKS.values()],
        "stored": [len(found.templates) <= MOST_STORED for found in NAMED_TASKS.values()],
    }
    dataset = xr.Dataset({name: ("task", values) for name, values in columns.items()}, {"task": list(NAMED_TASKS)})
    python = "from bindscope.tasks.templates import NAMED_TASKS\n\nNAMED_TASKS"
    return to_body(dataset, Provenance(), title="Template tasks", python=python)


def read_curves(lab: Lab, experiment: str) -> dict[str, Any]:
    """Over (variant): loss or error on unseen symbols, mean and range over seeds; over (point) the paper's."""
    from bindscope.web.curves import summarise_variants

    found = find_curves(experiment)
    dataset = read_dataset(lab, experiment)
    python = (
        "from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset\n\n"
        f'load_experiment_dataset(find_experiment_dataset("{experiment}"))'
    )
    return to_body(
        summarise_variants(found, dataset),
        Provenance(
            n=int(dataset.sizes["seed"]), interval=SEEDS, note="n seeds at most; symbols never seen in training"
        ),
        title=found.question,
        command=write_command("experiment", experiment),
        python=python,
    )


def read_claims(lab: Lab) -> dict[str, Any]:
    """The study's claims, judged on the experiments that are here."""
    return claims_body(study_subject(lab))


def draw_claim(lab: Lab, claim: str) -> str:
    """The figure behind one of them."""
    return claim_figure(study_subject(lab), claim)


def read_kernel(lab: Lab, task: str) -> dict[str, Any]:
    """N of a named task at the usual settings, with errors; see ``ask_kernel``."""
    if task not in _stored_tasks():
        raise Missing(f"there is no kernel of '{task[:100]}' here.{suggest_nearest(task[:100], _stored_tasks())}")
    return _task_kernel(task)


def ask_kernel(lab: Lab, question: Kernel) -> dict[str, Any]:
    """N over (template, other) with errors, eigenvalues with intervals, overlaps, and in ``attrs`` the verdict and why."""
    return kernel_body(question)


def ask_samples(lab: Lab, question: TemplateSamples) -> dict[str, Any]:
    """Over (sample): sequences of each template with the substitution; over (problem) what is wrong with them as a task."""
    about: dict[str, Any] = {"n": question.n, "seed": question.seed, "note": "n sequences of each template"}
    return answer_body(_as_written(question), question.answer(), "Sequences of these templates", **about)


def kernel_body(question: Kernel, most_tokens: int = MOST_TOKENS) -> dict[str, Any]:
    """What ``bindscope kernel`` says, as a body."""
    from bindscope.errors import BindscopeError
    from bindscope.tasks.templates import Template

    question = _as_written(question)
    for text in question.templates:
        if len(Template.parse(text)) > most_tokens:
            raise BindscopeError(f"Template {text}: at most {most_tokens} tokens can be asked here.")
    if question.activation == "gelu" and len(question.templates) > MOST_GELU:
        raise BindscopeError(
            f"gelu: more than {MOST_GELU} templates take a while; on your own machine: {question.command()}"
        )
    report = question.report()
    dataset = report.to_dataset()
    overlaps = [(overlap.first, overlap.second, " ".join(overlap.sequence)) for overlap in report.overlaps]
    for index, name in enumerate(("first", "second", "sequence")):
        dataset[f"overlap_{name}"] = ("overlap", [overlap[index] for overlap in overlaps])
    sampling = report.settings.sampling
    n = sampling.n_randomisations * sampling.n_outer * sampling.n_inner
    about: dict[str, Any] = {
        "n": n,
        "seed": question.seed,
        "interval": JACKKNIFE,
        "note": "n points of a shifted lattice",
    }
    return answer_body(question, dataset, "N and what it says", **about)


def _as_written(question: Asked) -> Asked:
    """The same question with its templates as they are written down."""
    from bindscope.tasks.templates import Template

    return replace(question, templates=tuple(str(Template.parse(text)) for text in question.templates))


@cache
def _task_kernel(task: str) -> dict[str, Any]:
    from bindscope.tasks.templates import NAMED_TASKS

    found = NAMED_TASKS[task]
    labels = None if any(isinstance(label, str) for label in found.labels) else list(found.labels)
    question = Kernel(templates=found.templates, labels=labels)  # type: ignore[arg-type]
    return kernel_body(question, most_tokens=20) | {"command": write_command("kernel", task)}


@cache
def _stored_tasks() -> tuple[str, ...]:
    from bindscope.tasks.templates import NAMED_TASKS

    return tuple(name for name, found in NAMED_TASKS.items() if len(found.templates) <= MOST_STORED)


def _kind(experiment: Experiment) -> Literal["n", "width", "setting", "task"]:
    """What differs between its curves besides the model."""
    labels = experiment.variants[0].labels
    if "width" in labels and "layers" not in labels:
        return "width"
    return "setting" if "setting" in labels else "task" if "task" in labels else "n"


def _show_label(label: float | str) -> str:
    return label if isinstance(label, str) else f"{label:.6g}"


def _each_experiment(lab: Lab) -> Iterator[Parameters]:
    yield from ({"experiment": name} for name in curve_experiments())


def _each_task(lab: Lab) -> Iterator[Parameters]:
    yield from ({"task": name} for name in _stored_tasks())


def _each_claim(lab: Lab) -> Iterator[Parameters]:
    yield from drawable_claims(study_subject(lab))


def _curve_files(lab: Lab, experiment: str) -> list[Path]:
    return dataset_files(lab, [experiment])


def _all_curve_files(lab: Lab) -> list[Path]:
    return dataset_files(lab, curve_experiments())


def _claim_files(lab: Lab, claim: str = "") -> list[Path]:
    return study_files(lab)


def _no_files(lab: Lab, task: str = "") -> list[Path]:
    return []


PAGE = Page(
    "symbols",
    resources=(
        Resource("symbols/experiments.json", list_experiments, "Experiments on symbols", reads=_all_curve_files),
        Resource("symbols/tasks.json", list_tasks, "Named template tasks", reads=_no_files),
        Resource("symbols/curves/{experiment}.json", read_curves, "What each model needs", every=_each_experiment,
                 reads=_curve_files),
        Resource("symbols/claims.json", read_claims, "The study's claims", reads=_claim_files),
        Resource("symbols/claims/{claim}.svg", draw_claim, "The figure behind a claim of the study", media=SVG,
                 every=_each_claim, reads=_claim_files),
        Resource("symbols/kernel/{task}.json", read_kernel, "The kernel of a named task", every=_each_task, reads=_no_files),
    ),
    operations=(
        Operation(
            "kernel", Kernel, ask_kernel, "What the kernel says of templates",
            ("templates", "labels", "beta", "gamma", "activation", "cls", "points", "seed"),
        ),
        Operation(
            "samples", TemplateSamples, ask_samples, "Sequences of templates, and what is wrong with them",
            ("templates", "n", "seed"),
        ),
    ),
)  # fmt: skip
