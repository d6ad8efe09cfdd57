"""Fixed datasets: disjoint, reproducible, and read back as they were drawn; loaders as functions of seed and step."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import PAPER_SPLITS, BindingDataset, BindingTask, make_splits, parse_program
from bindscope.tasks.binding.dataset import hash_rows
from bindscope.tasks.loading import EpochLoader, StreamLoader

SIZES = {"train": 3000, "validation": 100, "test": 400}


def program_lines(dataset: BindingDataset, n_lines: int) -> list[bytes]:
    return [row[: 4 * n_lines].tobytes() for row in dataset.tokens]


@pytest.mark.parametrize("lines", [2, 16])
def test_no_program_is_in_two_splits_or_twice_in_one(lines: int) -> None:
    # 2 lines: few enough programs that independent draws would collide
    splits = make_splits(BindingTask(lines=lines), seed=0, sizes=SIZES)
    assert {name: len(split) for name, split in splits.items()} == SIZES
    rows = [row for split in splits.values() for row in program_lines(split, lines)]
    assert len(set(rows)) == sum(SIZES.values())


def test_independent_draws_of_short_programs_do_collide() -> None:
    tokens = BindingTask(lines=2).sample_batch(np.random.default_rng(0), sum(SIZES.values())).tokens
    assert len({row[:8].tobytes() for row in tokens}) < sum(SIZES.values())


def test_the_same_seed_gives_the_same_data_and_hash() -> None:
    first, again, other = (make_splits(BindingTask(lines=5), seed, SIZES)["train"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.tokens, again.tokens)
    assert first.content_hash == again.content_hash != other.content_hash
    assert first.tokens.dtype == np.uint8


def test_the_hash_tells_a_single_changed_token() -> None:
    dataset = make_splits(BindingTask(lines=5), 1, SIZES)["test"]
    tokens = dataset.tokens.copy()
    tokens[7, 2] ^= 1
    assert BindingDataset(tokens).content_hash != dataset.content_hash


@pytest.mark.parametrize("n_queries", [1, 3])
def test_a_batch_of_the_dataset_has_true_answers_and_labels(n_queries: int) -> None:
    task = BindingTask(lines=8)
    dataset = make_splits(task, 0, SIZES, n_queries)["validation"]
    indices = np.array([4, 0, 99, 4])
    batch = dataset.batch(indices)
    np.testing.assert_array_equal(batch.tokens, dataset.tokens[indices])
    assert batch.tokens.dtype == batch.targets.dtype == np.int64
    for row in range(4):
        for query in range(n_queries):
            block = slice(32 + 3 * query, 35 + 3 * query)
            tokens = [*batch.tokens[row, :32], *batch.tokens[row, block]]
            program = parse_program("".join(task.vocabulary.decode(tokens)))
            assert batch.targets[row, query] == program.answer
            assert batch.labels["depth"][row, query] == program.depth
            assert batch.labels["root_line"][row, query] == program.root_line


def test_held_out_combinations_stay_out_of_fixed_data() -> None:
    task = BindingTask(lines=6, held_out=0.3)
    batch = make_splits(task, 0, SIZES)["train"].batch(np.arange(3000))
    queried = batch.tokens[:, -2] - 10
    assert not task.held_out_combinations[queried, batch.targets[:, 0]].any()


def test_a_language_with_too_few_programs_is_an_error() -> None:
    task = BindingTask(lines=2, n_variables=2, n_constants=2)  # 2 × 2 × (2 + 1) programs
    assert len(make_splits(task, 0, {"train": 12})["train"]) == 12
    with pytest.raises(BindscopeError, match="13 different programs of 2 lines were asked for and only about 12"):
        make_splits(task, 0, {"train": 13})


def test_a_fixed_dataset_has_one_length() -> None:
    with pytest.raises(BindscopeError, match="min_lines"):
        make_splits(BindingTask(min_lines=2), 0, SIZES)
    with pytest.raises(BindscopeError, match="must not be negative"):
        make_splits(BindingTask(), -1, SIZES)


def test_the_papers_splits_make_half_a_million() -> None:
    assert sum(PAPER_SPLITS.values()) == 500_000


def test_row_hashes_differ_where_rows_differ() -> None:
    rows = np.random.default_rng(0).integers(0, 40, (5000, 13)).astype(np.uint8)
    changed = rows.copy()
    changed[np.arange(5000), np.arange(5000) % 13] += 1
    hashes = np.concatenate([hash_rows(rows), hash_rows(changed)])
    assert len(np.unique(hashes)) == len(np.unique(np.concatenate([rows, changed]), axis=0))
    np.testing.assert_array_equal(hash_rows(rows[::-1]), hash_rows(rows)[::-1])


def test_a_stream_is_a_function_of_seed_and_step() -> None:
    task = BindingTask(lines=6, queries=2, min_lines=2, balance="weights")
    forwards = [StreamLoader(task, 5, 4).batch(step).tokens for step in range(6)]
    loader = StreamLoader(task, 5, 4)
    for step in reversed(range(6)):
        np.testing.assert_array_equal(loader.batch(step).tokens, forwards[step])
    assert not np.array_equal(
        StreamLoader(BindingTask(), 5, 4).batch(0).tokens, StreamLoader(BindingTask(), 6, 4).batch(0).tokens
    )


def test_each_epoch_shows_every_example_once_in_a_new_order() -> None:
    dataset = make_splits(BindingTask(lines=6), 0, {"train": 120})["train"]
    loader = EpochLoader(dataset, seed=0, batch_size=30)
    assert loader.steps_per_epoch == 4
    everything = {row.tobytes() for row in dataset.tokens.astype(np.int64)}
    epochs = [np.concatenate([loader.batch(4 * epoch + step).tokens for step in range(4)]) for epoch in range(2)]
    for rows in epochs:
        assert {row.tobytes() for row in rows} == everything
    assert not np.array_equal(*epochs)
    fresh = EpochLoader(dataset, seed=0, batch_size=30)
    np.testing.assert_array_equal(fresh.batch(6).tokens, loader.batch(6).tokens)
    other = EpochLoader(dataset, seed=1, batch_size=30)
    assert not np.array_equal(other.batch(6).tokens, loader.batch(6).tokens)


def test_an_incomplete_last_batch_is_left_out_of_its_epoch() -> None:
    dataset = make_splits(BindingTask(lines=6), 0, {"train": 100})["train"]
    loader = EpochLoader(dataset, seed=0, batch_size=30)
    assert loader.steps_per_epoch == 3
    assert all(len(loader.batch(step)) == 30 for step in range(7))


@pytest.mark.parametrize(
    ("seed", "batch_size", "message"), [(-1, 4, "seed"), (0, 0, "at least 1"), (0, 13, "12 examples")]
)
def test_loaders_refuse_what_they_cannot_do(seed: int, batch_size: int, message: str) -> None:
    dataset = make_splits(BindingTask(lines=6), 0, {"train": 12})["train"]
    with pytest.raises(BindscopeError, match=message):
        EpochLoader(dataset, seed, batch_size)
