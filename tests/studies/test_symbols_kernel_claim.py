"""AS13: verdicts on made-up results, rank correlations over n that are known as bounds, and what its tasks are."""

import numpy as np
import pytest

from bindscope.measures.stats.ranks import compare, rank_tasks
from bindscope.studies.framework.experiments import find_experiment, plan_cells, save_experiment_dataset
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.symbols.kernel.define import TASKS, find_task
from bindscope.studies.symbols.kernel.draw import draw_kernel_claim, draw_learnability
from bindscope.studies.symbols.kernel.judge import judge_kernel
from bindscope.studies.symbols.kernel.learnability import (
    conclude_learnability,
    describe_kernel,
    exactly,
    half_sizes,
    kernel_settings,
    kernels_of,
    measure_kernels,
    rank_predictors,
    ridge_bounds,
)
from bindscope.studies.symbols.kernel.measure import compute_learnability
from bindscope.tasks.templates import TemplateTask
from bindscope.theory.kernel_ridge import ridge_generalises
from studies.made_learnability import LAMBDAS, SIZES, made_kernel, made_learnability

COARSE = {"points": 32, "inner_points": 8, "randomisations": 8}


def judge(kernel=None, trained=None):
    return judge_kernel({"kernel": kernel or made_kernel(), "learnability": trained or made_learnability()})


def test_ridge_regression_that_learns_what_n_allows_replicates():
    finding = judge()
    assert finding.verdict == "replicates"
    quantities = {quantity.label: quantity for quantity in finding.quantities}
    assert quantities["smallest λ"].value == pytest.approx(6e-4)
    assert quantities["τ of 1/λ, the smallest eigenvalue of N and a trained transformer's n of half loss"].value == 1
    assert "Trained transformers halve their loss in 6 of 6 learnable tasks" in finding.reason
    assert "end at 1.05 or more where N is singular" in finding.reason


def test_a_learnable_task_that_is_not_learned_differs():
    finding = judge(made_kernel(abc_aba=[1.0, 1.0, 0.9, 0.8]))
    assert finding.verdict == "differs"
    assert "has not halved its error on ABC/ABA" in finding.reason


def test_an_unlearnable_task_that_is_learned_differs():
    finding = judge(made_kernel(aab_aba_unordered=[1.0, 0.9, 0.6, 0.3]))
    assert finding.verdict == "differs"
    assert "AAB/ABA, no positions is answered better than N allows: 0.70 below its floor" in finding.reason


def test_shuffled_labels_that_are_learned_break_the_control():
    finding = judge(made_kernel(shuffled=0.3))
    assert finding.verdict == "differs"
    assert finding.reason.startswith("The criterion is met, but its control is not: With shuffled labels")


def changed(task, loss, split="test"):
    """Trained transformers with other losses on one task."""
    trained = made_learnability().copy(deep=True)
    trained.last_loss.loc[{"variant": trained.task.values == task, "split": split}] = loss
    return trained


@pytest.mark.parametrize(
    ("trained", "verdict", "words"),
    [
        (changed("abc-aba", 0.8), "inconclusive", "in 1 of 6 learnable tasks (ABC/ABA)"),
        (changed("aab-aba-unordered", 0.6), "differs", "a transformer is 0.40 below the floor of N"),
        (changed("aab-aba-unordered", 1.0, "train"), "differs", "training itself fails"),
        (changed("aab-aba-unordered", np.nan), "inconclusive", "trained on 1 tasks that N cannot hold"),
    ],
)
def test_trained_transformers_are_judged_too(trained, verdict, words):
    finding = judge(trained=trained)
    assert finding.verdict == verdict, finding.reason
    assert words in finding.reason


def test_without_tasks_of_both_kinds_nothing_can_be_said():
    kernel = made_kernel()
    finding = judge(kernel.sel(task=kernel.task.values[:-1]))
    assert finding.verdict == "not testable"
    assert "6 tasks to be learnable and 1 not to be" in finding.reason


def test_without_a_trained_experiment_the_result_says_how_to_train_it(tmp_path, monkeypatch):
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path)
    with pytest.raises(NotTestable, match="bindscope experiment learnability"):
        compute_learnability(Context(None, runs_directory=tmp_path))


def test_curves_of_other_experiments_join_under_their_task(tmp_path, monkeypatch):
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path)
    made = made_learnability().assign(status=(("variant", "seed"), np.full((40, 2), "finished")))
    own = made.isel(variant=np.flatnonzero(made.task.values != "aba-abb"))
    save_experiment_dataset(own, tmp_path / "experiment-learnability" / "learnability.nc")
    other = made.isel(variant=np.flatnonzero(made.task.values == "aba-abb")).drop_vars("task")
    other = other.assign_coords(variant=[f"plain-{n}" for n in other.n.values])
    save_experiment_dataset(other, tmp_path / "experiment-aba-abb" / "aba-abb.nc")
    joined = compute_learnability(Context(None, runs_directory=tmp_path))
    assert {task: size.n for task, size in half_sizes(joined).items()} == pytest.approx(
        {task: size.n for task, size in half_sizes(made).items()}
    )


def test_order_is_known_only_where_bounds_do_not_overlap():
    bounds = np.array([[10, 10], [30, 30], [64, np.inf], [64, np.inf], [0, 20], [20, 20]])
    assert compare(bounds)[2].tolist() == [1, 1, 0, 0, 1, 1]
    assert compare(bounds)[4].tolist() == [0, -1, -1, -1, 0, -1]


def test_without_bounds_tau_is_kendalls():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 9))
    signs = [np.sign((first[i] - first[j]) * (second[i] - second[j])) for i in range(9) for j in range(i)]
    found = rank_tasks("", dict(zip("abcdefghi", first)), exactly(dict(zip("abcdefghi", second))))
    assert found.tau == pytest.approx(np.mean(signs))


def test_a_rank_correlation_of_unrelated_numbers_is_one_of_chance():
    numbers = dict(zip("abcdefgh", [3, 1, 4, 8, 5, 9, 2, 6]))
    ordered = {name: (float(value), float(value)) for name, value in numbers.items()}
    certain = rank_tasks("smallest", numbers, ordered)
    assert (certain.tau, certain.low, certain.high) == (1, 1, 1)
    assert certain.by_chance < 0.01
    loose = rank_tasks("smallest", numbers, dict(zip("abcdefgh", [(v, v) for v in (5.0, 2, 7, 1, 8, 3, 6, 4)])))
    assert loose.low < 0 < loose.high
    assert loose.by_chance > 0.2
    assert rank_tasks("smallest", numbers, {"a": (1.0, 1.0)}) is None


def test_needs_are_read_from_curves_and_bounded_where_they_end():
    kernel = made_kernel(abcd_abca=[1.0, 0.9, 0.8, 0.7], xa_ya=[0.1, 0.0, 0.0, 0.0])
    bounds = ridge_bounds(kernel)
    assert bounds["abcd-abca"] == (1024, np.inf)
    assert bounds["xa-ya"] == (0, 16)
    low, high = bounds["aba-abb"]
    first, second = (made_kernel().ridge_error.sel(task="aba-abb", seed=0, n=n).item() for n in (16, 64))
    assert low == high == pytest.approx(16 * 4 ** ((first - 0.5) / (first - second)))


def test_transformers_that_need_more_where_lambda_is_larger_turn_the_sign():
    kernels = kernels_of(made_kernel().sel(beta=3.0))
    for need_of, sign in ((lambda smallest: 0.6 / smallest, 1), (lambda smallest: 4000 * smallest**0.5, -1)):
        sizes = {task: size.bounds for task, size in half_sizes(made_learnability(need_of)).items()}
        smallest = rank_predictors(kernels, sizes)[0]
        assert (smallest.n_tasks, np.sign(smallest.tau)) == (6, sign)


@pytest.mark.parametrize("task", ["aab-aba-unordered", "aa-ab-unordered", "tag"])
def test_what_the_kernel_says_is_what_a_plain_computation_says(task):
    task = find_task(task)
    found = describe_kernel(task, kernel_settings(task, **COARSE))
    if task.name == "aab-aba-unordered":
        assert (found["verdict"], found["floor"]) == ("not learnable", pytest.approx(1))
        assert np.isinf(found["weighted"])
        return
    from bindscope.theory.kernel import template_kernel

    matrix = template_kernel(task.templates, kernel_settings(task, **COARSE)).matrix.value
    labels = np.array(task.labels)
    assert found["verdict"] == "learnable"
    assert found["smallest"] == pytest.approx(np.linalg.eigvalsh(matrix)[0])
    assert found["weighted"] == pytest.approx(labels @ np.linalg.solve(matrix, labels))


def test_shuffled_labels_teach_ridge_regression_nothing():
    task = TemplateTask(name="custom", templates=("AA", "AB"), labels=(1.0, -1.0))
    found = ridge_generalises(task, [16, 512], [0, 1], kernel_settings(find_task("same-different"), **COARSE))
    assert found.test_error.isel(n=-1).max() < 0.2
    assert found.shuffled_error.isel(n=-1).min() > 0.6


def test_tasks_are_valid_and_disjoint_and_trained_with_the_positions_they_say():
    experiment = find_experiment("learnability")
    first = {str(variant.labels["task"]): variant.name for variant in experiment.variants}
    for cell in plan_cells(experiment, [0], list(first.values())):
        task = find_task(str(experiment.find_variant(cell.variant).labels["task"]))
        assert cell.config.task.templates == task.templates
        assert cell.config.task.labels == task.labels
        assert (cell.config.model.positions == "none") == (not task.positions)
        assert np.mean(task.labels) == 0
        assert np.mean(np.square(task.labels)) == 1
    assert len({task.name for task in TASKS}) == len(TASKS)


def test_the_experiment_tells_and_draws_what_it_found(monkeypatch):
    monkeypatch.setattr(
        "bindscope.studies.symbols.kernel.learnability.kernel_settings", lambda task: kernel_settings(task, **COARSE)
    )
    known = {variant.name for variant in find_experiment("learnability").variants}
    dataset = made_learnability()
    dataset = dataset.sel(variant=[name for name in dataset.variant.values if name in known])
    cells = plan_cells(find_experiment("learnability"), [0], list(dataset.variant.values))
    dataset = dataset.merge(measure_kernels(dict.fromkeys(cells)), join="left")
    words = conclude_learnability(dataset)
    assert "AAAA/ABCD: λ = 0.00" in words
    assert "AAB/ABA, no positions: N singular; half the loss from n = transformer > " in words
    assert len(draw_learnability(dataset).axes) >= 2


def test_the_figure_has_a_curve_for_every_task():
    figure = draw_kernel_claim({"kernel": made_kernel(), "learnability": made_learnability()})
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(SIZES)]
    assert len(lines) == len(LAMBDAS)
