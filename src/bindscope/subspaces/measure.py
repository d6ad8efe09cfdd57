"""Patching inside a subspace beside its controls, as one labelled dataset.

What is swapped, at one layer and position, from the counterfactual run into the base run:

- ``found``            the part inside the subspace that was fitted on other pairs;
- ``rest``             everything but that part;
- ``whole stream``     both, the most that any subspace there can reach;
- ``nothing``          what the model answers by itself;
- ``random``           the part inside random subspaces of the same rank, several draws;
- ``shuffled labels``  the part inside a subspace fitted the same way to shuffled labels (values or names; for a
                       rotation shuffled counterfactual answers);
- ``untrained model``  everything done over, fit and swap, with a model of the same shape that was never trained.

Success means that the counterfactual digit is the top output. ``score`` is how often a linear classifier, fitted on the
coordinates of the fit pairs, names the right label for the test pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.intervals import bootstrap_interval, wilson_interval
from bindscope.model.transformer import Transformer
from bindscope.subspaces.find import LIGHT, RANKS, Samples, fit_subspace, sample_stream
from bindscope.subspaces.positions import N_CLASSES, QUALITIES, Quality, find_columns
from bindscope.subspaces.rotation import RotationPlan, learn_rotation
from bindscope.subspaces.sparse import fit_classifier
from bindscope.subspaces.stream import Change, keep_base, read_stream, run_changed, stream_site
from bindscope.subspaces.subspace import Subspace, check_rank, random_subspace
from bindscope.tasks.binding import CounterfactualPairs

Method = str
METHODS = ("pca", "rotation")
CONDITIONS = ("found", "rest", "whole stream", "nothing", "random", "shuffled labels", "untrained model")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Search:
    """What is looked for, how, and where."""

    of: Quality = "values"
    method: Method = "pca"
    rank: int | None = None  # the paper's 10 for values and 26 for names when left out
    layer: int = 0
    position: str = "chain"  # see subspaces/positions.py
    plan: RotationPlan = field(default_factory=RotationPlan)

    def __post_init__(self) -> None:
        if self.of not in QUALITIES:
            raise BindscopeError(f"'{self.of}': a subspace is looked for of {' or '.join(QUALITIES)}.")
        if self.method not in METHODS:
            raise BindscopeError(f"method '{self.method}': use {' or '.join(METHODS)}.")

    @property
    def size(self) -> int:
        return RANKS[self.of] if self.rank is None else self.rank


def default_search(model: Transformer, of: Quality = "values", method: Method = "pca") -> Search:
    """Where to look when nobody says where.

    Values: on the whole chain before the last layer, by when most of them have moved on. Names: at the query and the
    colon a third of the way up, when the name has left its own token and the value has not yet come.
    """
    if of == "names":
        return Search(of, method, layer=max(1, model.config.n_layers // 3), position="question")
    return Search(of, method, layer=model.config.n_layers - 1, position="chain")


def measure_subspace(
    model: Transformer,
    fit: CounterfactualPairs,
    test: CounterfactualPairs,
    search: Search,
    generator: torch.Generator,
    *,
    n_draws: int = 5,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Find a subspace on the pairs ``fit``, swap it on the pairs ``test``, and do the same for every control.

    >>> search = Search(of="values", method="pca", layer=4, position="chain")
    >>> measure_subspace(model, fit, test, search, generator).success_fraction.sel(condition="found").item()
    """
    check_search(model, fit, search)
    if n_draws < 1:
        raise BindscopeError(f"n_draws: give at least 1 random subspace, got {n_draws}.")
    trials = _Trials(model, fit, test, search, generator)
    steps = [
        trials.try_found,
        *[trials.try_random] * n_draws,
        trials.try_shuffled,
        trials.try_untrained,
    ]
    for done, step in enumerate(steps, start=1):
        step()
        if on_progress:
            on_progress(done, len(steps))
    return trials.to_dataset()


def check_search(model: Transformer, pairs: CounterfactualPairs, search: Search) -> None:
    """Refuse a rank, a layer or a position that this model and these pairs do not have."""
    check_rank(search.size, model.config.d_model)
    stream_site(model, search.layer)
    find_columns(pairs, search.position)


def fit_search(
    model: Transformer,
    pairs: CounterfactualPairs,
    samples: Samples,
    search: Search,
    generator: torch.Generator,
    answers: Tensor | None = None,
) -> Subspace:
    """The subspace that a search finds: by PCA in ``samples``, by rotation with ``pairs`` and their ``answers``."""
    if search.method == "pca":
        return fit_subspace(samples, search.of, search.size).subspace
    learned = learn_rotation(
        model,
        pairs,
        layer=search.layer,
        position=search.position,
        rank=search.size,
        generator=generator,
        of=search.of,
        plan=search.plan,
        answers=answers,
    )
    return learned.subspace


def score_subspace(subspace: Subspace, fit: Samples, test: Samples, of: Quality) -> np.ndarray:
    """Whether each test sample's label [sample] is read off the subspace by a classifier fitted to ``fit``."""
    scale = (fit.vectors - fit.vectors.mean(0)).norm(dim=1).mean().clamp_min(1e-12)

    def features(samples: Samples) -> Tensor:
        return subspace.coordinates(samples.vectors - fit.vectors.mean(0)) / scale * subspace.d_model**0.5

    classifier = fit_classifier(features(fit), fit.labels, N_CLASSES[of], LIGHT)
    return (classifier.predict(features(test)) == test.labels).numpy()


class _Trials:
    """Runs every condition and collects what each pair answered."""

    def __init__(
        self,
        model: Transformer,
        fit: CounterfactualPairs,
        test: CounterfactualPairs,
        search: Search,
        generator: torch.Generator,
    ) -> None:
        self.model, self.fit, self.test, self.search, self.generator = model, fit, test, search, generator
        self.columns = find_columns(test, search.position)
        self.fit_samples = self._sample(model, fit)
        self.test_samples = self._sample(model, test)
        self.source = read_stream(model, test.counterfactual_tokens, search.layer, self.columns)
        self.kept = keep_base(model, test, search.layer)
        self.answers: dict[str, list[np.ndarray]] = {}  # condition → top outputs [pair] of each draw
        self.hits: dict[str, list[np.ndarray]] = {}  # condition → right labels [sample] of each draw
        self.subspace: Subspace | None = None

    def try_found(self) -> None:
        self.subspace = found = fit_search(self.model, self.fit, self.fit_samples, self.search, self.generator)
        self._swap("found", found.swap)
        self._swap("rest", found.swap_rest)
        self._swap("whole stream", lambda base, source: source)
        self._swap("nothing", lambda base, source: base)
        self._score("found", found, self.fit_samples)

    def try_random(self) -> None:
        drawn = random_subspace(self.model.config.d_model, self.search.size, self.generator)
        self._swap("random", drawn.swap)
        self._score("random", drawn, self.fit_samples)

    def try_shuffled(self) -> None:
        shuffled = self.fit_samples.shuffle_labels(self.generator)
        order = torch.randperm(len(self.fit), generator=self.generator)
        answers = torch.from_numpy(self.fit.counterfactual_answers)[order]
        fitted = fit_search(self.model, self.fit, shuffled, self.search, self.generator, answers)
        self._swap("shuffled labels", fitted.swap)
        self._score("shuffled labels", fitted, shuffled)

    def try_untrained(self) -> None:
        model = Transformer(self.model.config, self.generator).eval()
        fit, test = self._sample(model, self.fit), self._sample(model, self.test)
        fitted = fit_search(model, self.fit, fit, self.search, self.generator)
        source = read_stream(model, self.test.counterfactual_tokens, self.search.layer, self.columns)
        logits = run_changed(model, self.test, self.search.layer, self.columns, source, fitted.swap)
        self.answers["untrained model"] = [logits.argmax(-1).numpy()]
        self.hits["untrained model"] = [score_subspace(fitted, fit, test, self.search.of)]

    def _sample(self, model: Transformer, pairs: CounterfactualPairs) -> Samples:
        return sample_stream(model, pairs, of=self.search.of, layer=self.search.layer, position=self.search.position)

    def _swap(self, condition: str, change: Change) -> None:
        layer, columns = self.search.layer, self.columns
        logits = run_changed(self.model, self.test, layer, columns, self.source, change, self.kept)
        self.answers.setdefault(condition, []).append(logits.argmax(-1).numpy())

    def _score(self, condition: str, subspace: Subspace, fit: Samples) -> None:
        self.hits.setdefault(condition, []).append(score_subspace(subspace, fit, self.test_samples, self.search.of))

    def to_dataset(self) -> xr.Dataset:
        assert self.subspace is not None
        rng = np.random.default_rng(int(torch.randint(1 << 31, (1,), generator=self.generator)))
        tops = [np.stack(self.answers[condition]) for condition in CONDITIONS]  # each [draw, pair]
        success = np.stack([(top == self.test.counterfactual_answers).mean(0) for top in tops])
        kept = np.stack([(top == self.test.base_answers).mean(0) for top in tops])
        hits = [np.stack(self.hits[condition]).mean(0) if condition in self.hits else None for condition in CONDITIONS]
        fraction, low, high = np.array([fraction_with_interval(values, rng) for values in success]).T
        score, score_low, score_high = np.array(
            [(np.nan,) * 3 if values is None else fraction_with_interval(values, rng) for values in hits]
        ).T
        fractions = {
            "success_fraction": fraction,
            "success_low": low,
            "success_high": high,
            "kept_fraction": kept.mean(1),
            "score": score,
            "score_low": score_low,
            "score_high": score_high,
        }
        dataset = xr.Dataset(
            {name: ("condition", values, {"units": "fraction"}) for name, values in fractions.items()}
            | {
                "success": (("condition", "pair"), success, {"units": "fraction"}),
                "random_success": (
                    "draw",
                    (tops[4] == self.test.counterfactual_answers).mean(1),
                    {"units": "fraction"},
                ),
                "basis": (("component", "d_model"), self.subspace.basis.numpy(), {"units": "1"}),
                "depth": ("pair", self.test.labels["depth"][:, 0]),
            },
            {"condition": list(CONDITIONS)},
        )
        dataset.attrs = describe_search(self.search, self.fit, self.test) | {
            "n_samples_fit": len(self.fit_samples),
            "n_samples_test": len(self.test_samples),
            "origin": self.subspace.origin,
        }
        return dataset


def describe_search(search: Search, fit: CounterfactualPairs, test: CounterfactualPairs) -> dict[str, object]:
    """What a dataset says about itself."""
    first = int(min(pairs.labels["root_line"].min() for pairs in (fit, test)))
    return {
        "of": search.of,
        "method": search.method,
        "rank": search.size,
        "layer": search.layer,
        "position": search.position,
        "n_fit_pairs": len(fit),
        "n_test_pairs": len(test),
        "first_root_line": first,
        "exclusions": f"programs with their root before line {first}" if first > 1 else "none",
        "interval": "95 %: Wilson over pairs or samples; bootstrap over them where draws are averaged",
    }


def fraction_with_interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The mean of ``values`` [item] and its interval; values between 0 and 1 are means over draws."""
    if np.isin(values, (0, 1)).all():
        low, high = wilson_interval(values.sum(), len(values))
        return float(values.mean()), float(low), float(high)
    return (float(values.mean()), *bootstrap_interval(values, rng))
