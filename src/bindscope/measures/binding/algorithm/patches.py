"""Where the value is and where a pointer is, layer by layer: the patches that tell algorithms apart.

Value pairs differ in the constant at the root. Their residual stream is patched at every position of the chain alone, and
jointly: all later right-hand sides, query and colon, the whole chain after its root, and everything after the root.
Pointer pairs differ in one reference and in the constant that the other name leads to (``tasks/binding/pointers.py``); a patch
moved the *pointer* if the answer becomes the base's value of the other name, and the *value* if it becomes the source's.

    >>> drawn = draw_chain_pairs(task, np.random.default_rng(0), n=48)
    >>> dataset = measure_patches(model, drawn)
    >>> dataset.value.sel(depth=2, position="rhs 2"), dataset.pointer.sel(depth=2, reference="query", position="colon")

``hop`` says how each reference was followed, pair by pair, and the five ways add up to 1:

    value      the value came to the reference's own position (a patch there fetches the source's value), and only so
    pointer    a later position took the name over (a patch there is looked up in the base program), and only so
    both       each of the two
    jointly    no single position does either, but several together do
    none       nothing does

Only pairs whose two programs are both answered correctly are counted, and a depth is patched only where those are half of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.joint import joint_answers
from bindscope.measures.binding.mechanism import answers_right, mark_columns
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import (
    BindingTask,
    CounterfactualPairs,
    PointerPairs,
    named_positions,
    references_of,
    sample_pointer_pairs,
    sample_root_pairs,
)

FIRST_ROOT_LINE = 3  # on line 1 or 2 shortcut and mechanism agree
LEARNED = 0.5  # fraction of a depth's pairs answered correctly, both programs, below which it is not patched
LATER, END, CHAIN, ALL = "later rhs", "query + colon", "later chain", "all later"
JOINT = (LATER, END, CHAIN, ALL)
WAYS = ("value", "pointer", "both", "jointly", "none")
Progress = Callable[[int, int], None]
Marks = dict[str, np.ndarray]
Axes = dict[str, list[Any]]
Cell = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ChainPairs:
    """The pairs that one measurement is made on, by depth: drawn once, and used at every checkpoint."""

    value: dict[int, CounterfactualPairs]
    pointer: dict[tuple[int, str], PointerPairs]
    max_depth: int  # of the task

    @property
    def depths(self) -> list[int]:
        return list(self.value)

    @property
    def note(self) -> str:
        """Which depths of the task are left out."""
        deepest = self.depths[-1]
        return (
            f"chains deeper than {deepest}: two so deep are too rare in one program" if deepest < self.max_depth else ""
        )


def path_of(depth: int) -> list[str]:
    """The positions of a chain, from its root to where the answer is given: ``rhs 1``, …, ``query``, ``colon``."""
    return [*(f"rhs {hop}" for hop in range(1, depth + 1)), "query", "colon"]


def members_of(name: str, depth: int) -> list[str]:
    """The named positions of a joint set, or of a position alone."""
    later = path_of(depth)[1:]
    return {LATER: later[:-2], END: later[-2:], CHAIN: later, ALL: later}.get(name, [name])


def draw_chain_pairs(task: BindingTask, rng: np.random.Generator, n: int) -> ChainPairs:
    """``n`` value pairs of each depth, and ``n`` pointer pairs of each depth and reference.

    Depths so rare that their pairs are not found are left out, with all deeper ones; a task without any is refused.
    """
    deepest = min(task.max_depth, (task.lines - FIRST_ROOT_LINE + 1) // 2)  # two chains of that depth must fit
    if deepest < 1:
        raise BindscopeError(f"programs of {task.lines} lines are too short for roots from line {FIRST_ROOT_LINE} on.")
    drawn = ChainPairs({}, {}, task.max_depth)
    for depth in range(1, deepest + 1):
        value = sample_root_pairs(task, rng, n, range(depth, depth + 1), FIRST_ROOT_LINE)
        try:
            pointer = {
                (depth, reference): sample_pointer_pairs(task, rng, n, depth, reference, FIRST_ROOT_LINE)
                for reference in references_of(depth)
            }
        except BindscopeError:
            if depth == 1:
                raise
            break
        drawn.value[depth] = value
        drawn.pointer.update(pointer)
    return drawn


def measure_patches(model: Transformer, drawn: ChainPairs, on_progress: Progress | None = None) -> xr.Dataset:
    """Fractions of patched answers with Wilson intervals.

    ``value`` over (depth, layer, position): of value pairs, the source's answer. ``pointer`` and ``fetched`` over (depth,
    reference, layer, position): of pointer pairs, the base's and the source's value of the other name. ``hop`` over (depth,
    reference, way). Layers count what enters them; the last is what leaves the model.
    """
    depths, n_layers = drawn.depths, model.config.n_layers
    axes: Axes = {
        "depth": depths,
        "reference": references_of(depths[-1]),
        "layer": list(range(n_layers + 1)),
        "position": [*path_of(depths[-1]), *JOINT],
        "way": list(WAYS),
    }
    counts = {
        "value": _Counts(axes, ("depth", "layer", "position")),
        "pointer": _Counts(axes, ("depth", "reference", "layer", "position")),
        "fetched": _Counts(axes, ("depth", "reference", "layer", "position")),
        "hop": _Counts(axes, ("depth", "reference", "way")),
    }
    accuracy = np.zeros(len(depths))
    for row, depth in enumerate(depths):
        accuracy[row] = _measure_depth(model, drawn, depth, counts)
        if on_progress is not None:
            on_progress(row + 1, len(depths))
    variables: dict[str, Any] = {
        key: entry for name, count in counts.items() for key, entry in count.fractions(name).items()
    }
    variables["accuracy"] = (("depth",), accuracy, {"units": "fraction"})
    for name, count in (("n", counts["value"]), ("n_hop", counts["hop"])):
        variables[name] = (count.dims[: 1 if name == "n" else 2], count.n.astype(int))
    return xr.Dataset(
        variables, axes, {"n_drawn": len(drawn.value[depths[0]]), "interval": "95 %, Wilson", "left_out": drawn.note}
    )


def _measure_depth(model: Transformer, drawn: ChainPairs, depth: int, counts: dict[str, _Counts]) -> float:
    """Count all patches of one depth; the fraction of its pairs that the model answers."""
    value, pointers = drawn.value[depth], {name: drawn.pointer[depth, name] for name in references_of(depth)}
    right = answers_right(model, value)
    rights = {name: answers_right(model, both.pairs) for name, both in pointers.items()}
    accuracy = float(np.concatenate([right, *rights.values()]).mean())
    if accuracy < LEARNED:
        return accuracy
    sets = mark_sets(value, depth)
    answers = joint_answers(model, contrast_pairs(value), sets).values[:, :, right]  # [set, layer, pair]
    counts["value"].add({"depth": depth}, list(sets), answers == value.counterfactual_answers[right])
    for name, both in pointers.items():
        sets = mark_references(both, depth)
        answers = joint_answers(model, contrast_pairs(both.pairs), sets).values[:, :, rights[name]]
        moved = answers == both.pointed_answers[rights[name]]
        fetched = answers == both.pairs.counterfactual_answers[rights[name]]
        cell, known = {"depth": depth, "reference": name}, [each for each in sets if each != LATER]
        counts["pointer"].add(cell, known, moved[[list(sets).index(each) for each in known]])
        counts["fetched"].add(cell, known, fetched[[list(sets).index(each) for each in known]])
        ways = hop_ways(dict(zip(sets, moved)), dict(zip(sets, fetched)), name)  # [way, pair]
        counts["hop"].add(cell, list(WAYS), ways[:, None])
    return accuracy


def hop_ways(moved: Marks, fetched: Marks, reference: str) -> np.ndarray:
    """How a reference was followed, one way a pair [way, pair], from what patches of each set [layer, pair] did.

    A set counts in a layer where it succeeds and none of its members does alone.
    """
    singles = [name for name in moved if name not in JOINT]
    after = [name for name in singles if name != reference]
    own = [name for name in singles if name.startswith("rhs")] if reference != "query" else singles
    value = fetched[reference].any(0)
    pointer = np.any([moved[name] for name in after], axis=0).any(0)
    joint = np.zeros_like(value)
    for name, members, found in (
        (LATER if reference != "query" else END, own, fetched),
        (END if reference != "query" else "", ["query", "colon"], moved),
        (CHAIN, after, moved),
    ):
        if name in moved:
            alone = np.any([found[member] for member in members], axis=0)
            joint |= (found[name] & ~alone).any(0)
    neither = ~value & ~pointer
    return np.stack([value & ~pointer, pointer & ~value, value & pointer, neither & joint, neither & ~joint])


def mark_sets(pairs: CounterfactualPairs, depth: int) -> Marks:
    """Marks [pair, position] of each position of the chain and of the joint sets."""
    named = named_positions(pairs)
    marks = {name: mark_columns(pairs, named[name]) for name in path_of(depth)}
    for name in (LATER, END, CHAIN):
        if members := members_of(name, depth):
            marks[name] = np.any([marks[member] for member in members], axis=0)
    marks[ALL] = np.arange(pairs.base_tokens.shape[1]) > named["rhs 1"][:, None]
    return marks


def mark_references(drawn: PointerPairs, depth: int) -> Marks:
    """Marks of each position from the changed reference on, of the right-hand sides among them, and of all that come after."""
    path = path_of(depth)
    names = path[path.index(drawn.reference) :]
    named = named_positions(drawn.pairs)
    marks = {name: mark_columns(drawn.pairs, named[name]) for name in names}
    own, after = names[:-2], names[1:]
    for name, members in ((LATER, own), (END, names[-2:]), (CHAIN, after)):
        if len(members) > 1 and not (name == CHAIN and members == ["query", "colon"]):
            marks[name] = np.any([marks[member] for member in members], axis=0)
    return marks


class _Counts:
    """Hits in cells along named axes, and of how many pairs; cells that nothing was counted in stay missing."""

    def __init__(self, axes: Axes, dims: tuple[str, ...]) -> None:
        self.axes, self.dims = axes, dims
        self.hits, self.trials = (np.zeros([len(axes[dim]) for dim in dims]) for _ in range(2))

    def add(self, cell: Cell, names: list[str], hit: np.ndarray) -> None:
        """Count ``hit`` [name, layer, pair], or [name, 1, pair] where there are no layers."""
        row = tuple(self.axes[dim].index(at) for dim, at in cell.items())
        columns = [self.axes[self.dims[-1]].index(name) for name in names]
        for array, numbers in ((self.hits, hit.sum(2)), (self.trials, np.full(hit.shape[:2], hit.shape[2]))):
            array[row][..., columns] = numbers.T if "layer" in self.dims else numbers[:, 0]

    @property
    def n(self) -> np.ndarray:
        """How many pairs were counted, over the first axes."""
        most: np.ndarray = self.trials.max(
            axis=tuple(range(len(self.dims) - ("layer" in self.dims) - 1, self.trials.ndim))
        )
        return most

    def fractions(self, name: str) -> dict[str, Any]:
        return fraction_variables(name, self.dims, self.hits, self.trials)
