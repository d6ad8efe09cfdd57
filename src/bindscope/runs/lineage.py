"""Whether the checkpoints of a series descend from one another, told from their weights.

Training moves weights little by little, so those of a checkpoint keep a direction in common with those of the one
before. Of two matrices that were drawn independently the cosine similarity is 0, give or take 1/√n for n entries. The
similarity of two checkpoints is the median over their matrices (not their vectors: norms start at 1 and biases at 0 in
every run), so that embeddings that two runs share, or one that training turned around, decide nothing.

Training that was set back to an earlier checkpoint keeps that similarity. It shows in another way: the step is then
nearer to an earlier one than to the one before it. Nearness is the angle between weights, which is 90° to all
independent ones however long they are, estimated on a fixed sample of the entries, as all checkpoints are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.runs.manifest import is_step
from bindscope.schema import from_mapping

if TYPE_CHECKING:
    from torch import Tensor

LINEAGE = "lineage"  # where a manifest's data holds a Descent by step
INDEPENDENT = 0.05  # a cosine below it is; of shipped runs, two come to 0.01 and the ends of one to 0.44 or more
N_ERRORS = 4  # … and of small models, so many standard errors of the median over independent matrices
SET_BACK = 0.5  # an earlier step is what a step goes on from if it is so much nearer; in whole runs it never is by 0.7
N_SAMPLED = 500  # entries of each matrix on which nearness is estimated
N_NAMED = 4  # steps in a sentence


@dataclass(frozen=True)
class Descent:
    """How the weights of a step compare with those of the step before."""

    before: int  # the step before
    distance: float  # |after - before| / |before| over all tensors
    cosine: float | None  # the median over matrices; None where there are none
    independent_below: float  # the cosine below which they cannot be told from independent weights
    nearest: int  # the step before, or an earlier one whose weights are much nearer

    @property
    def is_independent(self) -> bool:
        return self.cosine is not None and self.cosine < self.independent_below


class Lineage:
    """The checkpoints of a series one after the other, each compared with those before it.

    >>> lineage = Lineage()
    >>> [lineage.add(step, run.weights(step)) for step in run.steps]
    [None, Descent(before=0, distance=0.12, …), …]
    """

    def __init__(self) -> None:
        self._before: tuple[int, Mapping[str, Tensor]] | None = None
        self._sketches: dict[int, Tensor] = {}

    def add(self, step: int, weights: Mapping[str, Tensor]) -> Descent | None:
        """How a checkpoint compares with the one before; None for the first."""
        before, self._before = self._before, (step, weights)
        sketch = _sketch_direction(weights)
        descent = None
        if before is not None:
            nearness = {earlier: float((sketch - other).norm()) for earlier, other in self._sketches.items()}
            descent = compare_weights(*before, weights, nearest=_find_nearest(nearness))
        self._sketches[step] = sketch
        return descent


def compare_weights(
    step: int, before: Mapping[str, Tensor], after: Mapping[str, Tensor], nearest: int | None = None
) -> Descent:
    """What lies between the weights of ``step`` and those of the checkpoint after it, of one shape.

    >>> compare_weights(1000, run.weights(1000), run.weights(2000)).cosine
    0.97
    """
    pairs = [(tensor.float(), after[name].float()) for name, tensor in before.items()]
    moved = math.hypot(*(float((b - a).norm()) for a, b in pairs))
    length = math.hypot(*(float(a.norm()) for a, _ in pairs))
    matrices = [(a, b) for a, b in pairs if a.ndim > 1 and a.any() and b.any()]
    cosines = [float((a * b).sum() / (a.norm() * b.norm())) for a, b in matrices]
    n_entries = len(matrices) * median(a.numel() for a, _ in matrices) if matrices else 1
    error = math.sqrt(math.pi / 2 / n_entries)  # of the median of as many cosines, if the matrices are independent
    return Descent(
        before=step,
        distance=moved / length if length else 0.0,
        cosine=median(cosines) if cosines else None,
        independent_below=max(INDEPENDENT, N_ERRORS * error),
        nearest=step if nearest is None else nearest,
    )


def describe_lineage(data: Mapping[str, Any]) -> list[str]:
    """What a reader should know of a series, from its manifest's data: which steps do not go on from the one before.

    >>> describe_lineage(run.manifest.data)
    ['Step 300 does not descend from step 200: …']
    """
    recorded = _read_lineage(data.get(LINEAGE, {}))
    independent = {step: descent for step, descent in recorded.items() if descent.is_independent}
    set_back = {step: descent for step, descent in recorded.items() if descent.nearest != descent.before}
    same = {step: descent for step, descent in recorded.items() if descent.distance == 0}
    return [
        *([_say_independent(independent)] if independent else []),
        *([_say_set_back(set_back)] if set_back else []),
        *([_say_same(same)] if same else []),
    ]


def _read_lineage(recorded: Any) -> dict[int, Descent]:
    if not isinstance(recorded, Mapping) or not all(map(is_step, recorded)):
        raise BindscopeError(f"the manifest is damaged: its '{LINEAGE}' is no table by step.")
    found = {int(step): from_mapping(Descent, entry, f"{LINEAGE}, step {step}") for step, entry in recorded.items()}
    return dict(sorted(found.items()))


def _find_nearest(nearness: Mapping[int, float]) -> int:
    """The step before, which is the last, unless an earlier one is much nearer."""
    before = list(nearness)[-1]
    nearest = min(nearness, key=nearness.__getitem__)
    return nearest if nearness[nearest] < SET_BACK * nearness[before] else before


def _sketch_direction(weights: Mapping[str, Tensor]) -> Tensor:
    """A vector of length 1 between two of which the angle is about that between the matrices they are made of."""
    import torch

    parts = [torch.zeros(1, dtype=torch.float64)]
    for tensor in weights.values():
        n = tensor.numel()
        if tensor.ndim > 1 and n > N_SAMPLED:
            chosen = torch.randint(n, (N_SAMPLED,), generator=torch.Generator().manual_seed(0))
            parts.append(tensor.flatten()[chosen].double() * math.sqrt(n / N_SAMPLED))
        elif tensor.ndim > 1:
            parts.append(tensor.flatten().double())
    return torch.nn.functional.normalize(torch.cat(parts), dim=0)


def _say_independent(found: Mapping[int, Descent]) -> str:
    cosines = [descent.cosine for descent in found.values() if descent.cosine is not None]
    at_most = " at most" if len(found) > 1 else ""
    return (
        f"{_name_steps(found, 'does not descend from', 'do not descend from')}: the cosine similarity of the weights is"
        f"{at_most} {max(cosines):.2f}, as of independent ones; another run is mixed in, training began again with new "
        "weights, or the steps are too far apart to tell."
    )


def _say_set_back(found: Mapping[int, Descent]) -> str:
    pairs = [f"step {step:,} to step {descent.nearest:,}" for step, descent in found.items()]
    return (
        f"{_name_steps(found, 'does not go on from', 'do not go on from')} but from an earlier one, whose weights are much "
        f"nearer ({_join(pairs)}); training was set back, or two runs are mixed."
    )


def _say_same(found: Mapping[int, Descent]) -> str:
    return f"{_name_steps(found, 'has the very weights of', 'have the very weights of')}; was one file saved twice?"


def _name_steps(found: Mapping[int, Descent], one: str, several: str) -> str:
    if len(found) == 1:
        ((step, descent),) = found.items()
        return f"Step {step:,} {one} step {descent.before:,}"
    return f"Steps {_join([f'{step:,}' for step in found])} {several} the step before each"


def _join(parts: list[str]) -> str:
    if len(parts) > N_NAMED:
        parts = [*parts[: N_NAMED - 1], f"{len(parts) - N_NAMED + 1} more"]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
