"""What changes first when a run learns: every measure over training on one axis, and when each turns."""

from __future__ import annotations

from typing import Any

from bindscope.errors import BindscopeError
from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.lookups import RESOURCES as LOOKUPS
from bindscope.web.page import Page, Resource


def read_development(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The curves whose results are saved, with the step at which each is half way from the plateau to its end."""
    from bindscope.studies.framework.development import develop

    try:
        dataset = develop(run.library)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    missing = str(dataset.attrs["missing"])
    return to_body(
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


PAGE = Page(
    "development",
    resources=(
        Resource("runs/{run}/development.json", read_development, "Every measure over training"),
        *LOOKUPS,
    ),
)
