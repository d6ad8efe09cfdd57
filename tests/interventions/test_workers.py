"""Work shared among threads: the same results in the same order, and nothing more than was begun when nobody waits."""

from __future__ import annotations

import threading

import pytest
import torch

from bindscope.interventions.workers import map_in_order


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_pieces(n_workers: int) -> None:
    later_is_done = threading.Event()

    def square(number: int) -> int:
        if number == 0 and n_workers > 1:
            assert later_is_done.wait(60)  # the first piece is the last to be done
        if number == 1:
            later_is_done.set()
        return number**2

    assert list(map_in_order(square, range(20), n_workers)) == [number**2 for number in range(20)]


def test_pieces_that_are_not_begun_when_one_leaves_are_never_begun() -> None:
    begun, may_go_on = [], threading.Event()

    def work(piece: int) -> int:
        begun.append(piece)
        assert piece == 0 or may_go_on.wait(60)
        return piece

    results = map_in_order(work, range(100), 2)
    assert next(results) == 0
    threading.Timer(0.2, may_go_on.set).start()
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 5  # the one that was read, and at most two for each worker


def test_what_goes_wrong_in_a_worker_is_raised_where_its_result_is_read() -> None:
    results = map_in_order(lambda piece: 1 // piece, [1, 0, 1], 2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_workers_compute_with_one_thread_each_and_leave_the_setting_as_it_was() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert list(map_in_order(lambda _: torch.get_num_threads(), range(4), 2)) == [1] * 4
        assert torch.get_num_threads() == 2
        assert list(map_in_order(lambda _: torch.get_num_threads(), range(2), 1)) == [2, 2]
    finally:
        torch.set_num_threads(before)
