"""Parts of a checkpoint after the plateau in one on it, for the panels of the page Development."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Resource
from bindscope.web.programs import KINDS

if TYPE_CHECKING:
    import xarray as xr

DECIMALS = 3


def read_transplants(lab: Lab, run: LabRun) -> dict[str, Any]:
    """What each part carries of the way over (donor, direction, part), beside changes at random, and what that shows."""
    from bindscope.studies.binding.transplants.tell import tell_transplants

    kept = kept_result(run, "transplants", in_shell(run, "figure", "transplants"), waits=False)
    names = [f"total_fraction{end}" for end in ("", "_low", "_high")] + ["random_fraction"]
    names += [f"{of}accuracy" for of in ("", "receiver_", "donor_")]
    return _body(run, "transplants", "Parts of a model after the plateau", kept[names], tell_transplants(kept))


def read_retraining(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Steps until each cell leaves the plateau, over (part, condition, seed), its course, and what that shows."""
    from bindscope.studies.binding.transplants.tell import tell_retraining

    kept = kept_result(run, "retraining", in_shell(run, "figure", "retraining"), waits=False)
    return _body(run, "retraining", "Given early and trained on", kept, tell_retraining(kept))


def _body(run: LabRun, name: str, title: str, kept: xr.Dataset, finding: str) -> dict[str, Any]:
    about = {key: kept.attrs[key] for key in ("receiver", "donor", "most_steps") if key in kept.attrs}
    n, seed = int(kept.attrs["n"]), int(kept.attrs.get("asked_seed", 0))
    return to_body(
        kept.round(DECIMALS).assign_attrs(finding=finding, **about),
        Provenance(run=run.name, n=n, seed=seed, interval=str(kept.attrs["interval"]), note="programs"),
        title=title,
        command=in_shell(run, "figure", name),
        python=in_python(run, f'run.result("{name}")'),
    )


RESOURCES = (
    Resource("runs/{run}/transplants.json", read_transplants, "Parts of a model after the plateau", kinds=KINDS),
    Resource("runs/{run}/retraining.json", read_retraining, "Parts given early and trained on", kinds=KINDS),
)
