"""Behaviour at every checkpoint, read off the predictions that are kept with a run: no model is run to show it.

A run that has none yet (one just trained, or in training) is measured when its page is first asked for, and later only at
the checkpoints that are new. Where that would take minutes it is refused with the command that does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Page, Resource

if TYPE_CHECKING:
    import xarray as xr

MOST_WORK = 1e11  # multiplications that are done while a reader waits: ten seconds or so
WILSON = "95 % Wilson interval over programs"
FAMILIES = ("binding",)
PYTHON = """\
from bindscope.cli.verify import open_library
from bindscope.studies.binding.results.behaviour import predictions_at

library, study = open_library("{run}")
dataset = library.fill("predictions").dataset
"""


def read_predictions(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Every prediction over (step, program), with the programs and all that describes them."""
    from bindscope.studies.binding.results.behaviour import CHECKPOINT

    dataset = predictions_of(run).drop_vars(CHECKPOINT)
    dataset = dataset.assign({name: dataset[name].round(3) for name in ("probability", "line_1_probability")})
    body = _body(run, dataset, None, "Predictions at every checkpoint", "--step all", PYTHON)
    body["command"] = f"bindscope behaviour {run.name} --step all"
    return body


def read_confusion(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Which digit was given for which."""
    table = _confusion(run, step).drop_dims(["root_line", "source"])
    python = (
        PYTHON
        + "from bindscope.measures.confusion import confusion\n\ntable = confusion(predictions_at(dataset, {step}))"
    )
    return _body(run, table, step, "Which digit was given for which", "--confusion --step {step}", python)


def read_sources(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Which line's constant was given, by the line that holds the answer."""
    table = _confusion(run, step).drop_dims(["answer", "prediction"])
    table.attrs["title"] = "sources of predictions"
    python = (
        PYTHON
        + "from bindscope.measures.confusion import confusion\n\ntable = confusion(predictions_at(dataset, {step}))"
    )
    return _body(run, table, step, "Where predictions come from", "--by root-line --step {step}", python)


def read_attributes(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Accuracy and agreement with line 1 at each value of each attribute."""
    from bindscope.measures.attributes import ATTRIBUTES
    from bindscope.measures.behaviour import behaviour_by_each
    from bindscope.studies.binding.results.behaviour import predictions_at

    table = behaviour_by_each(predictions_at(predictions_of(run), step))
    table.attrs |= {f"meaning_{name}": ATTRIBUTES[name] for name in dict.fromkeys(table.attribute.values.tolist())}
    python = PYTHON + (
        "from bindscope.measures.behaviour import behaviour_by_each\n\n"
        "table = behaviour_by_each(predictions_at(dataset, {step}))"
    )
    return _body(run, table, step, "Accuracy by attribute", "--by depth --step {step}", python)


def read_importance(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """What being right, and giving line 1's constant, depends on; made for this step where it is not kept.

    That takes a second a step: of runs without a kept one a static copy has the last step alone.
    """
    from bindscope.measures.attributes import ATTRIBUTES
    from bindscope.studies.binding.results.behaviour import CHECKPOINT, at_step, explain_step

    kept = run.library.find("importance")
    if kept is not None and kept.dataset is not None:
        table = at_step(kept.dataset.drop_vars(CHECKPOINT), step)
    elif not lab.live and step != run.steps[-1]:
        raise NotMeasured(f"{run.name}: this copy of the site has it for step {run.steps[-1]:,} alone.")
    else:
        table = explain_step(run.run, predictions_of(run), step)
    table.attrs |= {f"meaning_{name}": ATTRIBUTES[name] for name in table.attribute.values.tolist()}
    python = PYTHON.replace("predictions_at", "explain_step") + "table = explain_step(library.run, dataset, {step})"
    body = _body(run, table, step, "What it depends on", "--importance right --step {step}", python)
    body["provenance"]["interval"] = "95 % bootstrap over held-out programs, five folds"
    return body


def predictions_of(run: LabRun) -> xr.Dataset:
    """The kept predictions, or new ones where making them takes seconds."""
    library = run.library
    found = library.find("predictions")
    if found is None:
        work = estimate_work(run)
        if work > MOST_WORK:
            raise NotMeasured(
                f"{run.name}: its predictions are not measured yet, and that takes a while; "
                f"run 'bindscope behaviour {run.name} --step all' once."
            )
        found = library.fill("predictions")
    if found.dataset is None:
        raise NotMeasured(f"{run.name}: {found.reason}")
    return found.dataset


def estimate_work(run: LabRun) -> float:
    """Multiplications that measuring the missing checkpoints takes, roughly."""
    from bindscope.studies.binding.results.behaviour import CHECKPOINT, N_PROGRAMS

    opened, before = run.run, run.library.find_before("predictions")
    known = set() if before is None else {str(sha256) for sha256 in before[CHECKPOINT].values}
    missing = sum(entry.sha256 not in known for entry in opened.manifest.checkpoints.values())
    model = opened.config.model
    return float(missing) * N_PROGRAMS * model.n_positions * model.n_parameters


def _confusion(run: LabRun, step: int) -> xr.Dataset:
    from bindscope.measures.confusion import confusion
    from bindscope.studies.binding.results.behaviour import predictions_at

    return confusion(predictions_at(predictions_of(run), step))


def _body(run: LabRun, dataset: xr.Dataset, step: int | None, title: str, options: str, python: str) -> dict[str, Any]:
    settings = predictions_of(run).attrs
    n, seed = int(settings["n"]), int(settings["seed"])
    kept = {
        name: value for name, value in dataset.attrs.items() if not name.startswith(("result", "asked", "revision"))
    }
    dataset = dataset.assign_attrs()
    dataset.attrs = kept
    options = options.format(step=step)
    return to_body(
        dataset,
        Provenance(run=run.name, step=step, n=n, seed=seed, interval="" if step is None else WILSON),
        title=title,
        command=f"bindscope behaviour {run.name} {options} --n {n} --seed {seed}",
        python=python.format(run=run.name, step=step).rstrip(),
    )


def _table(name: str, make: Any, summary: str) -> Resource:
    return Resource(f"runs/{{run}}/steps/{{step}}/{name}.json", make, summary, families=FAMILIES)


PAGE = Page(
    "checkpoint",
    resources=(
        Resource("runs/{run}/predictions.json", read_predictions, "Predictions at every checkpoint", families=FAMILIES),
        _table("confusion", read_confusion, "Which digit was given for which"),
        _table("sources", read_sources, "Where predictions come from"),
        _table("attributes", read_attributes, "Accuracy by attribute"),
        _table("importance", read_importance, "What mistakes depend on"),
    ),
)  # fmt: skip
