"""Which of two hypotheses a model agrees with: patches at the positions where they predict different answers.

Pairs of programs differ in the constant at the root of the queried chain, in all constants off the chain, or in one reference of
the chain and the constant that the other name leads to. A *site* is a variable of one hypothesis. Of all pairs those count
for it on which exchanging the variable should give an answer that nothing else explains: not the answer to the base program
(the true one, or the hypothesis's own), not what the rival predicts for that position, and not what a variable that it depends
on and that lives there too would give. The token there must be the same in both programs, for one that differs is input, which
every mechanism reads. Then the residual stream of the source is put into the base run there, at every layer in turn:

    followed   the answer is the one that the variable's own hypothesis predicts
    rival      it is what the other hypothesis predicts: of a variable that lives there, or that nothing happens

    >>> scores = score_hypotheses(model, task, find_hypothesis("value-forward"), find_hypothesis("pointer-backward"), rng)
    >>> scores.followed.sel(condition="model").max("layer")

Controls are conditions of the same patches: ``another position`` (a random right-hand side that no variable lives at),
``shuffled positions`` (each variable at the position of another of its hypothesis), and ``untrained`` (the same model with
fresh weights). ``score`` over (hypothesis, condition) is the mean over a hypothesis's sites of ``followed`` at each site's best
layer, chosen on one half of the pairs and measured on the other. The last layer is what leaves the model: there a patch of the
colon shows what the model answers to the source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import student_interval
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.joint import NONE, joint_answers
from bindscope.measures.binding.hypotheses.causal import Hypothesis, Variable, exchange
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import (
    BindingTask,
    Program,
    ask_programs,
    columns_of,
    outputs_of_digits,
    references_of,
    rows_of,
    sample_pointer_pairs,
    sample_root_pairs,
    to_digits,
)
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, QUERY_PARTS
from bindscope.tasks.binding.program import FIRST_LETTER
from bindscope.tasks.task import Batch

FIRST_ROOT_LINE = 3  # on line 1 or 2 shortcut and mechanism agree
CONDITIONS = ("model", "another position", "shuffled positions", "untrained")
ANOTHER = "another position"
OTHER = -2  # an answer that is no digit
LEAST_PAIRS = 8  # on which the hypotheses disagree, for a site to be scored
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Base and source programs of one depth, and as the model reads them."""

    base: list[Program]
    source: list[Program]
    contrast: Contrast
    batch: Batch  # of the base programs: which column of the model each position of a program stands at

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Base and source in the family's own tokens, [pair, position] each."""
        base, source = (np.array([program.tokens for program in each]) for each in (self.base, self.source))
        return base, source

    def columns(self, position: str) -> np.ndarray:
        """Where a named position stands in the rows [pair]; −1 where a program has no such line."""
        return np.array([column_of(position, program) for program in self.base])

    def keeps_token(self, position: str) -> np.ndarray:
        """Whether base and source have the same token there [pair]: one that differs is input, which every mechanism reads."""
        columns, rows = self.columns(position), np.arange(len(self.base))
        base, source = self.rows
        return np.asarray((base == source)[rows, columns] & (columns >= 0))

    def to_digits(self, answers: xr.DataArray) -> xr.DataArray:
        """Outputs as digits; what is no digit becomes ``OTHER``, and a missing answer stays one."""
        digits = to_digits(self.batch, answers.values)
        digits = np.where(answers.values == NONE, NONE, np.where(digits < 0, OTHER, digits))
        return answers.copy(data=digits)


@dataclass(frozen=True, eq=False)
class Site:
    """A variable of one hypothesis, the pairs that count for it, and both predictions on them."""

    hypothesis: str
    depth: int
    variable: Variable
    shuffled: str  # the position of another variable, '' where there is none
    counts: np.ndarray  # [pair]: whether the hypotheses disagree
    predicted: np.ndarray  # [pair]
    rival: np.ndarray  # [pair, prediction]


def score_hypotheses(
    model: Transformer,
    task: BindingTask,
    first: Hypothesis,
    second: Hypothesis,
    rng: np.random.Generator,
    n: int = 48,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """``followed`` and ``rival`` over (condition, site, layer) with Wilson intervals, and ``score`` over (hypothesis, condition).

    ``n`` pairs of each kind and depth are drawn; a task or two hypotheses without any pair to tell them apart is refused.
    """
    if first.name == second.name:
        raise BindscopeError(f"the two hypotheses are both '{first.name}'; name two.")
    fresh = Transformer(model.config, torch.Generator().manual_seed(int(rng.integers(2**31)))).eval()
    deepest = min(task.max_depth, (task.lines - FIRST_ROOT_LINE + 1) // 2)
    rows: list[tuple[Site, np.ndarray, np.ndarray]] = []  # followed and rival, [condition, layer, pair]
    for depth in range(1, deepest + 1):
        pairs = draw_pairs(task, rng, n, depth)
        sites = [*list_sites(pairs, depth, first, second), *list_sites(pairs, depth, second, first)]
        marks = _marks(pairs, sites, rng)
        answers = {
            kind: pairs.to_digits(joint_answers(each, pairs.contrast, marks))
            for kind, each in (("model", model), ("untrained", fresh))
        }
        rows += [(site, *_outcomes(site, answers)) for site in sites if site.counts.sum() >= LEAST_PAIRS]
        if on_progress is not None:
            on_progress(depth, deepest)
    if not rows:
        raise BindscopeError(
            f"'{first.name}' and '{second.name}' predict the same answers on the pairs drawn; there is nothing to tell apart."
        )
    return _label(rows, (first.name, second.name), model.config.n_layers)


def draw_pairs(task: BindingTask, rng: np.random.Generator, n: int, depth: int) -> Pairs:
    """``n`` pairs of each kind: another root, other constants off the chain, another reference at each place of it."""
    depths = range(depth, depth + 1)
    roots = sample_root_pairs(task, rng, n, depths, FIRST_ROOT_LINE)
    others = sample_root_pairs(task, rng, n, depths, FIRST_ROOT_LINE)
    roots_at = np.searchsorted(columns_of(others.base), others.chain_positions[:, 0])
    rows = [
        (rows_of(roots.base), rows_of(roots.counterfactual)),
        (rows_of(others.base), _change_others(rows_of(others.base), roots_at, task.n_constants, rng)),
    ]
    for reference in references_of(depth):
        drawn = sample_pointer_pairs(task, rng, n, depth, reference, FIRST_ROOT_LINE).pairs
        rows.append((rows_of(drawn.base), rows_of(drawn.counterfactual)))
    together = [np.concatenate(kind) for kind in zip(*rows, strict=True)]
    base, source = ([Program.from_tokens(row.tolist()) for row in each] for each in together)
    written = [task.write(ask_programs(each)) for each in (base, source)]
    outputs = outputs_of_digits(written[0])
    answers = [torch.from_numpy(outputs[[program.answer for program in each]]) for each in (base, source)]
    tokens = [torch.from_numpy(each.tokens) for each in written]
    at = int(columns_of(written[0])[-1])
    return Pairs(base, source, Contrast(tokens[0], tokens[1], answers[0], answers[1], at), written[0])


def list_sites(pairs: Pairs, depth: int, own: Hypothesis, rival: Hypothesis) -> list[Site]:
    """Every variable of a hypothesis, with what both predict for its position on each pair."""
    variables, theirs = own.variables(depth), rival.variables(depth)
    both = list(zip(pairs.base, pairs.source, strict=True))
    answers = np.array([base.answer for base in pairs.base])
    places = list(dict.fromkeys(each.position for each in variables))
    found = []
    for each in variables:
        predicted = _predict(own, variables, both, each.name)
        living = [other.name for other in theirs if other.position == each.position] or [""]
        others = np.stack([_predict(rival, theirs, both, name) for name in living], 1)  # [pair, prediction]
        before = [_predict(own, variables, both, name) for name in ancestors_there(variables, each)]
        nothing = _predict(own, variables, both, "")  # its own answer to the base, which may be wrong
        told = np.column_stack([answers, nothing, others, *before])  # [pair, answer]: what comes about without it
        counts = (predicted[:, None] != told).all(1) & pairs.keeps_token(each.position)
        shuffled = places[(places.index(each.position) + 1) % len(places)] if len(places) > 1 else ""
        found.append(Site(own.name, depth, each, shuffled, counts, predicted, others))
    return found


def ancestors_there(variables: Sequence[Variable], variable: Variable) -> list[str]:
    """The variables that one depends on and that live at its own position: a patch may have moved those instead."""
    known = {each.name: each for each in variables}
    found: list[str] = []
    due = list(variable.parents)
    while due:
        name = due.pop()
        if name not in found:
            found.append(name)
            due += known[name].parents
    return [name for name in found if known[name].position == variable.position]


def column_of(position: str, program: Program) -> int:
    """The column of a named position of the base program; −1 where it has no such line."""
    word, _, number = position.partition(" ")
    if not number:
        return LINE_WIDTH * program.n_lines + QUERY_PARTS.index(word)
    if word == "line":
        line = int(number)
        return LINE_WIDTH * (line - 1) + LINE_PARTS.index("rhs") if line <= program.n_lines else -1
    line = program.chain[::-1][int(number) - 1]
    return LINE_WIDTH * (line - 1) + LINE_PARTS.index(word)


def _change_others(tokens: np.ndarray, root: np.ndarray, n_constants: int, rng: np.random.Generator) -> np.ndarray:
    """The same programs with another digit on every constant line but the root's, whose column is ``root`` [pair]."""
    columns = np.arange(tokens.shape[1])
    constants = (tokens < FIRST_LETTER) & (columns % LINE_WIDTH == LINE_PARTS.index("rhs")) & (columns != root[:, None])
    return np.where(constants, (tokens + rng.integers(1, n_constants, tokens.shape)) % n_constants, tokens)


def _predict(hypothesis: Hypothesis, variables: Sequence[Variable], both: list[Any], name: str) -> np.ndarray:
    answers = [exchange(hypothesis, variables, base, source, name) for base, source in both]
    for answer in answers:
        if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
            raise BindscopeError(
                f"{hypothesis.where}: its last variable must be the answer, a digit, and is {answer!r}."
            )
    return np.array(answers, dtype=np.int64)


def _marks(pairs: Pairs, sites: Sequence[Site], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Marks [pair, column] of every position that is named, and of a random right-hand side that none is at."""
    names = dict.fromkeys(name for site in sites for name in (site.variable.position, site.shuffled) if name)
    columns = {name: pairs.columns(name) for name in names}
    base, source = pairs.rows
    width = base.shape[1]
    marks = {name: np.arange(width) == column[:, None] for name, column in columns.items()}
    right = (np.arange(width) % LINE_WIDTH == LINE_PARTS.index("rhs")) & (np.arange(width) < width - len(QUERY_PARTS))
    reached = np.arange(width) > (base != source).argmax(1)[:, None]  # a change could show there
    free = right & reached & ~np.any(list(marks.values()), axis=0)
    chosen = (rng.random(free.shape) * free).argmax(1)
    marks[ANOTHER] = free & (np.arange(width) == chosen[:, None])
    return {name: _at_columns(each, pairs) for name, each in marks.items()}


def _at_columns(marks: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Marks [pair, position] of programs at the columns that their positions stand at."""
    found = np.zeros(pairs.contrast.base.shape, dtype=bool)
    found[:, columns_of(pairs.batch)] = marks
    return found


def _outcomes(site: Site, answers: dict[str, xr.DataArray]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each patched answer of the pairs that count is followed, and the rival's, [condition, layer, pair]; −1: missing."""
    where = {"model": site.variable.position, ANOTHER: ANOTHER, "shuffled positions": site.shuffled,
             "untrained": site.variable.position}  # fmt: skip
    followed, rival = [], []
    for condition in CONDITIONS:
        of = answers["untrained" if condition == "untrained" else "model"]
        name = where[condition]
        given = (
            of.sel(set=name).values[:, site.counts] if name else np.full((of.sizes["layer"], site.counts.sum()), NONE)
        )
        missing = given == NONE
        followed.append(np.where(missing, -1, given == site.predicted[site.counts]))
        rival.append(np.where(missing, -1, (given[..., None] == site.rival[site.counts]).any(-1)))
    return np.stack(followed), np.stack(rival)


def _label(rows: Sequence[tuple[Site, np.ndarray, np.ndarray]], names: tuple[str, str], n_layers: int) -> xr.Dataset:
    dims = ("condition", "site", "layer")
    variables: dict[str, Any] = {}
    for name, cells in (("followed", [row[1] for row in rows]), ("rival", [row[2] for row in rows])):
        hits = np.stack([np.sum(each == 1, axis=-1) for each in cells], 1)  # [condition, site, layer]
        trials = np.stack([np.sum(each >= 0, axis=-1) for each in cells], 1)
        variables |= fraction_variables(name, dims, hits, trials)
    sites = [row[0] for row in rows]
    best, held = zip(*(_held_out(row[1]) for row in rows), strict=True)
    held_out = np.array(held).T  # [condition, site]
    owner = np.array([site.hypothesis for site in sites])
    summaries = np.array([[_mean(held_out[row, owner == name]) for row in range(len(CONDITIONS))] for name in names])
    for suffix, column in (("", 0), ("_low", 1), ("_high", 2)):
        variables[f"score{suffix}"] = (("hypothesis", "condition"), summaries[..., column], {"units": "fraction"})
    variables |= {"held_out": (("condition", "site"), held_out), "best_layer": ("site", np.array(best))}
    variables["n"] = ("site", np.array([int(site.counts.sum()) for site in sites]))
    coords = {
        "condition": list(CONDITIONS), "layer": np.arange(n_layers + 1), "hypothesis": list(names),
        "site_hypothesis": ("site", owner), "site_depth": ("site", [site.depth for site in sites]),
        "site_variable": ("site", [site.variable.name for site in sites]),
        "site_position": ("site", [site.variable.position for site in sites]),
    }  # fmt: skip
    return xr.Dataset(variables, coords, {"interval": "95 %: Wilson over pairs; score: Student over sites"})


def _held_out(followed: np.ndarray) -> tuple[int, list[float]]:
    """The best layer on every other pair, and what each condition has there on the others."""
    chosen = int((followed[0, :, ::2] == 1).mean(-1).argmax())
    others = followed[:, chosen, 1::2]
    return chosen, [float((row[row >= 0] == 1).mean()) if (row >= 0).any() else float("nan") for row in others]


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return (np.nan, np.nan, np.nan)
    low, high = student_interval(known) if len(known) > 1 else (np.nan, np.nan)
    return float(known.mean()), max(0.0, low) if low == low else low, min(1.0, high) if high == high else high
