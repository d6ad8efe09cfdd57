"""A subspace's algebra, and swaps in the residual stream against plain reruns and the constructed mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.subspaces import (
    Subspace,
    find_columns,
    label_columns,
    principal_angles,
    random_subspace,
    read_stream,
    swap_stream,
)
from bindscope.subspaces.positions import named_columns
from bindscope.tasks.binding import Program, sample_name_pairs, sample_root_pairs
from subspaces.constructed_space import TASK, VALUE_AT_QUERY, Known


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def success(model, pairs, layer, position, change) -> float:
    logits = swap_stream(model, pairs, layer, find_columns(pairs, position), change)
    return float((logits.argmax(-1).numpy() == pairs.counterfactual_answers).mean())


@given(st.integers(1, 12), st.integers(0, 100))
def test_a_swap_takes_the_inside_from_the_source_and_the_outside_from_the_base(rank: int, seed: int) -> None:
    subspace = random_subspace(12, rank, generator(seed))
    base, source = torch.randn(2, 5, 12, generator=generator(seed + 1))
    swapped = subspace.swap(base, source)
    torch.testing.assert_close(subspace.coordinates(swapped), subspace.coordinates(source))
    torch.testing.assert_close(swapped - subspace.project(swapped), base - subspace.project(base))
    torch.testing.assert_close(subspace.swap_rest(base, source), subspace.swap(source, base))
    torch.testing.assert_close(subspace.project(subspace.project(base)), subspace.project(base))
    torch.testing.assert_close(base @ (subspace.basis.T @ subspace.basis), subspace.project(base))


def test_a_subspace_of_full_rank_swaps_everything() -> None:
    base, source = torch.randn(2, 3, 7, generator=generator())
    torch.testing.assert_close(random_subspace(7, 7, generator(1)).swap(base, source), source)


def test_angles_between_known_planes() -> None:
    axes = torch.eye(4)
    tilted = torch.stack([axes[0], math.cos(0.3) * axes[1] + math.sin(0.3) * axes[2]])
    torch.testing.assert_close(
        principal_angles(Subspace(axes[:2]), Subspace(tilted)), torch.tensor([0.0, 0.3], dtype=torch.float64),
        atol=1e-6, rtol=0,
    )  # fmt: skip
    assert principal_angles(Subspace(axes[:1]), Subspace(axes[1:])).item() == pytest.approx(math.pi / 2)
    whole = random_subspace(9, 9, generator())
    assert principal_angles(random_subspace(9, 3, generator(1)), whole).max() < 1e-6


def test_a_subspace_survives_being_kept_as_a_dataset() -> None:
    subspace = Subspace(random_subspace(6, 2, generator()).basis, "names", "PCA")
    again = Subspace.from_dataset(subspace.to_dataset())
    assert torch.equal(again.basis, subspace.basis)
    assert str(again) == subspace.describe() == "2 of 6 dimensions for names (PCA)"


def test_impossible_subspaces_are_refused() -> None:
    with pytest.raises(BindscopeError, match="rank 7: the residual stream is 6 wide, so give a rank between 1 and 6"):
        random_subspace(6, 7, generator())
    with pytest.raises(BindscopeError, match="not orthonormal"):
        Subspace(torch.ones(2, 6))
    with pytest.raises(BindscopeError, match="not independent"):
        Subspace.spanned_by(torch.ones(2, 6))
    with pytest.raises(BindscopeError, match="rank, d_model"):
        Subspace(torch.ones(6))


@pytest.mark.parametrize("position", ["query", "rhs 2", "chain", "changed"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_swapping_many_pairs_at_once_equals_rerunning_each(position: str, layer: int) -> None:
    shape = {"d_vocab": 40, "n_positions": 35, "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 16}
    model = Transformer(ModelConfig(**shape, positions="rope"), generator(3)).eval()  # type: ignore[arg-type]
    pairs = sample_root_pairs(TASK, np.random.default_rng(2), 12)
    columns, subspace = find_columns(pairs, position), random_subspace(16, 5, generator(4))
    together = swap_stream(model, pairs, layer, columns, subspace.swap)
    for row, marked in enumerate(columns):
        wanted = ",".join(str(column) for column in marked if column >= 0)
        if not wanted:
            continue
        site = f"L{layer}.resid_pre@{wanted}" if layer < 2 else f"L1.resid_post@{wanted}"
        base, source = (torch.from_numpy(t[row : row + 1]) for t in (pairs.base_tokens, pairs.counterfactual_tokens))
        with torch.no_grad():
            new = run(model, source, read=[site])[site]
            alone = run(model, base, write={site: lambda old, new=new: subspace.swap(old, new)}).logits[:, -1]
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-5, rtol=1e-5)


def test_a_model_in_bfloat16_is_swapped_to_its_digits() -> None:
    shape = {"d_vocab": 40, "n_positions": 35, "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 16}
    model = Transformer(ModelConfig(**shape, positions="rope"), generator(3)).eval()  # type: ignore[arg-type]
    pairs = sample_root_pairs(TASK, np.random.default_rng(2), 12)
    columns, subspace = find_columns(pairs, "query"), random_subspace(16, 5, generator(4))
    whole = swap_stream(model, pairs, 1, columns, subspace.swap)
    half = swap_stream(model.to(torch.bfloat16), pairs, 1, columns, subspace.swap)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole, atol=0.03 * float(whole.abs().max()), rtol=0)


def test_the_constructed_model_moves_values_in_its_value_subspace_alone(known: Known, root_pairs) -> None:
    _, pairs = root_pairs
    assert success(known.model, pairs, VALUE_AT_QUERY, "query", known.value.swap) == 1
    assert success(known.model, pairs, VALUE_AT_QUERY, "query", known.value.swap_rest) == 0
    assert success(known.model, pairs, VALUE_AT_QUERY, "query", known.letters.swap) == 0
    assert success(known.model, pairs, VALUE_AT_QUERY, "colon", known.value.swap) == 0
    for seed in range(3):
        drawn = random_subspace(known.model.config.d_model, known.value.rank, generator(seed))
        assert success(known.model, pairs, VALUE_AT_QUERY, "query", drawn.swap) < 0.1


def test_the_constructed_model_asks_for_the_letter_that_stands_at_the_query(known: Known, name_pairs) -> None:
    _, pairs = name_pairs
    assert success(known.model, pairs, 1, "query", known.letters.swap) == 1
    assert success(known.model, pairs, 1, "query", known.value.swap) == 0
    assert success(known.model, pairs, 1, "query", known.letters.swap_rest) == 0
    assert success(known.model, pairs, VALUE_AT_QUERY, "query", known.letters.swap) == 0


def test_a_changed_reference_is_followed_through_the_letter_subspace(known: Known) -> None:
    pairs = sample_name_pairs(TASK, np.random.default_rng(3), 60, change="reference")
    assert success(known.model, pairs, 1, "changed", known.letters.swap) == 1
    assert success(known.model, pairs, 1, "changed", known.name.swap) == 0


def test_labels_say_what_stands_where(root_pairs) -> None:
    pairs, _ = root_pairs
    for name, columns in named_columns(pairs).items():
        values = label_columns(pairs.base, columns, "values")
        names = label_columns(pairs.base, columns, "names")
        assert ((values < 0) == (columns < 0)).all()
        if name not in ("distractor",):
            assert (np.where(columns < 0, pairs.base_answers[:, None], values) == pairs.base_answers[:, None]).all()
        for row in range(10):
            program = Program.from_tokens(pairs.base_tokens[row])
            lines = program.chain[::-1]  # from the root on
            if name in ("query", "colon"):
                assert names[row, 0] == ord(program.query) - ord("a")
            if name == "lhs 2" and program.depth == 2:
                assert names[row, 0] == ord(program.assignments[lines[1] - 1].variable) - ord("a")
            if name == "rhs 2" and program.depth == 2:
                assert names[row, 0] == ord(program.assignments[lines[0] - 1].variable) - ord("a")


def test_places_and_layers_that_do_not_exist_are_refused(known: Known, root_pairs) -> None:
    pairs, _ = root_pairs
    with pytest.raises(BindscopeError, match=r"position 'quer': unknown. Did you mean 'query'\?"):
        find_columns(pairs, "quer")
    with pytest.raises(
        BindscopeError, match="layer 5: the model has layers 0 to 3; 4 is the residual stream that leaves"
    ):
        read_stream(known.model, pairs.base_tokens, 5, find_columns(pairs, "query"))
    with pytest.raises(BindscopeError, match="values or names"):
        label_columns(pairs.base, find_columns(pairs, "query"), "digits")  # type: ignore[arg-type]
