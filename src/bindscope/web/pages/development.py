"""What changes first when a run learns: every measure over training on one axis, and when each turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.studies.framework.results import CHECKPOINT
from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.lookups import RESOURCES as LOOKUPS
from bindscope.web.page import Page, Resource
from bindscope.web.programs import KINDS
from bindscope.web.transplants import RESOURCES as TRANSPLANTS

if TYPE_CHECKING:
    import xarray as xr


def read_development(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The curves whose results are saved, with the step at which each is half way from the plateau to its end."""
    from bindscope.studies.framework.development import develop

    try:
        dataset = develop(run.library)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    missing = str(dataset.attrs["missing"])
    body = to_body(
        dataset,
        Provenance(
            run=run.name,
            interval="each measure's own; of a turn, where the ends of the measure's interval turn",
            note=f"not measured yet: {missing}" if missing else "",
        ),
        title="What turns when",
        command=in_shell(run, "development", **({"measure": True} if missing else {})),
        python=in_python(run, "run.development()"),
    )
    return body | {"missing": missing.split(", ") if missing else None}


def read_coefficient(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The local learning coefficient at every checkpoint, with the traces of its chains."""
    kept = kept_result(run, "coefficient", in_shell(run, "figure", "coefficient"), waits=False)
    return _over_training(run, kept, "The local learning coefficient", "over chains", "coefficient")


def read_refined(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The coefficient of each layer's weights alone, and on some questions alone, over (step, row)."""
    kept = kept_result(run, "coefficient_refined", in_shell(run, "figure", "coefficient-refined"), waits=False)
    named = [data if part == "all" else part for part, data in zip(kept.part.values, kept.data.values)]
    return _over_training(
        run,
        kept.assign_coords(row=named),
        "The coefficient by layer and by question",
        "over chains",
        "coefficient_refined",
    )


def read_diagnostics(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Plateau diagnostics at every checkpoint, by layer, head and group of parameters."""
    kept = kept_result(run, "diagnostics", in_shell(run, "figure", "diagnostics"))
    return _over_training(run, kept, "Plateau diagnostics", "over minibatches", "diagnostics")


def read_announcements(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Which number leaves its range before the answers do, with its base rate."""
    from bindscope.studies.development.diagnostics.announce import judge_announcements
    from bindscope.studies.framework.results import NotTestable

    measured = "coefficient" in run.library.results and run.library.find("coefficient") is not None
    names = ("trajectory", "diagnostics", *(("coefficient",) if measured else ()))
    datasets = {name: kept_result(run, name, in_shell(run, "figure", "diagnostics")) for name in names}
    try:
        dataset = judge_announcements(datasets)
    except NotTestable as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    return to_body(
        dataset,
        Provenance(run=run.name, note="base rate: of a number that only fluctuates"),
        title="What announces the end of the plateau",
        command=in_shell(run, "announce"),
        python=in_python(run, 'run.result("diagnostics")'),
    )


def _over_training(run: LabRun, kept: xr.Dataset, title: str, interval: str, result: str) -> dict[str, Any]:
    return to_body(
        kept.drop_vars(CHECKPOINT),
        Provenance(
            run=run.name,
            n=int(kept.attrs["n_examples"]),
            seed=int(kept.attrs.get("asked_seed", 0)),
            interval=f"95 % {interval}",
        ),
        title=title,
        command=in_shell(run, "figure", result.replace("_", "-")),
        python=in_python(run, f'run.result("{result}")'),
    )


PAGE = Page(
    "development",
    resources=(
        Resource("runs/{run}/development.json", read_development, "Every measure over training"),
        *LOOKUPS,
        *TRANSPLANTS,
        Resource("runs/{run}/coefficient.json", read_coefficient, "The local learning coefficient and its chains"),
        Resource("runs/{run}/coefficient-refined.json", read_refined, "The coefficient by layer and by question"),
        Resource("runs/{run}/diagnostics.json", read_diagnostics, "Plateau diagnostics"),
        Resource("runs/{run}/announcements.json", read_announcements, "What announces the plateau's end", kinds=KINDS),
    ),
)
