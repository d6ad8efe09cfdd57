"""What a plan says before is what measuring takes afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import xarray as xr

from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.studies.framework.plan import LiveMemory, forward_flops, measure_work, plan_results
from bindscope.studies.framework.results import Context, Library, Result, every_step, last_step
from bindscope.studies.framework.verify import find_study
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("plan") / "made")


def answer_all(context: Context) -> xr.Dataset:
    """The plainest result: one forward pass of each of n sequences at each checkpoint."""
    batch = context.run.config.task.sample_batch(context.rng, context.n)
    right = []
    for step in context.run.steps:
        model, tokens = context.run.checkpoint(step), torch.as_tensor(batch.tokens)
        whole = torch.nn.functional.pad(tokens, (0, context.run.config.model.n_positions - tokens.shape[1]))
        with torch.no_grad():
            right.append(float(model(whole).mean()))
    return xr.Dataset({"mean": ("step", right)}, {"step": list(context.run.steps)})


PLAIN = Result("plain", "answering", answer_all, n=64, steps=every_step)


def plan_of(run: Run, name: str, folder: Path, n: int | None = None) -> tuple[float, float, float]:
    library = Library(run, (*find_study("binding").results, PLAIN), folder, n=n)
    plan = plan_results(library, [name])[-1]
    assert plan.state == "to be measured"
    assert plan.work is not None
    return plan.passes, plan.work.flops, plan.work.memory


def test_forward_passes_are_counted_as_the_model_makes_them(
    made: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, flops, _ = plan_of(made, "plain", tmp_path)
    rows: list[int] = []
    forward = Transformer.forward

    def counted(self: Transformer, tokens: torch.Tensor, *more: object, **options: object) -> object:
        rows.append(len(tokens))
        return forward(self, tokens, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Transformer, "forward", counted)
    _, really = measure_work(answer_all, Context(made, 64))
    assert sum(rows) == 64 * len(made.steps)
    assert passes == pytest.approx(sum(rows), rel=1e-6)
    assert flops == pytest.approx(really.flops, rel=1e-6)


@pytest.mark.parametrize("name", ["chain", "algorithm"])
def test_a_patch_grid_takes_what_its_plan_says(name: str, made: Run, tmp_path: Path) -> None:
    n = 128 if name == "chain" else 32
    passes, flops, memory = plan_of(made, name, tmp_path, n)
    result = next(each for each in find_study("binding").results if each.name == name)
    _, really = measure_work(result.compute, Context(made, n))
    assert flops == pytest.approx(really.flops, rel=0.2)
    assert passes == pytest.approx(really.flops / forward_flops(made), rel=0.2)
    assert really.memory / 1.5 < memory < really.memory * 2.5
    assert not list(tmp_path.iterdir())  # a trial saves nothing


def test_operations_of_a_matrix_product_are_two_for_each_multiplication() -> None:
    _, work = measure_work(torch.mm, torch.zeros(3, 5), torch.zeros(5, 7))
    assert work.flops == 2 * 3 * 5 * 7


def test_operations_of_a_forward_pass_are_those_counted_by_hand(made: Run) -> None:
    config = made.config.model
    n, width = config.n_positions, config.n_heads * config.d_head
    by_layer = 4 * n * config.d_model * width + 2 * n * n * width  # projections; scores and mixing
    mlps = len(config.layers_with_mlp) * 2 * n * config.d_model * config.d_mlp
    unembed = n * config.d_model * config.outputs
    assert forward_flops(made) == 2 * (config.n_layers * by_layer + mlps + unembed)


def test_live_memory_is_the_most_that_was_held_at_once() -> None:
    with LiveMemory() as memory:
        for _ in range(5):
            kept = torch.zeros(1000) + 1  # two tensors of 4,000 bytes at once, five times over
        del kept
    assert memory.most in (8000, 12000)  # the one of the round before may still be there
    assert memory.now == 0


def test_what_is_saved_is_not_planned_again_and_checkpoints_that_are_known_are_not_counted(
    made: Run, tmp_path: Path
) -> None:
    library = Library(made, find_study("binding").results, tmp_path, n=16)
    library.fill("chain")
    again = Library(made, find_study("binding").results, tmp_path, n=16)
    states = {plan.name: plan.state for plan in plan_results(again, ["trajectory", "chain", "emergence"])}
    assert (states["chain"], states["emergence"]) == ("saved", "to be measured")
    assert states["trajectory"] == "saved"


def test_why_nothing_can_be_told_is_said(made: Run, tmp_path: Path) -> None:
    from bindscope.errors import BindscopeError

    def refuse(context: Context) -> xr.Dataset:
        raise BindscopeError("too few")

    library = Library(made, (Result("r", "", refuse, n=64, steps=last_step),), tmp_path)
    (plan,) = plan_results(library, ["r"])
    assert (plan.state, plan.reason) == ("cannot be told", "a trial on few examples: too few")


def test_a_trial_that_takes_too_long_is_ended_and_gives_a_lower_bound(made: Run, tmp_path: Path) -> None:
    asked: list[int] = []

    def never_end(context: Context) -> xr.Dataset:
        asked.append(context.n)
        while True:
            torch.zeros(8, 8) @ torch.zeros(8, 8)

    results = (
        Result("endless", "", never_end, n=64, steps=last_step),
        Result("after", "", answer_all, n=64, steps=last_step, needs=("endless",)),
    )
    endless, after = plan_results(Library(made, results, tmp_path), ["after"], most_seconds=0.2)
    assert asked == [8]  # one trial, on few examples
    assert (endless.state, endless.at_least) == ("to be measured", True)
    assert endless.work is not None
    assert endless.work.flops > 0
    assert endless.work.seconds >= 0.2
    assert after.state == "cannot be told"
    assert "ended after 0.2 s" in after.reason


def test_a_result_that_needs_more_examples_is_tried_on_more(made: Run, tmp_path: Path) -> None:
    from bindscope.errors import BindscopeError

    def refuse_few(context: Context) -> xr.Dataset:
        if context.n < 16:
            raise BindscopeError("too few")
        return answer_all(context)

    library = Library(made, (Result("r", "", refuse_few, n=64, steps=every_step),), tmp_path)
    passes, _, _ = plan_of(made, "plain", tmp_path)
    (plan,) = plan_results(library, ["r"])
    assert plan.state == "to be measured"
    assert plan.passes == pytest.approx(passes, rel=1e-6)
