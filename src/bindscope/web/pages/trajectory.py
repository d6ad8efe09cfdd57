"""The life of a run: everything its evaluations recorded, and the same curves of other seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.families import find_family
from bindscope.questions.render import write_command
from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Page, Resource

if TYPE_CHECKING:
    import xarray as xr

WILSON = "95 % Wilson interval over {}"


def read_trajectory(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Every evaluation so far, with intervals; in the attributes what makes a phase."""
    opened, dataset, family = run.run, _dataset_of(run), find_family(run.family)
    dataset.attrs |= {"status": opened.status, "total_steps": opened.manifest.total_steps}
    dataset.attrs |= {f"phase_{name}": words for name, words in family.describe_phases().items()}
    interval = WILSON.format(family.counted)
    return to_body(
        dataset,
        Provenance(run=run.name, n=int(dataset.split_n.values[0]), seed=opened.config.seed, interval=interval),
        title="Training trajectory",
        command=in_shell(run, "trajectory"),
        python=in_python(
            run,
            f'with_intervals(trajectory_dataset(run.run.metrics, family="{run.family}"))',
            "from bindscope.studies.framework.trajectory import trajectory_dataset, with_intervals",
        ),
    )


def read_seeds(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The same settings trained with other seeds: each curve, and the least and most of any seed. None is no error."""
    import xarray as xr

    from bindscope.studies.framework.seeds import find_seed_curves

    try:
        dataset = find_seed_curves(run.run.config, lab.kept_in)
    except BindscopeError as problem:
        dataset, note = xr.Dataset(coords={"seed": [], "step": []}), str(problem)
        command = ""
    else:
        experiment = dataset.attrs["experiment"]
        note = f"{dataset.sizes['seed']} seeds, trained by experiment {experiment}. {dataset.attrs['limits']}"
        command = write_command("experiment", experiment)
    return to_body(
        dataset,
        Provenance(run=run.name, interval="least to most over seeds", note=note),
        title="The same settings with other seeds",
        command=command,
        python=in_python(
            run, "find_seed_curves(run.run.config)", "from bindscope.studies.framework.seeds import find_seed_curves"
        ),
    )


def _dataset_of(run: LabRun) -> xr.Dataset:
    from bindscope.studies.framework.trajectory import trajectory_dataset, with_intervals

    try:
        return with_intervals(trajectory_dataset(run.run.metrics, family=run.family))
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None


PAGE = Page(
    "trajectory",
    resources=(
        Resource("runs/{run}/trajectory.json", read_trajectory, "Accuracy over training"),
        Resource("runs/{run}/seeds.json", read_seeds, "The same settings with other seeds"),
    ),
)
