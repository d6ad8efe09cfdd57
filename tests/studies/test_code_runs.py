"""Language models on binding programs: what is measured equals running the model on the text, however it is tokenised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch

import bindscope
from bindscope.families import family_of
from bindscope.interventions.contrast import contrast_pairs
from bindscope.measures.binding.patching import Patch, patch_model
from bindscope.measures.binding.predictions import describe_outputs
from bindscope.measures.evaluation import read_answers
from bindscope.measures.lens import logit_lens
from bindscope.model.run import run as run_model
from bindscope.runs.adopt import adopt_checkpoints
from bindscope.runs.config import override
from bindscope.runs.directory import Run
from bindscope.studies.framework.presets import find_family_preset
from bindscope.tasks.binding import (
    Program,
    columns_of,
    named_positions,
    programs_of,
    read_pair,
    rows_of,
    sample_root_pairs,
    to_digits,
)
from bindscope.tasks.code import CodeTask
from interventions.naive import naive_logits, naive_outcomes, only
from studies.code_series import PADDED, write_series

PROGRAM, OTHER = "c=7;d=3;a=5;b=a;e=b;#e:", "c=7;d=3;a=8;b=a;e=b;#e:"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A linked series asked in the form 'let', whose pieces are several tokens, after one worked example."""
    folder = write_series(tmp_path_factory.mktemp("models") / "series")
    config = override(
        find_family_preset("code").config, {"name": "small", "task.lines": 5, "task.form": "let", "task.shots": 1}
    )
    files = {step: folder / f"step{step}" for step in (0, 10)}
    out = tmp_path_factory.mktemp("runs") / "small"
    return adopt_checkpoints(config, files, out, lambda task: lambda model: {"test": {}}, link=True)


@pytest.fixture(scope="module")
def task(run: Run) -> CodeTask:
    opened = Run.open(run.path).config.task  # from the manifest alone: no tokenizer lies in the run
    assert isinstance(opened, CodeTask)
    assert not list(run.path.rglob("tokenizer*"))
    return opened


def test_an_answer_is_the_next_token_after_the_text(run: Run, task: CodeTask) -> None:
    model, program = run.checkpoint("last"), task.read(PROGRAM)
    tokenizer = tokenizers.Tokenizer.from_file(
        str(Path(next(iter(run.manifest.data["files"].values()))) / "tokenizer.json")
    )
    tokens = torch.tensor([tokenizer.encode(task.text_of(program, answered=True)).ids[:-1]])
    expected = model(tokens)[0, -1].double().softmax(0).detach().numpy()
    found = bindscope.open_run(str(run.path)).predict(PROGRAM).probability.isel(step=0)
    for digit in range(10):
        blank = tokenizer.token_to_id(f"Ġ{digit}")
        np.testing.assert_allclose(found.sel(output=str(digit)), expected[blank], atol=1e-6)
    np.testing.assert_allclose(found.sum(), 1, atol=1e-6)
    likeliest = bindscope.open_run(str(run.path)).predict(PROGRAM).likeliest.item()
    assert likeliest == task.name_output(int(expected.argmax()))


def test_scores_are_those_of_the_answers(run: Run, task: CodeTask) -> None:
    model = run.checkpoint("last")
    batch = task.sample_evaluation(np.random.default_rng(0), 60)["test"]
    scores = family_of(task).score_split(task, model, "test", batch)
    outputs = read_answers(model, batch)
    assert outputs.shape == (60, PADDED)
    programs = [Program.from_tokens(row) for row in rows_of(batch)]
    right = np.array([task.table.answers[program.answer] for program in programs]) == outputs.argmax(1)
    depths = np.array([program.depth for program in programs])
    assert scores is not None
    assert scores["accuracy"] == pytest.approx(right.mean(), abs=1e-6)
    for depth in (1, 2, 3):
        assert scores["accuracy_by_depth"][depth - 1] == pytest.approx(right[depths == depth].mean(), abs=1e-6)
    boosted = outputs.copy()
    line_1 = np.array([task.table.answers[program.values[0]] for program in programs])
    boosted[np.arange(60), line_1] += 1e6
    described = describe_outputs(boosted, batch)
    assert (described.sources == 1).all()  # who answers with line 1's constant is seen to
    assert (described.right == (line_1 == batch.targets[:, 0])).all()


@pytest.mark.parametrize("direction", ["noising", "denoising"])
@torch.no_grad()
def test_grids_equal_one_run_for_every_cell(run: Run, task: CodeTask, direction: str) -> None:
    model = run.checkpoint("last").double()
    pairs = sample_root_pairs(task, np.random.default_rng(1), 5)
    contrast, columns = contrast_pairs(pairs, direction), columns_of(pairs.base)  # type: ignore[arg-type]
    residual = patch_model(model, pairs, Patch("residual", direction=direction))  # type: ignore[arg-type]
    assert residual.sizes["position"] == 4 * 5 + 3 < pairs.base_tokens.shape[1]
    sites = [f"L{layer}.resid_pre" for layer in range(3)]
    for position in (2, 3, 10, len(columns) - 2, len(columns) - 1):
        logits = naive_logits(model, contrast, sites, only(columns[position], contrast))
        expected = naive_outcomes(model, contrast, logits)
        for name in ("success", "logit_difference", "kl"):
            np.testing.assert_allclose(residual[name].sel(position=position), expected[name], atol=1e-6)
    chain = patch_model(model, pairs, Patch("chain", direction=direction))  # type: ignore[arg-type]
    for name, at in named_positions(pairs).items():
        marks = torch.zeros_like(contrast.base, dtype=torch.bool)
        marks[torch.from_numpy(at >= 0), torch.from_numpy(at[at >= 0])] = True
        expected = naive_outcomes(model, contrast, naive_logits(model, contrast, sites, marks))["logit_difference"]
        found = chain.logit_difference.sel(position=name).values
        np.testing.assert_allclose(found[:, at >= 0], expected[:, at >= 0], atol=1e-6)


@torch.no_grad()
def test_a_numbered_position_counts_the_programs_own(run: Run, task: CodeTask) -> None:
    model = run.checkpoint("last")
    *_, pairs = read_pair(task, PROGRAM, OTHER)
    columns, contrast = columns_of(pairs.base), contrast_pairs(pairs)
    found = patch_model(model, pairs, Patch(sites=("L1.resid_pre@10",)))
    expected = naive_logits(model, contrast, ["L1.resid_pre"], only(columns[10], contrast))
    np.testing.assert_allclose(
        found.logit_difference, naive_outcomes(model, contrast, expected)["logit_difference"][0], atol=1e-4
    )
    assert found.logit_difference.values == pytest.approx(
        patch_model(model, pairs, Patch(sites=("L1.resid_pre@rhs 1",))).logit_difference.values
    )


@torch.no_grad()
def test_attention_lens_and_ablation_are_read_at_each_parts_last_token(run: Run, task: CodeTask) -> None:
    view, model = bindscope.open_run(str(run.path)), run.checkpoint("last")
    batch = task.to_batch(task.read(PROGRAM))
    tokens, columns = torch.from_numpy(batch.tokens), columns_of(batch)
    assert (view.tokens(PROGRAM) == tokens).all()
    trace = run_model(model, tokens, read=["L1.pattern", "L2.resid_pre"])
    pattern = trace["L1.pattern"][0].numpy()[:, columns[:, None], columns]
    np.testing.assert_allclose(view.attention(PROGRAM).pattern.sel(layer=1), pattern, atol=1e-6)
    lens = view.lens(PROGRAM)
    assert lens.token.values[[0, 2, -2]].tolist() == ["␣c", "␣7", "e"]
    logits = model.to_logits(trace["L2.resid_pre"][0, columns])
    np.testing.assert_allclose(lens.answer_logit.sel(layer=2), logits[:, task.table.answers[5]], atol=1e-4)
    ablated = view.ablate(PROGRAM, sites=["L2.H1"], kind="zero").probability.sel(condition="after", output="5")
    zeroed = run_model(model, tokens, write={"L2.H1.result": torch.zeros_like}).logits[0, -1].softmax(0)
    np.testing.assert_allclose(ablated, zeroed[task.table.answers[5]], atol=1e-6)
    by_head = view.ablate(n=12, sites=["heads"])
    assert by_head.sizes["head"] == 2


def test_the_lens_over_many_programs_compares_digits(run: Run, task: CodeTask) -> None:
    model, batch = run.checkpoint(10), task.sample_evaluation(np.random.default_rng(0), 40)["test"]
    lens = logit_lens([(10, model)], batch).isel(step=0, layer=-1)
    programs, _ = programs_of(batch)
    constants = np.where(programs.is_constant, programs.value, -1)
    answers, line_1 = to_digits(batch, batch.targets[:, 0]), programs.value[:, 0]
    third = [set(row) - {-1, answer, first} for row, answer, first in zip(constants.tolist(), answers, line_1)]
    told = np.flatnonzero((answers != line_1) & np.array([bool(digits) for digits in third]))
    outputs = read_answers(model, batch)[told]
    for candidate, digits in (("answer", answers), ("line 1", line_1)):
        expected = outputs[np.arange(len(told)), np.array(task.table.answers)[digits[told]]]
        np.testing.assert_allclose(lens.logit.sel(candidate=candidate), expected.mean(), atol=1e-4)
        rank = 1 + (outputs > expected[:, None]).sum(1)
        np.testing.assert_allclose(lens["rank"].sel(candidate=candidate), rank.mean(), atol=1e-6)


def test_a_subspace_of_values_is_found_and_swapped(run: Run) -> None:
    view = bindscope.open_run(str(run.path))
    swapped = view.swap(PROGRAM, OTHER, of="values").probability
    np.testing.assert_allclose(swapped.sum("output"), 1, atol=1e-5)


def test_there_is_nothing_to_verify_and_much_to_measure(run: Run) -> None:
    view = bindscope.open_run(str(run.path))
    with pytest.raises(bindscope.BindscopeError, match="no published claims"):
        view.verify()
    assert view.result("hops").sizes["layer"] == 3


def test_pairs_for_two_hypotheses_are_the_text_of_the_programs_they_are_told_on(task: CodeTask) -> None:
    from bindscope.measures.binding.hypotheses.scoring import draw_pairs

    pairs = draw_pairs(task, np.random.default_rng(0), 4, depth=1)
    contrast = pairs.contrast
    for programs, tokens, answers in (
        (pairs.base, contrast.base, contrast.base_answers),
        (pairs.source, contrast.source, contrast.source_answers),
    ):
        for program, row, answer in zip(programs, tokens.numpy(), answers.numpy(), strict=True):
            assert Program.from_tokens(task.rendering.read_rows(row[None])[0]) == program
            assert answer == task.table.answers[program.answer]


def test_hypotheses_are_told_apart_on_the_shipped_language_model_as_its_algorithm_says() -> None:
    """Of one hop the algorithm says: the colon takes the queried name. So does the hypothesis that says the same."""
    view = bindscope.open_run("small-pythia")
    hop = view.result("algorithm").hop.sel(depth=1, reference="query")
    assert hop.sel(way="pointer") > 0.9
    assert hop.sel(way="value") < 0.1
    scores = view.hypotheses("value-forward", "pointer-backward", n=16)
    one_hop = scores.where(scores.site_depth == 1, drop=True).sel(condition="model").followed.max("layer")
    by_name = dict(zip(one_hop.site_hypothesis.values, one_hop.values, strict=True))
    assert by_name["pointer-backward"] > 0.9
    assert by_name["value-forward"] < 0.1
