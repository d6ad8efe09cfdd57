"""The circuit behind an answer: which heads move information between which places of the queried chain.

A *move* is (layer, head, source place, target place): the head, at the target, looks at the source and writes what it
finds. Two tests find moves, on pairs of one depth that differ in the root's constant:

- **interchange** asks who carries the value. What a head adds at a place is a sum over the places it looks at,
  output = Σ_source pattern·(v W_O + b x). First its whole output at the target is taken from the source run; if the
  answer follows in at least ``least_success`` of the pairs, each single term of the sum is, and every term that alone
  makes the answer follow in that share of them is a move. If none does, the move comes from ``elsewhere``.
- **knock-out** asks what the answer cannot do without, also where both runs agree (a right-hand side learning whose
  value it is). The edge target→source is cut in that head; it is a move if the answer is lost in at least
  ``least_loss`` of the pairs that were answered right. Edges that hold less than ``least_attention`` of the head's
  attention on average are not tried: cutting an edge moves no more attention than it holds. Nor are those from a place
  to itself, which move nothing.

A circuit is plain data. Found at the last checkpoint it can be frozen and applied to any other one.

    >>> circuit = find_circuit(model, contrast, structural_places(pairs))
    >>> [str(move) for move in circuit.moves]
    ['L0.H0 lhs 1 → rhs 1', 'L1.H0 rhs 1 → query', 'L3.H0 query → colon']
    >>> patch_circuit(earlier_model, contrast, places, circuit).success.mean()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.ablation import Kind, ablate_together
from bindscope.interventions.address import mark_columns
from bindscope.interventions.answers import Edits
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.interchange import patch_sites
from bindscope.interventions.knockout import Edge, cut_edits
from bindscope.model.run import Trace, run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

Places = Mapping[str, np.ndarray]  # columns [pair] by name, −1 where a pair has none
Progress = Callable[[int, int], None]
ELSEWHERE = "elsewhere"
SAME = 1e-5  # activations this near are the same in both runs: putting one for the other cannot change an answer


@dataclass(frozen=True, order=True)
class Move:
    """One head moving information from one place to another, with what each test found (NaN: not tried)."""

    layer: int
    head: int
    source: str
    target: str
    success: float = math.nan  # interchange: share of pairs whose answer follows this term alone
    loss: float = math.nan  # knock-out: share of right answers lost without this edge

    def __str__(self) -> str:
        return f"L{self.layer}.H{self.head} {self.source} → {self.target}"


@dataclass(frozen=True)
class Circuit:
    """The moves that were found, and how."""

    moves: tuple[Move, ...]
    n_pairs: int
    least_success: float
    least_loss: float

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """Every (layer, head) that takes part."""
        return tuple(sorted({(move.layer, move.head) for move in self.moves}))

    def targets(self) -> dict[Site, tuple[str, ...]]:
        """For each head that takes part the places where it writes."""
        return {
            Site("result", layer, head): tuple(
                dict.fromkeys(move.target for move in self.moves if (move.layer, move.head) == (layer, head))
            )
            for layer, head in self.heads
        }


def find_circuit(
    model: Transformer,
    contrast: Contrast,
    places: Places,
    *,
    least_success: float = 0.5,
    least_loss: float = 0.5,
    least_attention: float = 0.05,
    on_progress: Progress | None = None,
) -> Circuit:
    """The moves that the answers to these pairs depend on; the module says what counts."""
    for name, share in (("least_success", least_success), ("least_loss", least_loss)):
        if not 0 < share <= 1:
            raise BindscopeError(f"{name}: must lie above 0 and at most at 1, got {share}.")
    search = _Search(model, contrast, places)
    layers = range(model.config.n_layers)
    found: dict[tuple[int, int, str, str], dict[str, float]] = {}
    for layer in layers:
        for head in range(model.config.n_heads):
            for target, source, success in search.carried(layer, head, least_success):
                found.setdefault((layer, head, source, target), {})["success"] = success
            for target, source, loss in search.needed(layer, head, least_loss, least_attention):
                found.setdefault((layer, head, source, target), {})["loss"] = loss
        if on_progress is not None:
            on_progress(layer + 1, len(layers))
    moves = tuple(
        Move(*move, evidence.get("success", math.nan), evidence.get("loss", math.nan))
        for move, evidence in sorted(found.items())
    )
    return Circuit(moves, len(contrast), least_success, least_loss)


def patch_circuit(
    model: Transformer,
    contrast: Contrast,
    places: Places,
    circuit: Circuit,
    *,
    source_model: Transformer | None = None,
) -> xr.Dataset:
    """Interchange of the whole circuit: every head at every place where it writes, all together."""
    positions = _columns(circuit, places)
    return patch_sites(model, contrast, list(positions), positions=positions, source_model=source_model)


def ablate_circuit(
    model: Transformer,
    batch: Batch,
    places: Places,
    circuit: Circuit,
    *,
    kind: Kind = "mean",
    keep: bool = False,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Answers without the circuit or, with ``keep``, with nothing but it: all other heads and places are ablated.

    MLPs are left alone either way; a circuit consists of heads.
    """
    columns = _columns(circuit, places)
    inside = {site: mark_columns(where, *batch.tokens.shape) for site, where in columns.items()}
    if keep:
        config, nowhere = model.config, np.zeros(batch.tokens.shape, bool)
        every = (Site("result", layer, head) for layer in range(config.n_layers) for head in range(config.n_heads))
        inside = {site: ~inside.get(site, nowhere) for site in every}
    return ablate_together(model, batch, list(inside), kind, positions=inside, reference=reference, rng=rng)


def _columns(circuit: Circuit, places: Places) -> dict[Site | str, np.ndarray]:
    if not circuit.moves:
        raise BindscopeError("the circuit has no moves; find one with lower thresholds first.")
    targets = circuit.targets()
    for place in {place for names in targets.values() for place in names}:
        if place not in places:
            raise BindscopeError(f"the circuit writes at '{place}', which these programs do not have.")
    return {site: np.stack([places[place] for place in names], axis=1) for site, names in targets.items()}


class _Search:
    """The runs that both tests read from."""

    @torch.no_grad()
    def __init__(self, model: Transformer, contrast: Contrast, places: Places) -> None:
        self.model, self.contrast, self.places = model, contrast, places
        self.shape = contrast.base.shape[0], contrast.base.shape[1]
        read = [Site(name, layer) for layer in range(model.config.n_layers) for name in ("resid_pre", "pattern", "v")]
        self.base, self.source = (run(model, tokens, read) for tokens in (contrast.base, contrast.source))
        self.right = self._answers(self.base.logits) == contrast.base_answers  # [pair]

    def carried(self, layer: int, head: int, least_success: float) -> list[tuple[str, str, float]]:
        """(target, source, success) of every term that makes the answer follow."""
        found = []
        for target, column in self.places.items():
            terms = self._terms(self.source, layer, head, column) - self._terms(self.base, layer, head, column)
            together = self._success(layer, head, column, terms.sum(1))
            if together < least_success:
                continue
            alone = {source: self._success(layer, head, column, self._from(source, terms)) for source in self.places}
            strong = [(target, source, success) for source, success in alone.items() if success >= least_success]
            found += strong or [(target, ELSEWHERE, together)]
        return found

    def needed(self, layer: int, head: int, least_loss: float, least_attention: float) -> list[tuple[str, str, float]]:
        """(target, source, loss) of every edge without which the answer is lost."""
        pattern = self.base[Site("pattern", layer)][:, head]  # [pair, query, key]
        found = []
        for target, query in self.places.items():
            for source, key in self.places.items():
                both = (query >= 0) & (key >= 0) & (query > key if self.model.config.causal else query != key)
                if not both.any() or float(pattern[both, query[both], key[both]].mean()) < least_attention:
                    continue
                edge = Edge(np.where(both, query, -1), np.where(both, key, -1), layer, head, f"{target}>{source}")
                loss = self._loss(edge, both)
                if loss >= least_loss:
                    found.append((target, source, loss))
        return found

    @torch.no_grad()
    def _terms(self, trace: Trace, layer: int, head: int, column: np.ndarray) -> Tensor:
        """What the head adds at one column of each pair from every column, [pair, key, d_model]."""
        block, pairs = self.model.layers[layer], np.arange(len(column))
        x = block.norm1(trace[Site("resid_pre", layer)])  # [pair, key, d_model]
        brought = trace[Site("v", layer)][:, :, head] @ block.attention.W_O[head] + block.attention.scaled_b[head] * x
        return trace[Site("pattern", layer)][pairs, head, column][:, :, None] * brought

    def _from(self, source: str, terms: Tensor) -> Tensor:
        """The term [pair, d_model] that comes from one place."""
        marks = torch.from_numpy(mark_columns(self.places[source], *self.shape)).to(terms.dtype)  # [pair, key]
        return torch.einsum("pkm,pk->pm", terms, marks)

    @torch.no_grad()
    def _success(self, layer: int, head: int, column: np.ndarray, difference: Tensor) -> float:
        """The share of pairs with this place whose answer follows when the head's output there moves by this much."""
        marks = torch.from_numpy(mark_columns(column, *self.shape))  # [pair, position]
        moved = marks[:, :, None] * difference[:, None]  # [pair, position, d_model]
        has_place = marks.any(1)
        if not bool(has_place.any()) or float(moved.abs().max()) < SAME:
            return 0.0
        write: Edits = {Site("result", layer, head): lambda old: old + moved}
        follows = self._answers(run(self.model, self.contrast.base, write=write).logits) == self.contrast.source_answers
        return float(follows[has_place].double().mean())

    @torch.no_grad()
    def _loss(self, edge: Edge, present: np.ndarray) -> float:
        counted = self.right & torch.from_numpy(present)
        if not bool(counted.any()):
            return 0.0
        write = cut_edits(self.model, [edge], self.shape)(slice(None))
        answers = self._answers(run(self.model, self.contrast.base, write=write).logits)
        return float((answers != self.contrast.base_answers)[counted].double().mean())

    def _answers(self, logits: Tensor) -> Tensor:
        return logits[:, self.contrast.at].argmax(-1)
