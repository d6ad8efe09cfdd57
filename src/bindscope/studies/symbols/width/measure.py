"""The orthogonality argument, measured: which symbols the first steps of training teach a model of each width to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.framework.results import Context, OnProgress, Result

if TYPE_CHECKING:
    import torch

    from bindscope.model.transformer import Transformer
    from bindscope.runs.config import RunConfig

MODELS = ("plain", "both")
WIDTHS = (32, 64, 128, 256, 512)
N = 128
SEEDS = 3
STEPS = (1, 4)  # and 0, the gradient at the start
POOLS = ("train", "test")
MOST_WIDTH, MOST_N = 4096, 8192


def compute_directions(context: Context) -> xr.Dataset:
    """At the sizes of the experiment ``copy``, with three seeds from the context's on."""
    seeds = range(context.seed, context.seed + SEEDS)
    return measure_directions(WIDTHS, context.n or N, seeds, on_progress=context.on_progress)


def measure_directions(
    widths: Sequence[int],
    n: int,
    seeds: Sequence[int],
    steps: Sequence[int] = STEPS,
    on_progress: OnProgress | None = None,
) -> xr.Dataset:
    """Train a few steps at each width and read what they changed in Σ_h W_V W_O (``measures/templates/copying.py``).

    Over (model, width, seed, step, layer): the readings and shares, ``ratio`` (unseen over seen) and ``head_share``, the
    mean over heads of the share in the span of training symbols. Step 0 is the gradient at the start, later ones are
    Adam's. Over (model, width, seed, step, pool): ``accuracy``. ``predicted_ratio`` (model, width, seed) is that of one
    plain gradient step in the simplified model (``theory/copying.py``), ``simple_ratio`` the same drawn at random.
    """
    _check(widths, n, steps)
    cells = [(model, width, seed) for width in sorted(set(widths)) for model in MODELS for seed in seeds]
    rows = []
    for done, (model, width, seed) in enumerate(cells, start=1):
        row = _measure_cell(model, width, n, seed, sorted(set(steps)))
        rows.append(row.expand_dims(model=[model], width=[width], seed=[seed]))
        if on_progress is not None:
            on_progress(done, len(cells))
    dataset = xr.combine_by_coords(rows, combine_attrs="drop")
    assert isinstance(dataset, xr.Dataset)
    dataset = dataset.sel(model=list(MODELS))
    dataset["ratio"] = dataset.unseen / dataset.seen
    dataset.attrs = {
        "title": "what early training changes in a model that copies",
        "source": "bindscope copying",
        "n": n,
        "steps": int(np.max(steps)),
    }
    return dataset


def _check(widths: Sequence[int], n: int, steps: Sequence[int]) -> None:
    if not widths or not all(2 <= width <= MOST_WIDTH for width in widths):
        raise BindscopeError(f"widths: give one or more between 2 and {MOST_WIDTH:,}, got {list(widths)}.")
    if not 2 <= n <= MOST_N:
        raise BindscopeError(f"n: must lie between 2 and {MOST_N:,} training symbols, got {n}.")
    if not steps or min(steps) < 1:
        raise BindscopeError(f"steps: give one or more from 1 on, got {list(steps)}.")


def cell_of(model: str, width: int, n: int, seed: int) -> RunConfig:
    """The run of the experiment ``copy`` with these sizes, whether or not it is one of its variants."""
    from bindscope.studies.framework.experiments import cell_config
    from bindscope.studies.framework.presets import find_preset
    from bindscope.studies.symbols.experiments.define import copy_variant

    variant = copy_variant(model, width, n)
    return cell_config(find_preset("templates-copy").config, variant.changes, variant.name, seed)


def _measure_cell(name: str, width: int, n: int, seed: int, steps: Sequence[int]) -> xr.Dataset:
    """Over (step, layer): one model, trained from its start to the last of ``steps``."""
    import torch

    from bindscope.model.transformer import Transformer

    config = cell_of(name, width, n, seed)
    model = Transformer(config.model, torch.Generator().manual_seed(config.seed))
    training = _EarlyTraining.start(model, config)
    found, accuracy = [training.read_gradient()], [training.accuracy()]
    for step in range(1, max(steps) + 1):
        training.update()
        if step in steps:
            found.append(training.read_change())
            accuracy.append(training.accuracy())
    names = found[0][0].keys()
    values = {name: (("step", "layer"), np.array([[part[name] for part in row] for row in found])) for name in names}
    return xr.Dataset(
        {
            **values,
            "accuracy": (("step", "pool"), np.array(accuracy)),
            **_predictions(config, training.n_seen, np.random.default_rng(seed)),
            "n_symbols": training.n_seen,
        },
        {"step": [0, *steps], "layer": range(config.model.n_layers), "pool": list(POOLS)},
    )


@dataclass(eq=False)
class _EarlyTraining:
    """A model at the start of its training, what it looked like, and the symbols that it is asked about."""

    model: Transformer
    config: RunConfig
    optimizer: Any
    before: list[torch.Tensor]  # products of each layer, [head, d_model, d_model]
    seen: list[Any]  # directions of each layer
    unseen: list[Any]

    @classmethod
    def start(cls, model: Transformer, config: RunConfig) -> _EarlyTraining:
        from bindscope.measures.templates.copying import find_directions, product_of
        from bindscope.training.optimizer import build_optimizer

        task: Any = config.task
        symbols = np.concatenate([np.array(part) for part in task.alphabets.values()])
        strings = np.repeat(task.training_set().tokens[:1], len(symbols), axis=0)
        strings[:, 0] = symbols
        directions = find_directions(model, strings)
        trained = np.unique(task.training_set().tokens[:, 0])
        seen = np.flatnonzero(np.isin(symbols, trained))
        unseen = np.flatnonzero(np.isin(symbols, task.alphabets["test"]))
        return cls(
            model,
            config,
            build_optimizer(model, config.training.optimizer),
            [product_of(block.attention) for block in model.layers],
            [layer.of(seen) for layer in directions],
            [layer.of(unseen) for layer in directions],
        )

    @property
    def n_seen(self) -> int:
        return len(self.seen[0].read)

    def update(self) -> None:
        self.backward()
        self.optimizer.step()

    def backward(self) -> None:
        from bindscope.training.loss import batch_loss

        task: Any = self.config.task
        self.optimizer.zero_grad()
        batch_loss(self.model, task.training_set()).backward()

    def read_gradient(self) -> list[dict[str, float]]:
        """Readings of a small step down the gradient, layer by layer."""
        from bindscope.measures.templates.copying import step_of_product

        self.backward()
        changes = []
        for block in self.model.layers:
            named = block.attention.named_parameters()
            gradients = {name: weight.grad for name, weight in named if weight.grad is not None}
            changes.append(step_of_product(block.attention, gradients))
        return self._read(changes)

    def read_change(self) -> list[dict[str, float]]:
        """Readings of what changed since the start."""
        from bindscope.measures.templates.copying import product_of

        layers = zip(self.model.layers, self.before)
        return self._read([product_of(block.attention) - before for block, before in layers])

    def _read(self, changes: Sequence[torch.Tensor]) -> list[dict[str, float]]:
        from bindscope.measures.templates.copying import read_update, span_share

        rows = []
        for change, seen, unseen in zip(changes, self.seen, self.unseen):
            readings = asdict(read_update(change.sum(0), seen, unseen, np.random.default_rng(0)))
            readings["head_share"] = float(np.mean([span_share(head, seen)[0] for head in change]))
            rows.append(readings)
        return rows

    def accuracy(self) -> list[float]:
        """On training sequences and on all unseen symbols."""
        import torch

        task: Any = self.config.task
        unseen = np.array(task.alphabets["test"])
        strings = np.repeat(task.training_set().tokens[:1], len(unseen), axis=0)
        strings[:, 0] = unseen
        found = []
        with torch.no_grad():
            for tokens in (task.training_set().tokens, strings):
                answers = self.model(torch.from_numpy(tokens), at=torch.tensor([tokens.shape[1] - 1]))[:, 0].argmax(-1)
                found.append(float((answers.numpy() == tokens[:, 0]).mean()))
        return found


def _predictions(config: RunConfig, n_symbols: int, rng: np.random.Generator) -> Mapping[str, float]:
    """The ratio after one gradient step in the simplified model: as expected, and in one such model."""
    from bindscope.theory.copying import identity_strength, predict_ratio, predict_share

    model = config.model
    gain = model.identity_gain if model.identity_vo else 0.0
    strength = identity_strength(model.d_model, model.n_heads, model.d_head, gain)
    return {
        "predicted_ratio": predict_ratio(n_symbols, model.d_model, strength),
        "simple_ratio": _simple_ratio(config, n_symbols, gain, rng),
        "predicted_share": predict_share(model.d_model, model.n_heads * model.d_head) if not gain else float("nan"),
    }


def _simple_ratio(config: RunConfig, n_symbols: int, gain: float, rng: np.random.Generator) -> float:
    import torch
    from torch.nn.functional import normalize

    from bindscope.measures.templates.copying import Directions, read_update
    from bindscope.theory.copying import CopyModel

    model = config.model
    simple = CopyModel.draw(model.d_model, n_symbols, n_symbols, rng, model.n_heads, model.d_head)
    embeddings = normalize(torch.from_numpy(simple.embeddings), dim=1)
    seen, unseen = embeddings[:n_symbols], embeddings[n_symbols:]
    update = torch.from_numpy(simple.update(gain))
    return read_update(update, Directions(seen, seen), Directions(unseen, unseen), rng).ratio


RESULTS: tuple[Result, ...] = (
    Result(
        "copy_directions",
        "which symbols the first steps teach a model to copy",
        compute_directions,
        n=N,
        slow=True,
    ),
)
