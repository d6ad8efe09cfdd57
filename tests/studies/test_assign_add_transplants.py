"""AA10: fractions of a jump against known ones, ablations and variables against loops, the judge on datasets we write."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.interventions.transplant import list_parts
from bindscope.measures.arithmetic.asked import ask_splits
from bindscope.measures.arithmetic.by_variable import (
    OPERANDS,
    ask_by_variable,
    ask_one_variable,
    look_at_operands,
    right_by_variable,
    shown_in_training,
)
from bindscope.measures.arithmetic.circuit_ablations import measure_ablations
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.spike_transplants import CONTROLLED, DIRECTIONS, N_RANDOM, ROWS
from bindscope.measures.transplanting import label_transplants, measure_transplants
from bindscope.model.config import InitConfig
from bindscope.model.convert import load_checkpoint
from bindscope.model.run import run as run_model
from bindscope.model.transformer import Transformer
from bindscope.studies.assign_add.learning.spikes import find_windows
from bindscope.studies.assign_add.transplants.judge import AA10
from bindscope.studies.assign_add.transplants.measure import (
    compute_by_variable,
    compute_part_ablations,
    compute_transplants,
)
from bindscope.studies.framework.preset import model_for
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.plots.style import save_figure
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask

TASK = AssignAddTask(modulus=5, n_variables=4)
SHARED = Path(os.environ.get("BINDSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
CHECKPOINTS, NOTES = SHARED / "data" / "assign_and_add", SHARED / "papers" / "assign-and-add.md"


def make_model(seed: int = 0) -> Transformer:
    shape = dict(n_layers=2, n_heads=1, d_model=24, d_head=16, d_mlp=48, activation="relu", positions="learned",
                 norm="none", bias=False, mlp_layers=(1,), init=InitConfig(scheme="gpt2", std=0.25))  # fmt: skip
    return Transformer(model_for(TASK, **shape), torch.Generator().manual_seed(seed)).eval()


@pytest.fixture(scope="module")
def models() -> dict[int, Transformer]:
    """A model untrained and after some seconds of training, enough to add two numbers."""
    model, rng = make_model(), np.random.default_rng(0)
    found = {0: make_model()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(1, 161):
        batch = TASK.sample_batch(rng, 128)
        at = torch.from_numpy(batch.target_positions)
        logits = model(torch.from_numpy(batch.tokens), batch.layout, at)[:, 0]
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.targets[:, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (80, 160):
            found[step * 10] = make_model()
            found[step * 10].load_state_dict(model.state_dict())
    return found


@pytest.fixture(scope="module")
def made_run(models) -> SimpleNamespace:
    """A run of these models whose evaluations, as written here, jump between the last two."""
    names = {"0tr": 1.0, "0add": 1.0}
    records = []
    for step, level in ((0, 0.2), (800, 0.2), (1600, 0.9)):
        splits = {name: {"n": 100, "accuracy": names.get(name, level), "loss": 1.0} for name in SPLIT_NAMES}
        splits["0add"] |= {"swap_seen": {"n": 50, "accuracy": 1.0}, "both_held": {"n": 50, "accuracy": 1.0}}
        records.append({"step": step, **splits, "watched": {}})
    kept = {step: SimpleNamespace(sha256=f"hash {step}") for step in models}
    return SimpleNamespace(
        metrics=records,
        steps=tuple(models),
        checkpoint=models.__getitem__,
        config=SimpleNamespace(task=TASK),
        manifest=SimpleNamespace(checkpoints=kept),
    )


def test_fractions_are_of_the_way_from_receiver_to_donor_where_they_differ():
    n = 400
    receiver, donor = np.zeros(2 * n, bool), np.zeros(2 * n, bool)
    donor[: n // 2] = True  # the first split jumps by half, the second not at all
    halfway, overshoot = donor.copy(), np.ones(2 * n, bool)
    halfway[: n // 4] = False
    splits = {"jumps": slice(0, n), "stays": slice(n, 2 * n)}
    changed = np.array([receiver, halfway, donor, overshoot])
    dataset = label_transplants(["none", "half", "all", "more"], receiver, donor, changed, splits)
    np.testing.assert_allclose(dataset.fraction.sel(split="jumps"), [0, 0.5, 1, 2])
    np.testing.assert_allclose(dataset.total_fraction, [0, 0.5, 1, 2])
    assert np.isnan(dataset.fraction.sel(split="stays")).all()
    half = dataset.sel(part="half")
    assert 0.40 < float(half.total_fraction_low) < 0.46
    assert 0.54 < float(half.total_fraction_high) < 0.60
    assert float(dataset.total_fraction_low.sel(part="all")) == 1
    np.testing.assert_allclose(dataset.accuracy.sel(split="jumps"), [0, 0.25, 0.5, 1])


def test_a_fall_counts_as_the_way_too():
    receiver, donor = np.ones(100, bool), np.zeros(100, bool)
    rise = np.concatenate([receiver, donor]), np.concatenate([donor, receiver])
    changed = np.array([rise[1], rise[0]])
    splits = {"falls": slice(0, 100), "rises": slice(100, 200)}
    dataset = label_transplants(["donor", "receiver"], *rise, changed, splits)
    np.testing.assert_allclose(dataset.total_fraction, [1, 0])
    halves = np.array([np.concatenate([receiver, receiver])])  # the one that rises has risen, the other has not fallen
    for counted, fraction in ((None, 0.5), (("rises",), 1), (("falls",), 0)):
        assert label_transplants(["half"], *rise, halves, splits, counted=counted).total_fraction.item() == fraction


def test_everything_goes_the_whole_way_and_nothing_none_of_it(models):
    asked = ask_splits(TASK, np.random.default_rng(0), 60)
    dataset = measure_transplants(models[0], models[1600], ["nothing", "everything", "routing + computing"], asked)
    assert float(dataset.donor_accuracy.sel(split="0tr")) > float(dataset.receiver_accuracy.sel(split="0tr")) + 0.3
    np.testing.assert_allclose(dataset.total_fraction, [0, 1, 1], atol=1e-12)
    assert asked.batch.labels["n_variables"][asked.splits["2add"]].min() == 2


def test_windows_are_the_kept_steps_around_a_spike_and_far_ones_are_none(made_run):
    (window,) = find_windows(made_run)
    assert (window.before, window.after, window.earlier, window.spike.number) == (800, 1600, 0, 1)
    thinned = SimpleNamespace(**{**vars(made_run), "steps": (0, 1600)})
    assert [(window.before, window.after, window.earlier) for window in find_windows(thinned)] == [(0, 1600, None)]
    gone = SimpleNamespace(**{**vars(made_run), "steps": (0, 800)})
    assert find_windows(gone) == []
    assert find_windows(SimpleNamespace(**{**vars(made_run), "metrics": []})) == []


def test_transplants_of_a_run_hold_both_directions_and_controls(made_run):
    dataset = compute_transplants(Context(made_run, n=30))
    assert dataset.total_fraction.dims == ("spike", "direction", "part")
    assert list(dataset.direction.values) == list(DIRECTIONS)
    assert list(dataset.part.values) == list(ROWS)
    assert dataset.random_draws.sizes == {"spike": 1, "controlled": 2, "draw": N_RANDOM}
    assert float(dataset.random_draws.sel(controlled="routing").std()) > 0  # each a draw of its own
    np.testing.assert_allclose(dataset.total_fraction.sel(part="everything"), 1, atol=1e-6)
    np.testing.assert_allclose(
        dataset.fraction.sel(part="everything").stack(cell=("direction", "split")).dropna("cell"), 1
    )
    assert (dataset.kind == "pattern").sum() == 3
    assert np.isfinite(dataset.random_fraction).all()
    assert np.isfinite(dataset.drift_fraction).all()
    assert str(dataset.focus_variable.values[0]) in "abcd"
    assert str(dataset.focus_operand.values[0]) in OPERANDS
    with pytest.raises(NotTestable, match="no spike"):
        compute_transplants(Context(SimpleNamespace(**{**vars(made_run), "steps": (0,)}), n=30))


def test_accuracy_by_variable_is_that_of_a_loop_over_the_sums(models):
    sums = ask_by_variable(TASK, np.random.default_rng(1), 20)
    hits, n = right_by_variable(models[1600], sums, TASK)
    expected = np.zeros((2, TASK.n_variables, 2), int)
    for tokens, answer in zip(sums.tokens, sums.targets[:, 0]):
        operands = TASK.locate(tokens).operands
        (operand,) = [operand for operand in (0, 1) if operands[operand].variable]
        variable = "abcd".index(str(operands[operand].variable))
        given = run_model(models[1600], torch.from_numpy(tokens[None])).logits[0, -1].argmax()
        expected[:, variable, operand] += (int(given == answer), 1)
    np.testing.assert_array_equal([hits, n], expected)
    assert n.min() > 5
    asked = ask_one_variable(TASK, np.random.default_rng(2), 15, variable=1, operand="second")
    assert len(asked) == 15
    assert {TASK.locate(row).operands[1].variable for row in asked.tokens} == {"b"}
    assert [str(name) for name in np.array([*"abcd"])[~shown_in_training(TASK)[:, 1]]] == ["a", "b"]


def test_where_equals_looks_is_read_off_the_weights_and_off_the_run(models):
    model = make_model(3)
    sums = ask_by_variable(TASK, np.random.default_rng(1), 10)
    with torch.no_grad():
        model.pos_embed[13] = model.pos_embed[14]
    score, _ = look_at_operands(model, sums, TASK)
    assert score[0] == pytest.approx(score[1])
    with torch.no_grad():
        query = (model.W_E[TASK.sequences.equals_token] + model.pos_embed[15]) @ model.layers[0].attention.W_Q[0]
        model.pos_embed[13] += 40 * query @ model.layers[0].attention.W_K[0].T
    score, attention = look_at_operands(model, sums, TASK)
    assert score[0] > score[1] + 1
    assert attention[0] > attention[1] + 0.3


def test_by_variable_and_its_growth_keep_what_was_measured(made_run):
    dataset = compute_by_variable(Context(made_run, n=8))
    assert dataset.accuracy.sizes == {"step": 3, "variable": 4, "operand": 2}
    assert int(dataset.restricted.sum()) == 4
    known = dataset.copy(deep=True)
    known["hits"][1] = 0
    again = compute_by_variable(Context(made_run, n=8, before=known))
    assert float(again.accuracy[1].max()) == 0
    xr.testing.assert_equal(again.accuracy[2], dataset.accuracy[2])


def test_lesions_are_those_made_by_hand(models):
    model = models[1600]
    asked = ask_splits(TASK, np.random.default_rng(0), 25)
    dataset = measure_ablations(model, TASK, asked)
    forms = SumForms.of(model, TASK)

    def accuracy(split: str, **cut) -> float:
        rows = asked.batch.tokens[asked.splits[split]]
        return float(np.mean([answer_by_hand(forms, row, **cut) == TASK.solve(row) for row in rows]))

    for split in ("0tr", "1tr", "2tr"):
        assert float(dataset.accuracy.sel(part="nothing", kind="zero", split=split)) == accuracy(split)
        for part, cut in (
            ("layer 1: = → 13", {"first": [(15, 13)]}),
            ("layer 1: = → 13 and 14", {"first": [(15, 13), (15, 14)]}),
            ("layer 1: number → its variable", {"variables": True}),
            ("layer 2: = → values", {"values": True}),
        ):
            assert float(dataset.accuracy.sel(part=part, kind="zero", split=split)) == accuracy(split, **cut), part
    assert np.isnan(dataset.accuracy.sel(part="layer 1: = → 13", kind="average")).all()
    assert np.isfinite(dataset.accuracy.sel(part="MLP at =", kind="average")).all()
    assert set(dataset.part.values[dataset.control.values]) == {
        "layer 1: = → elsewhere",
        "layer 2: = → elsewhere",
        "layer 1 output at operands",
    }


def answer_by_hand(forms: SumForms, tokens, first=(), variables=False, values=False) -> int:
    table = np.concatenate([forms.numbers, [forms.operator, forms.equals, forms.pad], forms.variables])
    x, hidden = table[tokens] + forms.positions, [np.triu(np.ones((16, 16), bool), 1) for _ in range(2)]
    for query, key in first:
        hidden[0][query, key] = True
    located = TASK.locate(tokens)
    for assignment in located.assignments if variables else ():
        hidden[0][assignment.value_position, assignment.position] = True
    for operand in located.operands if values else ():
        hidden[1][15, operand.value_position] = True
    for qk, ov, mask in ((forms.qk1, forms.ov1, hidden[0]), (forms.qk2, forms.ov2, hidden[1])):
        scores = np.where(mask, -np.inf, x @ qk @ x.T)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        x = x + weights / weights.sum(1, keepdims=True) @ x @ ov
    return int(((x + forms.mlp(x)) @ forms.unembed)[-1].argmax())


def test_part_ablations_of_a_run_name_their_step(made_run):
    dataset = compute_part_ablations(Context(made_run, n=8))
    assert dataset.attrs["step"] == 1600
    assert dataset.accuracy.sizes["split"] == 9


def written(
    n_spikes: int = 2,
    routing: float = 1.0,
    looking: float = 1.0,
    computing: float = 0.0,
    random: float = 0.0,
    spread: float = 0.02,
    drift: float = 0.0,
    old: float = 0.02,
    new: float = 0.99,
    focus: tuple[str, str] = ("b", "second"),
    other: float = 1.0,
) -> dict[str, xr.Dataset]:
    """A run whose spikes we write."""
    spikes = list(range(1, n_spikes + 1))
    fraction = np.zeros((n_spikes, 2, len(ROWS)))
    for part, value in (("everything", 1.0), ("routing", routing), ("pattern 2", looking), ("computing", computing)):
        fraction[:, :, ROWS.index(part)] = value
    dims, cells = ("spike", "direction", "part"), np.repeat(fraction[..., None], 9, -1)
    variables: dict = {}
    for end, shift in (("", 0.0), ("_low", -0.05), ("_high", 0.05)):
        variables[f"total_fraction{end}"] = (dims, fraction + shift)
        variables[f"fraction{end}"] = ((*dims, "split"), cells + shift)
        variables[f"random_fraction{end}"] = (("spike", "part"), np.full((n_spikes, len(ROWS)), random + shift))
        variables[f"drift_fraction{end}"] = (("spike", "part"), np.full((n_spikes, len(ROWS)), drift + shift))
    draws = np.linspace(random - spread, random + spread, 20)
    variables["random_draws"] = (("spike", "controlled", "draw"), np.broadcast_to(draws, (n_spikes, 2, 20)))
    starts = [1000 * number for number in spikes]
    variables |= {"before_step": ("spike", starts), "after_step": ("spike", [step + 100 for step in starts])}
    variables |= {name: ("spike", [word] * n_spikes) for name, word in zip(("focus_variable", "focus_operand"), focus)}
    coordinates = {"spike": spikes, "direction": list(DIRECTIONS), "part": list(ROWS), "split": list(SPLIT_NAMES),
                   "controlled": list(CONTROLLED)}  # fmt: skip
    transplants = xr.Dataset(variables, coordinates, attrs={"run": "written", "n": 200})
    return {
        "transplants": transplants,
        "by_variable": _variables(old, new, focus, other),
        "part_ablations": _ablations(),
    }


def _variables(old: float, new: float, focus: tuple[str, str], other: float) -> xr.Dataset:
    task, steps = AssignAddTask(), [0, 1000, 1100, 2000, 2100]
    accuracy = np.ones((len(steps), task.n_variables, 2))
    operand = ("abcdefghijkl".index(focus[0]), OPERANDS.index(focus[1]))
    accuracy[:4, operand[0], operand[1]], accuracy[4, operand[0], operand[1]] = old, new
    accuracy[3, 0, 1] = other
    dims = ("step", "variable", "operand")
    looks = np.tile([0.1, 0.8], (len(steps), 1))
    return xr.Dataset(
        {
            **{f"accuracy{end}": (dims, accuracy) for end in ("", "_low", "_high")},
            "n": (dims[1:], np.full((task.n_variables, 2), 50)),
            "restricted": (dims[1:], ~shown_in_training(task)),
            "operand_attention": (("step", "position"), looks),
            "operand_score": (("step", "position"), looks),
        },
        {"step": steps, "variable": [*"abcdefghijkl"], "operand": list(OPERANDS), "position": [13, 14]},
    )


def _ablations() -> xr.Dataset:
    parts, kinds = ["nothing", "layer 1: = → 13", "layer 2: = → elsewhere"], ["zero", "average"]
    cells = np.full((3, 2, 9), 0.5)
    coordinates = {"part": parts, "kind": kinds, "split": list(SPLIT_NAMES), "control": ("part", [False, False, True])}
    return xr.Dataset({"accuracy": (("part", "kind", "split"), cells)}, coordinates, attrs={"step": 2100})


def test_both_spikes_carried_by_routing_and_one_last_variable_replicate():
    finding = AA10.judge(written())
    assert finding.verdict == "replicates", finding.reason
    assert "b as second operand" in finding.reason.lower()
    assert len(finding.control) == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"routing": 0.5}, "'routing' carries only 50 % [45–55]"),
        ({"looking": 0.3}, "'pattern 2' carries only 30 % [25–35]"),
        ({"computing": 0.6}, "compute carry 60 %"),
        ({"random": 0.5}, "control is not"),
        ({"drift": 0.9}, "control is not"),
        ({"drift": np.nan, "random": np.nan}, "control is not"),
        ({"old": 0.6}, "from 60 % [60–60] to 99 %"),
        ({"new": 0.5}, "from 2 % [2–2] to 50 %"),
        ({"focus": ("e", "first")}, "training does show"),
        ({"other": 0.3}, "a as second operand was not answered either"),
        ({"computing": -0.6}, "compute carry -60 %"),
    ],
)
def test_any_condition_that_fails_makes_the_run_differ_and_is_named(changes, words):
    finding = AA10.judge(written(**changes))
    assert finding.verdict == "differs"
    assert words in finding.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"routing": 0.82}, "'routing' carries 82 % [77–87] of spike 1"),
        ({"looking": 0.78}, "'pattern 2' carries 78 % [73–83] of spike 1"),
        ({"computing": 0.17}, "compute carry 17 % [12–22]"),
        ({"random": 0.1, "spread": 0.2}, "(20 draws"),
        ({"drift": 0.18}, "which may be too much"),
    ],
)
def test_intervals_that_span_a_threshold_are_inconclusive(changes, words):
    finding = AA10.judge(written(**changes))
    assert finding.verdict == "inconclusive", finding.reason
    assert words in f"{finding.reason} {finding.control[0].label}"


def test_a_variable_that_may_or_may_not_have_been_answered_is_inconclusive():
    results = written(other=0.82)
    by_variable = results["by_variable"] = results["by_variable"].copy(deep=True)
    where = {"step": 2000, "variable": "a", "operand": "second"}
    by_variable.accuracy_low.loc[where] = 0.7
    finding = AA10.judge(results)
    assert finding.verdict == "inconclusive"
    assert "perhaps a as second operand was not answered either" in finding.reason


def test_a_control_that_was_not_measured_is_not_told():
    assert "without a spike carry" in AA10.judge(written()).reason
    finding = AA10.judge(written(drift=np.nan))
    assert finding.verdict == "replicates", finding.reason
    assert "without a spike carry" not in finding.reason


def test_one_spike_is_not_enough_to_test():
    finding = AA10.judge(written(n_spikes=1))
    assert finding.verdict == "not testable"
    assert "one spike" in finding.reason
    assert finding.quantities


@pytest.mark.parametrize("n_spikes", [1, 2])
def test_the_figure_is_drawn(tmp_path, n_spikes):
    assert save_figure(AA10.draw(written(n_spikes=n_spikes)), tmp_path / "spikes.svg").stat().st_size > 10_000


@pytest.mark.skipif(not (CHECKPOINTS.is_dir() and NOTES.is_file()), reason="the released checkpoints are not here")
def test_in_the_released_run_the_second_spike_is_b_and_the_first_is_where_layer_two_looks():
    task, rng = AssignAddTask(), np.random.default_rng(0)
    found = re.search(r"b as second operand \.(\d+)–\.(\d+) until (\d+), \.(\d+) at (\d+)", NOTES.read_text())
    assert found is not None
    low, high, before, there, after = found.groups()
    sums = ask_one_variable(task, rng, 1000, variable=1, operand="second")
    fractions = {}
    for step in (before, after):
        hits, n = right_by_variable(
            load_checkpoint(CHECKPOINTS / f"checkpoint_step_{step}.pth", activation="relu", norm="none"), sums, task
        )
        fractions[step] = hits[1, 1] / n[1, 1]
    error = (
        4 * (0.04 * 0.96 * (1 / 1000 + 1 / 300)) ** 0.5
    )  # of both samples; the notes do not say how large theirs was
    assert float(f".{low}") - error <= fractions[before] <= float(f".{high}") + error
    assert fractions[after] == pytest.approx(float(f".{there}"), abs=0.05)
    models = [
        load_checkpoint(CHECKPOINTS / f"checkpoint_step_{step}.pth", activation="relu", norm="none")
        for step in (5301, 5401)
    ]
    dataset = measure_transplants(*models, ["pattern 2", "computing", "QK1"], ask_splits(task, rng, 150))
    there, computing, qk1 = dataset.total_fraction.values
    assert there > 0.85
    assert abs(computing) < 0.15
    assert qk1 < 0.3
    scores = [look_at_operands(model, sums, task)[0] for model in models]
    assert scores[0][1] - scores[0][0] > 3
    assert abs(scores[1][1] - scores[1][0]) < 1
    assert "pattern 2" in list_parts(models[0].config)
