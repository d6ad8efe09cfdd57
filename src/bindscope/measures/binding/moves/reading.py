"""What the patches of ``moves.patches`` say: arrows from position to position with the heads that make them, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bindscope.measures.binding.moves.patches import VALUE

SHOWN = {
    True: 0.1,
    False: 0.25,
}  # the least effect of a layer's heads at a position that is drawn: of the value, of a name
NAMED = 0.1  # of that: the least effect of a head that is named
MOST_NAMED = 4
HELD = 0.5  # the effect from which a position is said to hold what differs


@dataclass(frozen=True)
class Move:
    """Heads of one layer bring something to a position of the chain."""

    what: str  # "value", or the reference whose name is moved
    layer: int
    source: str  # where they attend to most, of the positions that held it
    target: str
    effect: float  # of all heads of the layer at the target
    heads: tuple[tuple[int, float], ...]  # the strongest of them, each by itself

    @property
    def names(self) -> str:
        """``L2.H1 and L2.H3``; ``all of L2`` where no head does much by itself."""
        named = [f"L{self.layer}.H{head}" for head, _ in self.heads]
        return " and ".join(named) if named else f"several heads of L{self.layer}"


def read_moves(dataset: xr.Dataset) -> list[Move]:
    """Every move of a dataset without pairs (a mean, or one pair), by layer."""
    path = [str(name) for name in dataset.position.values]
    found = []
    for what in map(str, dataset.what.values):
        part, begin = (
            dataset.sel(what=what),
            0 if what == VALUE else path.index(what),
        )  # a name goes on from its reference
        for layer in dataset.layer.values.tolist():
            for target in range(begin + 1, len(path)):
                effect = float(part.together.values[layer, target])
                if effect >= SHOWN[what == VALUE]:
                    heads = part["head"].values[layer, :, target]
                    found.append(_move(what, layer, path, begin, target, effect, heads, part))
    return sorted(found, key=lambda move: (move.layer, path.index(move.target)))


def _move(
    what: str, layer: int, path: list[str], begin: int, target: int, effect: float, heads: np.ndarray, part: xr.Dataset
) -> Move:
    order = np.argsort(-heads)
    named = tuple((int(head), float(heads[head])) for head in order[:MOST_NAMED] if heads[head] >= NAMED * effect)
    weights = np.nan_to_num(part.attended.values[layer, :, target, begin:target])  # [head, from]
    held = np.nan_to_num(part.held.values[layer, begin:target]).clip(0)
    strength = np.nan_to_num(heads).clip(0) if named else np.ones(len(heads))
    score = (strength[:, None] * weights * held).sum(0)
    source = int(score.argmax()) if score.max() > 0 else int((strength[:, None] * weights).sum(0).argmax())
    return Move(what, layer, path[begin + source], path[target], effect, named)


def tell_moves(dataset: xr.Dataset, spelled: dict[str, str] | None = None) -> str:
    """Where the value sits, layer by layer, in one sentence; ``spelled`` says which token stands at a position.

    >>> tell_moves(dataset, {"rhs 1": "4", "rhs 2": "e", "query": "w", "colon": ":"})
    "The value sits at '4' (rhs 1) entering L0 to L1, at 'e' (rhs 2) entering L2, and at ':' (colon) from L6 on."
    """
    held = dataset.held.sel(what=VALUE).values  # [layer, position]
    path = [str(name) for name in dataset.position.values]
    spans: list[tuple[int, int, int]] = []  # position, first and last layer at which it holds the value
    for position in range(len(path)):
        layers = np.flatnonzero(held[:, position] >= HELD)
        if len(layers):
            spans.append((position, int(layers[0]), int(layers[-1])))
    if not spans:
        return "No single position of the chain carries the value."
    parts = [f"{_spell(path[at], spelled)} {_layers(first, last, len(held))}" for at, first, last in spans]
    held_at = {at for at, *_ in spans}
    if len(path) - 1 not in held_at:  # what leaves the last layer at the colon is the answer itself
        parts.append(f"{_spell(path[-1], spelled)} after L{len(held) - 1}")
    missing = [_spell(name, spelled) for at, name in enumerate(path[:-1]) if at not in held_at]
    never = f"; {_join(missing)} never {'does' if len(missing) == 1 else 'do'} alone" if missing else ""
    return f"The value sits at {_join(parts)}{never}."


def _spell(name: str, spelled: dict[str, str] | None) -> str:
    return name if not spelled or name not in spelled else f"‘{spelled[name]}’ ({name})"


def _layers(first: int, last: int, n_layers: int) -> str:
    if last == n_layers - 1:
        return f"from L{first} on" if first < last else f"entering L{first}"
    return f"entering L{first}" if first == last else f"entering L{first} to L{last}"


def _join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
