"""Subspaces: the residual stream's points along saved axes at every checkpoint, and one pair swapped inside a subspace, live.

The points are read from the saved result ``projections``. A swap needs the subspace of its checkpoint: it is found when it
is first asked for, which takes a second or so, and then remembered.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, get_args

from cachetools import LRUCache

from bindscope.questions.subspace import Project, Quality, Swap
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun, Missing
from bindscope.web.page import Operation, Page, Parameters, Resource
from bindscope.web.programs import KINDS

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.model.transformer import Transformer
    from bindscope.studies.binding.representation.one_pair import Kept

N_KEPT = 256  # subspaces remembered over all runs: a few kilobytes each
HIDDEN = ("basis", "direction", "centre", "random_direction", "random_centre")


def read_projections(lab: Lab, run: LabRun, quality: str) -> dict[str, Any]:
    """Coordinates over (kind, step, point, axis), scores and swap success over (kind, step), of one quality."""
    from bindscope.tasks.binding.program import LETTERS

    if quality not in get_args(Quality):
        raise Missing(f"'{quality}': there are projections of {' and '.join(get_args(Quality))}.")
    dataset = _kept(run, "projections").sel(quality=quality, drop=True).drop_vars(HIDDEN)
    dataset.attrs |= {name: dataset[f"search_{name}"].item() for name in ("rank", "layer", "position")}
    labels = {name: ("point", dataset[name].values) for name in ("value", "depth", "position", "pair")}
    names = [LETTERS[letter] for letter in dataset.name.values]
    dropped = [*labels, "name", "search_rank", "search_layer", "search_position"]
    dataset = dataset.drop_vars(dropped).assign_coords({**labels, "name": ("point", names)})
    return to_body(
        dataset,
        _provenance(run, dataset),
        title=f"Where {quality} lie",
        command=in_shell(run, "subspace", of=quality, over_training=True, keep=True),
        python=in_python(run, f'run.result("projections").sel(quality="{quality}")'),
    )


def read_subspaces(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Swap success of the found subspaces and of every control over (quality, condition), last checkpoint."""
    dataset = _kept(run, "subspaces")
    return to_body(
        dataset,
        _provenance(run, dataset),
        title="Swaps inside the subspaces and their controls",
        command=in_shell(run, "verify", claim="VB6"),
        python=in_python(run, 'run.result("subspaces")'),
    )


def project(lab: Lab, run: LabRun, question: Project) -> dict[str, Any]:
    """Coordinates of the program's own positions over (point, axis)."""
    dataset = question.answer(opened(run), lambda name: _kept(run, name))
    return answer_body(question, dataset, "Where this program lies", run=run, step=question.step, n=1)


def swap(lab: Lab, run: LabRun, question: Swap) -> dict[str, Any]:
    """Distributions of base, counterfactual and swapped run over (condition, output), and every metric."""
    from bindscope.studies.binding.representation.measure import N_PAIRS

    dataset = question.answer(opened(run), lambda step, model, quality: FOUND.find(run, step, model, quality))
    seed = question.seed if question.control in ("random", "shuffled") else None
    note = f"subspace fitted on {N_PAIRS // 2} pairs"
    interval = "95 %, Student's, over draws of the control" if len(question.seeds) > 1 else ""
    return answer_body(
        question,
        dataset,
        "What the answer becomes",
        run=run,
        step=question.step,
        n=1,
        seed=seed,
        note=note,
        interval=interval,
    )


class Subspaces:
    """Subspaces that were found, by the checkpoint's hash; those longest unasked are forgotten first."""

    def __init__(self, most: int = N_KEPT) -> None:
        self._kept: LRUCache[tuple[str, str, str], Kept] = LRUCache(most)
        self._lock = threading.Lock()

    def find(self, run: LabRun, step: int, model: Transformer, quality: Quality) -> Kept:
        """The subspace of a checkpoint, found once."""
        from bindscope.studies.binding.representation.one_pair import find_kept_subspace

        key = run.checkpoint_hash(step), repr(run.run.config.task), quality
        with self._lock:
            if key not in self._kept:
                self._kept[key] = find_kept_subspace(run.run, model, quality)
            return self._kept[key]


FOUND = Subspaces()


def _kept(run: LabRun, name: str) -> xr.Dataset:
    """A result that is there, or the command that makes it, which takes minutes."""
    projections = in_shell(run, "subspace", over_training=True, keep=True)
    command = projections if name == "projections" else in_shell(run, "verify", claim="VB6")
    return kept_result(run, name, command, waits=False)


def _provenance(run: LabRun, dataset: xr.Dataset) -> Provenance:
    attrs = dataset.attrs
    return Provenance(
        run=run.name,
        step=attrs.get("step"),
        n=int(attrs["n_test"]),
        seed=int(attrs.get("asked_seed", 0)),
        interval=str(attrs.get("interval", "95 %: Wilson over pairs; bootstrap where draws are averaged")),
        note=f"fitted on {attrs['n_fit']} other pairs; left out: {attrs['excluded']}",
    )


def each_quality(lab: Lab, run: LabRun) -> tuple[Parameters, ...]:
    """Every quality that a page asks for; where one was not measured its body says so."""
    return tuple({"quality": quality} for quality in get_args(Quality))


PAGE = Page(
    "subspace",
    resources=(
        Resource(
            "runs/{run}/projections/{quality}.json", read_projections, "Points of the residual stream along a subspace's axes",
            kinds=KINDS, each=each_quality,
        ),
        Resource("runs/{run}/subspaces.json", read_subspaces, "Swaps inside subspaces", kinds=KINDS),
    ),
    operations=(
        Operation(
            "project", Project, project, "Where a program lies along a subspace's axes",
            ("step", "program", "quality", "axes"),
        ),
        Operation(
            "swap", Swap, swap, "A pair swapped inside a subspace",
            ("step", "program", "counterfactual", "quality", "control", "seed", "draws"),
        ),
    ),
)  # fmt: skip
