"""Effects of heads at positions with what Python reads off them, for the browser's own reading to be checked against.

python -m bindscope.web.move_cases frontend/src/pages/patch/moves-cases.json
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xarray as xr

from bindscope.measures.binding.moves.reading import read_moves, tell_moves

DEPTH, N_CASES, SEED = 3, 12, 0
PATH = [*(f"rhs {hop}" for hop in range(1, DEPTH + 1)), "query", "colon"]
N_LAYERS, N_HEADS = 4, 3


def make_cases() -> list[dict[str, Any]]:
    """For each case its numbers as a body has them, its moves and its sentence."""
    rng = np.random.default_rng(SEED)
    return [_describe(_draw(rng, sparse=row % 3), spelled=row % 2 == 0) for row in range(N_CASES)]


def encode_cases() -> bytes:
    """The cases as they are written to a file, one a line."""
    return ("[\n" + ",\n".join("  " + orjson.dumps(case).decode() for case in make_cases()) + "\n]\n").encode()


def _draw(rng: np.random.Generator, sparse: int) -> xr.Dataset:
    """Effects between −0.2 and 1, many of them none at all in sparse cases."""
    axes: dict[str, list[Any]] = {
        "what": ["value", "rhs 2", "query"], "layer": list(range(N_LAYERS)), "index": list(range(N_HEADS)),
        "position": PATH, "from": PATH,
    }  # fmt: skip
    dims = {
        "held": ("what", "layer", "position"), "together": ("what", "layer", "position"),
        "head": ("what", "layer", "index", "position"), "attended": ("layer", "index", "position", "from"),
    }  # fmt: skip
    variables = {}
    for name, along in dims.items():
        values = rng.uniform(-0.2, 1, [len(axes[dim]) for dim in along])
        variables[name] = (along, np.round(np.where(rng.random(values.shape) < 0.3 * sparse, 0, values), 4))
    return xr.Dataset(variables, axes)


def _describe(dataset: xr.Dataset, spelled: bool) -> dict[str, Any]:
    tokens = dict(zip(PATH, "4exw:")) if spelled else None
    moves = [asdict(move) | {"effect": round(move.effect, 4)} for move in read_moves(dataset)]
    for move in moves:
        move["heads"] = [{"head": head, "effect": round(effect, 4)} for head, effect in move["heads"]]
    return {
        "sizes": {str(name): size for name, size in dataset.sizes.items()},
        "coords": {str(name): values.values.tolist() for name, values in dataset.coords.items()},
        "spelled": list(tokens.values()) if tokens else [],
        "variables": {str(name): {"dims": list(array.dims), "values": array.values.ravel().tolist()} for name, array in dataset.items()},
        "moves": moves,
        "finding": tell_moves(dataset, tokens),
    }  # fmt: skip


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_cases())
