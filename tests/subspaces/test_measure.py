"""A measured subspace stands beside its controls; sweeps and projections say what single measurements say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.model.transformer import Transformer
from bindscope.subspaces import (
    Search,
    Subspace,
    cross_swaps,
    default_search,
    find_columns,
    measure_subspace,
    project_over_training,
    read_stream,
    sweep_subspaces,
)
from bindscope.subspaces.measure import CONDITIONS
from bindscope.subspaces.rotation import RotationPlan
from subspaces.constructed_space import VALUE_AT_QUERY, Known
from subspaces.test_subspace import generator, success

VALUES = Search(of="values", layer=VALUE_AT_QUERY, position="query")


@pytest.fixture(scope="module")
def measured(known: Known, root_pairs):
    return measure_subspace(known.model, *root_pairs, VALUES, generator(), n_draws=3)


def test_the_found_subspace_carries_the_value_and_no_control_does(measured) -> None:
    fraction = dict(zip(measured.condition.values, measured.success_fraction.values))
    assert tuple(fraction) == CONDITIONS
    assert fraction["found"] > 0.98
    assert fraction["whole stream"] == 1
    assert fraction["nothing"] == 0
    for control in ("rest", "random", "untrained model"):
        assert fraction[control] < 0.15
    assert fraction["shuffled labels"] < fraction["found"]
    assert measured.sizes["draw"] == 3
    assert measured.random_success.mean().item() == pytest.approx(fraction["random"])


def test_labels_are_read_off_the_found_subspace_and_not_off_shuffled_ones(measured) -> None:
    score = measured.score.to_series()
    assert score["found"] > 0.98
    assert score["shuffled labels"] < 0.5  # ten clusters of points, each in its own class by chance
    assert np.isnan(score["rest"])
    assert (measured.score_low <= measured.score).sel(condition="found").item()


def test_intervals_hold_their_fractions_and_the_counts_are_stated(measured, root_pairs) -> None:
    assert (measured.success_low <= measured.success_fraction).all()
    assert (measured.success_fraction <= measured.success_high).all()
    assert measured.attrs["n_fit_pairs"] == len(root_pairs[0])
    assert measured.attrs["n_test_pairs"] == len(root_pairs[1])
    assert measured.attrs["exclusions"] == "programs with their root before line 3"


def test_the_kept_basis_is_the_subspace_that_was_swapped(measured, known: Known, root_pairs) -> None:
    kept = Subspace.from_dataset(measured)
    assert kept.describe().startswith("10 of ")
    again = success(known.model, root_pairs[1], VALUES.layer, VALUES.position, kept.swap)
    assert again == measured.success_fraction.sel(condition="found").item()


def test_the_same_generator_gives_the_same_numbers(measured, known: Known, root_pairs) -> None:
    assert measure_subspace(known.model, *root_pairs, VALUES, generator(), n_draws=3).identical(measured)


def test_a_rotation_is_measured_with_the_same_controls(known: Known, root_pairs) -> None:
    search = Search("values", "rotation", 10, VALUE_AT_QUERY, "query", RotationPlan(n_steps=25, batch_size=32))
    dataset = measure_subspace(known.model, *root_pairs, search, generator(), n_draws=1)
    fraction = dataset.success_fraction.to_series()
    assert fraction["found"] > fraction["shuffled labels"]
    assert fraction["found"] > fraction["random"]
    assert dataset.attrs["origin"] == "learned rotation"


def test_a_sweep_finds_the_value_where_the_circuit_puts_it(known: Known, root_pairs) -> None:
    steps = []
    sweep = sweep_subspaces(
        known.model, *root_pairs, VALUES, generator(), layers=[1, VALUE_AT_QUERY], positions=["query", "colon", "lhs 1"],
        on_progress=lambda done, total: steps.append((done, total)),
    )  # fmt: skip
    assert sweep.found.sel(layer=VALUE_AT_QUERY, position="query") > 0.98
    assert sweep.random.sel(layer=VALUE_AT_QUERY, position="query") < 0.15
    assert (sweep.whole_stream.sel(position=["colon", "lhs 1"]) == 0).all()
    assert sweep.whole_stream.sel(layer=1, position="query") == 0
    assert np.isnan(sweep.found.sel(layer=1)).all()
    assert steps[-1] == (6, 6)


def test_names_and_values_of_the_constructed_model_are_apart(known: Known, root_pairs, name_pairs) -> None:
    subspaces = {"values": known.value, "names": known.letters}
    pairs = {"values": root_pairs[1], "names": name_pairs[1]}
    early = cross_swaps(known.model, subspaces, pairs, layer=1, position="chain")
    np.testing.assert_array_equal(early.success_fraction, np.eye(2))
    np.testing.assert_allclose(early.overlap, np.eye(2), atol=1e-6)
    late = cross_swaps(known.model, subspaces, pairs, layer=VALUE_AT_QUERY, position="query")
    np.testing.assert_array_equal(late.success_fraction, [[1, 1], [0, 0]])  # the name has done its work


def test_searches_that_cannot_be_made_are_refused(known: Known, root_pairs) -> None:
    for search, sentence in [
        (Search(rank=4000), "rank 4000: the residual stream is"),
        (Search(layer=9), "layer 9: the model has layers 0 to 3"),
        (Search(position="colone"), "Did you mean 'colon'"),
    ]:
        with pytest.raises(BindscopeError, match=sentence):
            measure_subspace(known.model, *root_pairs, search, generator())
    with pytest.raises(BindscopeError, match="values or names"):
        Search(of="digits")  # type: ignore[arg-type]
    with pytest.raises(BindscopeError, match="pca or rotation"):
        Search(method="lasso")
    with pytest.raises(BindscopeError, match="at least 1 random"):
        measure_subspace(known.model, *root_pairs, VALUES, generator(), n_draws=0)


def test_defaults_fit_the_model(known: Known, root_pairs) -> None:
    for of in ("values", "names"):
        search = default_search(known.model, of)  # type: ignore[arg-type]
        assert 0 <= search.layer < known.model.config.n_layers
        find_columns(root_pairs[0], search.position)


def test_projections_frozen_to_a_checkpoint_keep_its_axes(known: Known, root_pairs) -> None:
    pairs, other = root_pairs[1], Transformer(known.model.config, generator(5)).eval()
    where = {"layer": VALUE_AT_QUERY, "position": "query"}
    models = [(0, other), (100, known.model)]
    frozen = project_over_training(iter(models), pairs, **where, frozen_to=(100, known.model))
    assert frozen.attrs["axes"] == "frozen to step 100"
    points = read_stream(known.model, pairs.base_tokens, VALUE_AT_QUERY, find_columns(pairs, "query"))[:, 0]
    early = read_stream(other, pairs.base_tokens, VALUE_AT_QUERY, find_columns(pairs, "query"))[:, 0]
    axes = torch.linalg.svd((points - points.mean(0)).double(), full_matrices=False)[2][:2].float()
    for step, stream in ((100, points), (0, early)):
        expected = ((stream - points.mean(0)) @ axes.T).abs()
        torch.testing.assert_close(
            torch.from_numpy(np.abs(frozen.coordinate.sel(step=step).values)), expected, atol=1e-4, rtol=0
        )
    np.testing.assert_array_equal(frozen.value.values, pairs.base_answers)
    np.testing.assert_array_equal(frozen.depth.values, pairs.labels["depth"][:, 0])


def test_projections_refitted_at_each_step_do_not_flip(known: Known, root_pairs) -> None:
    turned = Transformer(known.model.config).eval()
    turned.load_state_dict({name: -value for name, value in known.model.state_dict().items()})
    models = [(0, known.model), (1, known.model), (2, turned)]
    dataset = project_over_training(models, root_pairs[1], layer=0, position="chain", n_axes=3)
    assert dataset.attrs["axes"] == "refitted at each step"
    assert dataset.sizes == {"step": 3, "point": int((find_columns(root_pairs[1], "chain") >= 0).sum()), "axis": 3}
    np.testing.assert_allclose(dataset.coordinate[1], dataset.coordinate[0], atol=1e-5)
    np.testing.assert_allclose(dataset.coordinate[2], dataset.coordinate[0], atol=1e-4)
    assert (dataset.variance_fraction.diff("axis") <= 1e-6).all()


def test_projections_inside_a_subspace_see_only_it(known: Known, root_pairs) -> None:
    models = [(0, known.model)]
    dataset = project_over_training(models, root_pairs[1], layer=2, position="query", inside=known.position)
    np.testing.assert_allclose(dataset.coordinate, 0, atol=1e-6)  # the query always stands in the same position
    with pytest.raises(BindscopeError, match="no checkpoint"):
        project_over_training([], root_pairs[1], layer=2, position="query")
