"""Abstract symbols: how much training each model needs, and what a kernel says of templates that a reader types.

Nothing here is about a run. Curves come from datasets of experiments; kernels and samples are made of templates alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from bindscope.errors import suggest_nearest
from bindscope.web.body import Provenance, to_body
from bindscope.web.claims import claim_figure, claims_body, drawable_claims
from bindscope.web.lab import Lab, Missing
from bindscope.web.page import SVG, LabQuestion, Operation, Page, Parameters, Resource
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

MOST_TEMPLATES, MOST_TOKENS, MOST_TEXT = 8, 10, 120
MOST_GELU = 4  # templates whose kernel with gelu, which is integrated number by number, is ready within a second
MOST_STORED = 32  # templates of a named task whose kernel is stored
SEEDS = "95 % over seeds, or over strings where there is one seed"
JACKKNIFE = "95 % by leaving out each random shift"

TemplateText = Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
Templates = Annotated[list[TemplateText], Field(min_length=1, max_length=MOST_TEMPLATES)]
Label = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class KernelQuestion(LabQuestion):
    """Can the transformer's kernel learn these templates for unseen symbols?"""

    templates: Templates
    labels: Annotated[list[Label], Field(max_length=MOST_TEMPLATES)] | None = None
    beta: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 3.0
    gamma: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] = 1.0
    activation: Literal["cos", "relu", "gelu", "tanh", "identity"] = "cos"
    cls: bool = True
    points: Annotated[int, Field(ge=16, le=1024)] = 512
    seed: Seed = 0


class SamplesQuestion(LabQuestion):
    """Strings of these templates."""

    templates: Templates
    n: Annotated[int, Field(ge=1, le=50)] = 5  # of each
    seed: Seed = 0


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
            "how": ("experiment", [f"bindscope experiment {name}" for name in known]),
        },
        {"experiment": list(known)},
    )
    return to_body(dataset, Provenance(), title="Experiments on symbols", command="bindscope experiment")


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
        command=f"bindscope experiment {experiment}",
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


def ask_kernel(lab: Lab, question: KernelQuestion) -> dict[str, Any]:
    """N over (template, other) with errors, eigenvalues with intervals, overlaps, and in ``attrs`` the verdict and why."""
    return kernel_body(question)


def ask_samples(lab: Lab, question: SamplesQuestion) -> dict[str, Any]:
    """Over (sample): strings of each template with the substitution; over (problem) what is wrong with them as a task."""
    import numpy as np
    import xarray as xr

    from bindscope.tasks.templates.checks import find_problems, parse, sample_strings

    parsed = [parse(text) for text in question.templates]
    rng = np.random.default_rng(question.seed)
    samples = [(str(template), sample) for template in parsed for sample in sample_strings(template, question.n, rng)]
    told = [", ".join(f"{name} = {symbol}" for name, symbol in sample.substitution.items()) for _, sample in samples]
    dataset = xr.Dataset(
        {
            "template": ("sample", [template for template, _ in samples]),
            "string": ("sample", [" ".join(sample.string) for _, sample in samples]),
            "substitution": ("sample", told),
            "problem_text": ("problem", np.array(find_problems(parsed), dtype=object)),
        }
    )
    texts = [str(template) for template in parsed]
    return to_body(
        dataset,
        Provenance(n=question.n, seed=question.seed, note="n strings of each template"),
        title="Strings of these templates",
        command=f"bindscope templates sample {_quoted(texts)} --n {question.n} --seed {question.seed}",
        python=(
            "import numpy as np\nfrom bindscope.tasks.templates.checks import sample_strings\n\n"
            f"rng = np.random.default_rng({question.seed})\n"
            f"[sample_strings(template, {question.n}, rng) for template in {texts}]"
        ),
    )


def kernel_body(question: KernelQuestion, most_tokens: int = MOST_TOKENS) -> dict[str, Any]:
    """What ``bindscope kernel`` says, as a body."""
    from bindscope.errors import BindscopeError
    from bindscope.tasks.templates.checks import parse
    from bindscope.theory.kernel import KernelSettings
    from bindscope.theory.kernel_learnable import learnable

    parsed = [parse(text) for text in question.templates]
    for template in parsed:
        if len(template) > most_tokens:
            raise BindscopeError(f"Template {template}: at most {most_tokens} tokens can be asked here.")
    if question.activation == "gelu" and len(parsed) > MOST_GELU:
        command = _kernel_command([str(template) for template in parsed], question)
        raise BindscopeError(f"gelu: more than {MOST_GELU} templates take a while; on your own machine: {command}")
    chosen = {name: getattr(question, name) for name in ("beta", "gamma", "activation", "cls", "points", "seed")}
    report = learnable(parsed, question.labels, KernelSettings(**chosen))
    dataset = report.to_dataset()
    overlaps = [(overlap.first, overlap.second, " ".join(overlap.string)) for overlap in report.overlaps]
    for place, name in enumerate(("first", "second", "string")):
        dataset[f"overlap_{name}"] = ("overlap", [overlap[place] for overlap in overlaps])
    sampling, texts = report.settings.sampling, [str(template) for template in parsed]
    n = sampling.n_randomisations * sampling.n_outer * sampling.n_inner
    return to_body(
        dataset,
        Provenance(n=n, seed=question.seed, interval=JACKKNIFE, note="n points of a shifted lattice"),
        title="N and what it says",
        command=_kernel_command(texts, question),
        python=_kernel_python(texts, question),
    )


@cache
def _task_kernel(task: str) -> dict[str, Any]:
    from bindscope.tasks.templates import NAMED_TASKS

    found = NAMED_TASKS[task]
    labels = None if any(isinstance(label, str) for label in found.labels) else list(found.labels)
    question = KernelQuestion.model_construct(templates=list(found.templates), labels=labels)
    return kernel_body(question, most_tokens=20) | {"command": f"bindscope kernel {task}"}


@cache
def _stored_tasks() -> tuple[str, ...]:
    from bindscope.tasks.templates import NAMED_TASKS

    return tuple(name for name, found in NAMED_TASKS.items() if len(found.templates) <= MOST_STORED)


def _kernel_command(texts: list[str], question: KernelQuestion) -> str:
    words = [f"bindscope kernel {_quoted(texts)}"]
    if question.labels is not None:
        words.append(f"--labels={','.join(map(_show_label, question.labels))}")
    words += [f"--{name} {getattr(question, name):g}" for name, usual in (("beta", 3), ("gamma", 1), ("points", 512), ("seed", 0)) if getattr(question, name) != usual]  # fmt: skip
    words += [f"--activation {question.activation}"] if question.activation != "cos" else []
    return " ".join([*words, *([] if question.cls else ["--no-cls"])])


def _kernel_python(texts: list[str], question: KernelQuestion) -> str:
    given = {name: getattr(question, name) for name in ("beta", "gamma", "activation", "cls", "points", "seed")}
    settings = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        "from bindscope.theory.kernel import KernelSettings\nfrom bindscope.theory.kernel_learnable import learnable\n\n"
        f"learnable({texts}, {question.labels}, KernelSettings({settings})).to_dataset()"
    )


def _kind(experiment: Experiment) -> Literal["n", "width", "setting", "task"]:
    """What differs between its curves besides the model."""
    labels = experiment.variants[0].labels
    if "width" in labels and "layers" not in labels:
        return "width"
    return "setting" if "setting" in labels else "task" if "task" in labels else "n"


def _show_label(label: float | str) -> str:
    return label if isinstance(label, str) else f"{label:.6g}"


def _quoted(texts: list[str]) -> str:
    import shlex

    return " ".join(map(shlex.quote, texts))


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
        Operation("kernel", KernelQuestion, ask_kernel, "What the kernel says of templates"),
        Operation("samples", SamplesQuestion, ask_samples, "Strings of templates, and what is wrong with them"),
    ),
)  # fmt: skip
