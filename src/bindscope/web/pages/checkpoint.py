"""Behaviour at every checkpoint, read off the predictions that are saved with a run: no model is run to show it.

A run that has none yet (one just trained, or in training) is measured when its page is first asked for, and later only at
the checkpoints that are new. Where that would take minutes it is refused with the command that does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Page, Resource
from bindscope.web.programs import KINDS

if TYPE_CHECKING:
    import xarray as xr

WILSON = "95 % Wilson interval over programs"
BEHAVIOUR, CONFUSION = "bindscope.studies.binding.behaviour.measure", "bindscope.measures.binding.confusion"


def read_predictions(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Every prediction over (step, program), with the programs and all that describes them."""
    from bindscope.studies.binding.behaviour.measure import CHECKPOINT

    dataset = predictions_of(run).drop_vars(CHECKPOINT)
    dataset = dataset.assign({name: dataset[name].round(3) for name in ("probability", "line_1_probability")})
    python = in_python(run, 'run.result("predictions")')
    body = _body(run, dataset, None, "Predictions at every checkpoint", {}, python)
    return body | {"command": in_shell(run, "behaviour", step="all")}


def read_confusion(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Which digit was given for which."""
    table = _confusion(run, step).drop_dims(["root_line", "source"])
    python = _in_python(run, step, f"from {CONFUSION} import confusion")
    return _body(run, table, step, "Which digit was given for which", {"confusion": True}, python)


def read_sources(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Which line's constant was given, by the line that holds the answer."""
    table = _confusion(run, step).drop_dims(["answer", "prediction"])
    table.attrs["title"] = "sources of predictions"
    python = _in_python(run, step, f"from {CONFUSION} import confusion")
    return _body(run, table, step, "Where predictions come from", {"by": "root-line"}, python)


def read_attributes(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Accuracy and agreement with line 1 at each value of each attribute."""
    from bindscope.measures.binding.attributes import ATTRIBUTES
    from bindscope.measures.binding.behaviour import behaviour_by_each
    from bindscope.studies.binding.behaviour.measure import predictions_at

    table = behaviour_by_each(predictions_at(predictions_of(run), step))
    table.attrs |= {f"meaning_{name}": ATTRIBUTES[name] for name in dict.fromkeys(table.attribute.values.tolist())}
    python = _in_python(run, step, "from bindscope.measures.binding.behaviour import behaviour_by_each")
    return _body(run, table, step, "Accuracy by attribute", {"by": "depth"}, python)


def read_importance(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """What being right, and giving line 1's constant, depends on; made for this step where it is not saved.

    That takes a second a step: of runs without a saved one a static copy has the last step alone.
    """
    from bindscope.measures.binding.attributes import ATTRIBUTES
    from bindscope.studies.binding.behaviour.measure import CHECKPOINT, at_step, explain_step

    kept = run.library.find("importance")
    if kept is not None and kept.dataset is not None:
        table = at_step(kept.dataset.drop_vars(CHECKPOINT), step)
    elif not lab.live and step != run.steps[-1]:
        raise NotMeasured(f"{run.name}: this copy of the site has it for step {run.steps[-1]:,} alone.")
    else:
        table = explain_step(run.run, predictions_of(run), step)
    table.attrs |= {f"meaning_{name}": ATTRIBUTES[name] for name in table.attribute.values.tolist()}
    call = f'table = explain_step(run.run, run.result("predictions"), {step})'
    python = in_python(run, call, f"from {BEHAVIOUR} import explain_step")
    body = _body(run, table, step, "What it depends on", {"importance": "right"}, python)
    body["provenance"]["interval"] = "95 % bootstrap over held-out programs, five folds"
    return body


def predictions_of(run: LabRun) -> xr.Dataset:
    """The saved predictions, or new ones where making them takes seconds."""
    return kept_result(run, "predictions", in_shell(run, "behaviour", step="all"))


def _in_python(run: LabRun, step: int, importing: str) -> str:
    """A table of what was predicted at a step, made by the function that is imported."""
    call = f'table = {importing.split()[-1]}(predictions_at(run.result("predictions"), {step}))'
    return in_python(run, call, importing, f"from {BEHAVIOUR} import predictions_at")


def _confusion(run: LabRun, step: int) -> xr.Dataset:
    from bindscope.measures.binding.confusion import confusion
    from bindscope.studies.binding.behaviour.measure import predictions_at

    return confusion(predictions_at(predictions_of(run), step))


def _body(
    run: LabRun, dataset: xr.Dataset, step: int | None, title: str, options: Mapping[str, Any], python: str
) -> dict[str, Any]:
    settings = predictions_of(run).attrs
    n, seed = int(settings["n"]), int(settings["seed"])
    kept = {
        name: value for name, value in dataset.attrs.items() if not name.startswith(("result", "asked", "revision"))
    }
    dataset = dataset.assign_attrs()
    dataset.attrs = kept
    return to_body(
        dataset,
        Provenance(run=run.name, step=step, n=n, seed=seed, interval="" if step is None else WILSON),
        title=title,
        command=in_shell(run, "behaviour", **options, step=step, n=n, seed=seed),
        python=python,
    )


def _table(name: str, make: Any, summary: str) -> Resource:
    return Resource(f"runs/{{run}}/steps/{{step}}/{name}.json", make, summary, kinds=KINDS)


PAGE = Page(
    "checkpoint",
    resources=(
        Resource("runs/{run}/predictions.json", read_predictions, "Predictions at every checkpoint", kinds=KINDS),
        _table("confusion", read_confusion, "Which digit was given for which"),
        _table("sources", read_sources, "Where predictions come from"),
        _table("attributes", read_attributes, "Accuracy by attribute"),
        _table("importance", read_importance, "What mistakes depend on"),
    ),
)  # fmt: skip
