"""Features of right-hand sides over checkpoints: of weights that are written, name features appear when the weights can bind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import bindscope
from bindscope.errors import BindscopeError
from bindscope.measures.binding.line_features import (
    describe_line_features,
    draw_right_hand_sides,
    growth_of,
    measure_line_features,
    read_right_hand_sides,
    summarise_kinds,
)
from bindscope.measures.crosscoder import CrosscoderSettings
from bindscope.runs.locate import find_run
from bindscope.studies.binding.crosscoder.measure import chosen_layers, compute_crosscoder, crosscoder_steps
from bindscope.studies.framework.results import Context
from bindscope.studies.framework.verify import study_or_none
from bindscope.tasks.binding import parse_program
from bindscope.web import lookups
from bindscope.web.body import Body, encode
from bindscope.web.lab import Lab, NotMeasured
from studies.made_runs import TASK, make_run


def test_labels_are_what_the_text_of_a_line_says() -> None:
    drawn = draw_right_hand_sides(TASK, np.random.default_rng(0), 6)
    batch = TASK.ask(*TASK.sample_questions(np.random.default_rng(0), 6, TASK.lines))
    for row, tokens in enumerate(batch.tokens):
        text = "".join(TASK.vocabulary.decode(tokens.tolist()))
        for line, written in enumerate(text.splitlines()[: TASK.lines]):
            at = row * TASK.lines + line
            name, right = written.split("=")
            assert drawn.tokens[row, drawn.columns[row, line]] == TASK.vocabulary.ids[right]
            assert drawn.labels["name"][at] == ord(name) - ord("a")
            value = parse_program(f"{text.split('#')[0]}#{name}:").answer
            assert drawn.labels["value"][at] == (-1 if right.isdigit() else int(value))
            assert drawn.labels["line"][at] == line
    assert drawn.n_fitted == 4 * TASK.lines


def test_name_features_appear_when_the_weights_can_bind(tmp_path: Path) -> None:
    run = make_run(tmp_path / "made", steps=(1000, 1450, 2000))
    drawn = draw_right_hand_sides(TASK, np.random.default_rng(0), 300)
    streams = torch.stack([read_right_hand_sides(run.checkpoint(step), drawn, [1])[1] for step in run.steps])
    settings = CrosscoderSettings(features=96, updates=500, batch_size=128, learning_rate=4e-3)
    found = measure_line_features(streams, drawn, settings, seeds=(0, 1)).assign_coords(step=list(run.steps))
    onsets = summarise_kinds(found).onset.sel(kind="name")
    assert (onsets.sum("step") >= 20).all()
    assert (onsets.sel(step=1450) > 0.8 * onsets.sum("step")).all()
    sentence = describe_line_features(found.expand_dims(layer=[1]))
    assert "grow most from step 1,000 to 1,450, by +0.9" in sentence
    assert "0 and 0 of 96 features entering L1 tell the value that a reference takes, too few" in sentence


def test_the_result_has_every_layer_checkpoint_and_dictionary(tmp_path: Path) -> None:
    run = make_run(tmp_path / "made", steps=(0, 1450, 2000))
    found = compute_crosscoder(Context(run, n=9, seed=3), CrosscoderSettings(features=8, updates=2))
    assert dict(found.norm.sizes) == {"layer": 3, "seed": 2, "feature": 8, "step": 3}
    assert found.layer.values.tolist() == chosen_layers(run.config.model.n_layers)
    assert float(found.norm.max()) == 1


def test_the_page_sends_the_saved_numbers_with_a_sentence_and_never_measures_while_a_reader_waits(
    tmp_path: Path,
) -> None:
    lab = Lab.open([find_run("binding-plain"), make_run(tmp_path / "made").path], tmp_path)
    with pytest.raises(NotMeasured, match="bindscope figure made crosscoder"):
        lookups.crosscoder(lab, lab.find("made"))
    kept = bindscope.open_run("binding-plain").result("crosscoder")
    body = Body.model_validate_json(encode(lookups.crosscoder(lab, lab.find("binding-plain"))))
    assert body.attrs["finding"] == describe_line_features(kept)
    assert body.command == "bindscope figure binding-plain crosscoder"
    sent = np.array(body.variables["norm"].values, dtype=float)
    np.testing.assert_allclose(sent, summarise_kinds(kept).norm.values.ravel(), atol=6e-4)
    assert study_or_none("binding").find_figure("crosscoder").draw({"crosscoder": kept}).axes


def test_few_features_give_no_sentence_on_when_they_appear() -> None:
    kept = bindscope.open_run("binding-plain").result("crosscoder")
    unknown = kept.assign(kind=kept.kind.where(kept.kind != "name", "none"))
    assert "0 and 0 of 128 features entering L1 tell the name on a line at its right-hand side, too few" in (
        describe_line_features(unknown)
    )


def test_checkpoints_are_chosen_around_the_end_of_the_plateau() -> None:
    run = bindscope.open_run("binding-plain").run
    assert list(crosscoder_steps(run)) == [100, 200, 300, 400, 500, 600, 700, 5300]
    assert list(crosscoder_steps(run.only(()))) == []
    assert [chosen_layers(n) for n in (1, 2, 6)] == [[0], [1], [1, 3, 5]]


def test_a_run_without_checkpoints_around_a_plateau_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", steps=(2000,)).path
    with pytest.raises(BindscopeError, match="compares checkpoints around the end of a plateau"):
        bindscope.open_run(path).result("crosscoder")


def test_the_saved_result_of_binding_plain_has_what_the_documents_say() -> None:
    kept = bindscope.open_run("binding-plain").result("crosscoder")
    for layer in (1, 3, 5):
        for seed in kept.seed.values:
            assert growth_of(kept.sel(layer=layer, seed=seed), "name")[:2] == (400, 500)
    counts = summarise_kinds(kept)["count"]
    assert (counts.sel(kind="value", layer=1) == 0).all()
    assert (counts.sel(kind="value", layer=5) > counts.sel(kind="value", layer=3)).all()
