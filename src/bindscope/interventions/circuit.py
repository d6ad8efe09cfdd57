"""The circuit behind an answer: which heads move information between which positions of the queried chain.

A *move* is (layer, head, source position, target position): the head, at the target, attends to the source and writes what it
finds. Two tests find moves, on pairs of one depth that differ in the root's constant:

- **patching** asks who carries the value. What a head adds at a position is a sum over the positions it attends to,
  output = Σ_source pattern·(v W_O + b x). First its whole output at the target is taken from the source run; if the
  answer follows in at least ``least_success`` of the pairs, each single term of the sum is, and every term that alone
  makes the answer follow in that fraction of them is a move. If none does, it comes in parts or from positions without a
  name, and its source is called ``spread``.
- **knock-out** asks what the answer cannot do without, also where both runs agree (a right-hand side learning whose
  value it is). The edge target→source is cut in that head; it is a move if the answer is lost in at least
  ``least_loss`` of the pairs that were answered right. Edges that hold less than ``least_attention`` of the head's
  attention on average are not tried: cutting an edge moves no more attention than it holds. Nor are those from a position
  to itself, which move nothing.

Each test asks only the pairs that have both positions; how many those were is in the move.

A circuit is plain data. Found at the last checkpoint it can be frozen and applied to any other one.

    >>> circuit = find_circuit(model, contrast, named_positions(pairs))
    >>> [str(move) for move in circuit.moves]
    ['L0.H0 lhs 1 → rhs 1', 'L1.H0 rhs 1 → query', 'L3.H0 query → colon']
    >>> patch_circuit(earlier_model, contrast, named, circuit).success.mean()
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.ablation import Kind, ablate_together
from bindscope.interventions.address import mark_columns
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.replacement import keep_runs, replace_heads
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

NamedPositions = Mapping[str, np.ndarray]  # columns [pair] by name, −1 where a pair has none
Progress = Callable[[int, int], None]
Metric = Literal["success", "logit_difference"]
SPREAD = "spread"  # the source of a move that comes in parts, or from positions without a name
SAME = 1e-5  # activations this near are the same in both runs: putting one for the other cannot change an answer


@dataclass(frozen=True, order=True)
class Move:
    """One head moving information from one position to another, with what each test found (NaN: not tried)."""

    layer: int
    head: int
    source: str
    target: str
    success: float = math.nan  # patching: how far the answer follows this term alone
    loss: float = math.nan  # knock-out: fraction of right answers lost without this edge
    n_pairs: int = 0  # how many pairs have both positions; a spread source is in all that have the target

    def __str__(self) -> str:
        return f"L{self.layer}.H{self.head} {self.source} → {self.target}"


@dataclass(frozen=True)
class Circuit:
    """The moves that were found, and how."""

    moves: tuple[Move, ...]
    n_pairs: int
    metric: Metric
    least_success: float
    least_loss: float

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """Every (layer, head) that takes part."""
        return tuple(sorted({(move.layer, move.head) for move in self.moves}))

    def to_json(self) -> str:
        """The circuit as text, to keep beside the numbers it gave; ``from_json`` is the inverse."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Circuit:
        fields = json.loads(text)
        return cls(**{**fields, "moves": tuple(Move(**move) for move in fields["moves"])})

    def targets(self) -> dict[Site, tuple[str, ...]]:
        """For each head that takes part the positions where it writes."""
        return {
            Site("result", layer, head): tuple(
                dict.fromkeys(move.target for move in self.moves if (move.layer, move.head) == (layer, head))
            )
            for layer, head in self.heads
        }


def find_circuit(
    model: Transformer,
    contrast: Contrast,
    named: NamedPositions,
    *,
    metric: Metric = "success",
    least_success: float = 0.5,
    least_loss: float = 0.5,
    least_attention: float = 0.05,
    on_progress: Progress | None = None,
) -> Circuit:
    """The moves that the answers to these pairs depend on; the module says what counts.

    ``metric`` says how far the answer follows: ``success`` asks that the source's answer be on top; ``logit_difference``
    measures the way towards it, which also finds heads that carry the value together, each a part of the way.
    """
    for name, fraction in (("least_success", least_success), ("least_loss", least_loss)):
        if not 0 < fraction <= 1:
            raise BindscopeError(f"{name}: must lie above 0 and at most at 1, got {fraction}.")
    search = _Search(model, contrast, named, metric)
    found: dict[tuple[int, int, str, str], dict[str, float]] = {}
    for done, target in enumerate(named, start=1):
        for layer, head, source, success in search.carried(target, least_success):
            found.setdefault((layer, head, source, target), {})["success"] = success
        for layer, head, source, loss in search.needed(target, least_loss, least_attention):
            found.setdefault((layer, head, source, target), {})["loss"] = loss
        if on_progress is not None:
            on_progress(done, len(named))
    moves = tuple(
        Move(*move, evidence.get("success", math.nan), evidence.get("loss", math.nan), search.count(*move[2:]))
        for move, evidence in sorted(found.items())
    )
    return Circuit(moves, len(contrast), metric, least_success, least_loss)


def patch_circuit(
    model: Transformer,
    contrast: Contrast,
    named: NamedPositions,
    circuit: Circuit,
    *,
    source_model: Transformer | None = None,
) -> xr.Dataset:
    """Patching of the whole circuit: every head at every position where it writes, all together."""
    positions = _columns(circuit, named)
    return patch_sites(model, contrast, list(positions), positions=positions, source_model=source_model)


def ablate_circuit(
    model: Transformer,
    batch: Batch,
    named: NamedPositions,
    circuit: Circuit,
    *,
    kind: Kind = "mean",
    keep: bool = False,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Answers without the circuit or, with ``keep``, with nothing but it: all other heads and positions are ablated.

    MLPs are left alone either way; a circuit consists of heads.
    """
    columns = _columns(circuit, named)
    inside = {site: mark_columns(where, *batch.tokens.shape) for site, where in columns.items()}
    if keep:
        config, nowhere = model.config, np.zeros(batch.tokens.shape, bool)
        every = (Site("result", layer, head) for layer in range(config.n_layers) for head in range(config.n_heads))
        inside = {site: ~inside.get(site, nowhere) for site in every}
    return ablate_together(model, batch, list(inside), kind, positions=inside, reference=reference, rng=rng)


def _columns(circuit: Circuit, named: NamedPositions) -> dict[Site | str, np.ndarray]:
    if not circuit.moves:
        raise BindscopeError("the circuit has no moves; find one with lower thresholds first.")
    targets = circuit.targets()
    for position in {position for names in targets.values() for position in names}:
        if position not in named:
            raise BindscopeError(f"the circuit writes at '{position}', which these programs do not have.")
    return {site: np.stack([named[position] for position in names], axis=1) for site, names in targets.items()}


class _Search:
    """Both tests at one target position: every head of every layer in one sweep, its output there replaced."""

    @torch.no_grad()
    def __init__(self, model: Transformer, contrast: Contrast, named: NamedPositions, metric: Metric) -> None:
        self.model, self.contrast, self.named, self.metric = model, contrast, named, metric
        self.layers = range(model.config.n_layers)
        read = [Site(name, layer) for layer in self.layers for name in ("resid_pre", "scores", "v")]
        self.base, self.source = (run(model, tokens, read) for tokens in (contrast.base, contrast.source))
        self.base_logits, self.source_logits = (t.logits[:, contrast.at] for t in (self.base, self.source))
        self.kept = keep_runs(model, contrast.base, contrast.at)
        self.right = (self.base_logits.argmax(-1).cpu() == contrast.base_answers).numpy()  # [pair]

    def carried(self, target: str, least_success: float) -> list[tuple[int, int, str, float]]:
        """(layer, head, source, success) of every term that makes the answer follow."""
        outputs, terms = [], []  # of each layer: [pair, head, d_model] and, as differences, [pair, key, head, d_model]
        for layer in self.layers:
            still = self._terms(self.base, layer, target)
            outputs.append(still.sum(1))
            terms.append(self._terms(self.source, layer, target) - still)
        moved = self._follow(target, outputs, [term.sum(1) for term in terms])
        together = _mean_over(moved, self.present(target))
        found = []
        for source in self.named:
            present = self.present(source, target)
            likely = _mean_over(moved, present) >= least_success
            if not likely.any():
                continue
            marks = torch.from_numpy(mark_columns(self.named[source], *self.contrast.base.shape)).to(terms[0])
            changes = [torch.einsum("pkhm,pk->phm", term, marks) for term in terms]
            alone = _mean_over(self._follow(target, outputs, changes), present)
            strong = np.argwhere((alone >= least_success) & likely).tolist()
            found += [(layer, head, source, float(alone[layer, head])) for layer, head in strong]
        explained = {(layer, head) for layer, head, _, _ in found}
        spread = [(layer, head) for layer, head in np.argwhere(together >= least_success).tolist()]
        spread = [move for move in spread if move not in explained]
        return found + [(layer, head, SPREAD, float(together[layer, head])) for layer, head in spread]

    def needed(self, target: str, least_loss: float, least_attention: float) -> list[tuple[int, int, str, float]]:
        """(layer, head, source, loss) of every edge without which the answer is lost."""
        query, found = self.named[target], []
        patterns = torch.stack([self._row(self.base, layer, query).softmax(-1) for layer in self.layers])
        for source, key in self.named.items():
            present = (query >= 0) & (key >= 0) & (query > key if self.model.config.causal else query != key)
            if not (present & self.right).any():
                continue
            held = to_host(patterns[:, present, :, key[present]]).mean(0).numpy()  # [layer, head]: the edge's attention
            if (held < least_attention).all():
                continue
            cut = np.where(present, key, -1)
            logits = self._replace(target, [self._terms(self.base, layer, target, cut).sum(1) for layer in self.layers])
            lost = (logits.argmax(-1).cpu() != self.contrast.base_answers).numpy()  # [layer, head, pair]
            loss = np.where(held < least_attention, 0, lost[:, :, present & self.right].mean(-1))
            lossy = np.argwhere(loss >= least_loss).tolist()
            found += [(layer, head, source, float(loss[layer, head])) for layer, head in lossy]
        return found

    def present(self, *names: str) -> np.ndarray:
        """Which pairs have all of these positions, [pair]; any pair has what is ``spread``."""
        columns = [self.named[name] for name in names if name != SPREAD]
        return np.all([column >= 0 for column in columns], axis=0)

    def count(self, *names: str) -> int:
        """How many pairs have all of these positions."""
        return int(self.present(*names).sum())

    def _follow(self, target: str, outputs: Sequence[Tensor], changes: Sequence[Tensor]) -> np.ndarray:
        """How far each answer follows [layer, head, pair] when each head's output at the target moves by this much."""
        if max(float(change.abs().max()) for change in changes) < SAME:
            return np.zeros((len(self.layers), self.model.config.n_heads, len(self.contrast)))
        logits = self._replace(target, [output + change for output, change in zip(outputs, changes)])
        return measure_outcomes(logits, self.base_logits, self.source_logits, self.contrast)[self.metric]

    def _replace(self, target: str, values: Sequence[Tensor]) -> Tensor:
        """Logits [layer, head, pair, output] with each head in turn giving ``values[layer]`` [pair, head, d_model]."""
        marks = torch.from_numpy(mark_columns(self.named[target], *self.contrast.base.shape))
        return replace_heads(
            self.model,
            self.contrast.base,
            self.contrast.at,
            lambda layer, rows: values[layer][rows][:, None],
            at_positions=marks,
            runs=self.kept,
        )

    @torch.no_grad()
    def _terms(self, trace: Trace, layer: int, target: str, cut: np.ndarray | None = None) -> Tensor:
        """What every head adds at the target from every column, [pair, key, head, d_model].

        With ``cut`` the target does not see that column of its pair, −1 for none.
        """
        attention = self.model.layers[layer].attention
        x = self.model.layers[layer].norm1(trace[Site("resid_pre", layer)])  # [pair, key, d_model]
        pattern = self._row(trace, layer, self.named[target], cut).softmax(-1).transpose(1, 2)  # [pair, key, head]
        brought = torch.einsum("pkhe,hem->pkhm", trace[Site("v", layer)], attention.W_O)
        return pattern[..., None] * (brought + attention.scaled_b[:, None] * x[:, :, None])

    def _row(self, trace: Trace, layer: int, query: np.ndarray, cut: np.ndarray | None = None) -> Tensor:
        """The scores of one column of each pair, [pair, head, key]."""
        pairs = np.arange(len(query))
        scores = trace[Site("scores", layer)][pairs, :, query]
        if cut is not None:
            scores = scores.clone()
            scores[pairs[cut >= 0], :, cut[cut >= 0]] = float("-inf")
        return scores


def _mean_over(moved: np.ndarray, present: np.ndarray) -> np.ndarray:
    """The mean over some pairs [layer, head] of [layer, head, pair], without those that have no number; 0 where none is."""
    counted = present & np.isfinite(moved).all((0, 1))
    return moved[:, :, counted].mean(-1) if counted.any() else np.zeros(moved.shape[:2])
