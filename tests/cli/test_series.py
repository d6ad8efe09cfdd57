"""Series of checkpoints, out as directories with model cards and in again, copied or linked."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bindscope.cli.main import run
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.runs.thin import thin_run
from bindscope.studies.framework.command import describe_origin, find_command
from cli.answers import answer, refusal
from cli.small_run import SMALL, small_options
from rewriting import rewrite_manifest

TASK = [f"{key}={value}" for key, value in SMALL.items() if key.startswith("task.")]


def import_words(source: Path | str, name: str, *more: str) -> list[str]:
    settings = [word for setting in TASK for word in ("--set", setting)]
    return ["import", str(source), "--as", name, "--n", "10", *settings, *more]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short training and, in series/, all its checkpoints as directories."""
    place = tmp_path_factory.mktemp("series")
    options = small_options(model__identity_qk="false", model__identity_vo="false")
    arguments = ["binding-tiny", "--name", "plain", "--out", str(place / "runs"), "--steps", "8", "--threads", "1"]
    assert run(["train", *arguments, *options]) == 0
    assert run(["export-hf", str(place / "runs" / "plain"), str(place / "series"), "--steps", "all"]) == 0
    return place


@pytest.fixture
def here(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, which is the current directory."""
    monkeypatch.chdir(shutil.copytree(exported, tmp_path / "here"))
    return tmp_path / "here"


def same_weights(one: Run, other: Run, step: int) -> bool:
    first, second = one.weights(step), other.weights(step)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_was_exported_is_imported_bit_for_bit(here: Path, capsys) -> None:
    answer(capsys, *import_words("series/", "again"))
    before, after = Run.open("runs/plain"), Run.open("runs/again")
    assert after.steps == before.steps == (0, 4, 8)
    assert all(same_weights(before, after, step) for step in before.steps)
    answer(capsys, "export-hf", "again", "second", "--steps", "all")
    for step in before.steps:
        name = Path(f"step{step}") / "model.safetensors"
        assert (Path("second") / name).read_bytes() == (Path("series") / name).read_bytes()


def test_a_lineage_is_recorded_and_a_training_has_nothing_to_be_said_of(here: Path, capsys) -> None:
    said = answer(capsys, *import_words("series/", "again"))
    made = Run.open("runs/again")
    lineage = made.manifest.data["lineage"]
    assert [int(step) for step in lineage] == list(made.steps[1:])
    assert all(0 < entry["distance"] < 1 and entry["cosine"] > 0.5 for entry in lineage.values())
    assert "Note" not in said
    assert describe_origin(made) == "Made of checkpoint files from elsewhere."


def test_a_checkpoint_of_another_run_is_said_at_import_in_the_list_and_in_the_description(here: Path, capsys) -> None:
    model = Transformer(Run.open("runs/plain").config.model, torch.Generator().manual_seed(5))
    export_hugging_face(model, "series/step100", Run.open("runs/plain").config.task.vocabulary)
    said = answer(capsys, *import_words("series/", "mixed"))
    sentence = "Step 100 does not descend from step 8: the cosine similarity of the weights is"
    assert f"Note: {sentence}" in said
    assert f"runs/mixed: {sentence}" in answer(capsys, "runs")
    assert sentence in describe_origin(Run.open("runs/mixed"))


def test_one_model_whose_directory_tells_no_step_is_step_0_and_a_note_says_what_it_is(here: Path, capsys) -> None:
    shutil.copytree("series/step8", "my-model")
    said = answer(capsys, *import_words("my-model", "again"), "--note", "The last step of plain.")
    assert "1 checkpoint is now" in said
    made = Run.open("runs/again")
    assert made.steps == (0,)
    assert describe_origin(made) == "The last step of plain. Made of checkpoint files from elsewhere."
    assert "--note 'The last step of plain.'" in find_command(made)


@pytest.mark.parametrize("name", ["step{}", "step_{}", "step-{}", "checkpoint-{}", "pythia-14m_step{}", "Step{}"])
def test_revisions_are_found_by_how_they_are_called(here: Path, capsys, name: str) -> None:
    for step in (0, 8):
        shutil.copytree(f"series/step{step}", Path("folder") / name.format(step))
    Path("folder/README.md").touch()
    Path("folder/runs-2026").mkdir()
    shutil.copytree("series/step8", "folder/final")
    said = answer(capsys, *import_words("folder", "again"))
    assert Run.open("runs/again").steps == (0, 8)
    assert "Note: left out, for the name is not like step1000: folder/final." in said


def test_a_directory_with_a_model_and_no_revisions_is_one_checkpoint(here: Path, capsys) -> None:
    answer(capsys, *import_words("series/step8", "one"))
    assert Run.open("runs/one").steps == (8,)


def test_a_linked_run_is_the_copied_one_without_its_weights(here: Path, capsys) -> None:
    answer(capsys, *import_words("series", "copied"))
    answer(capsys, *import_words("series", "linked", "--link"))
    copied, linked = Run.open("runs/copied"), Run.open("runs/linked")
    assert list(Path("runs/linked/checkpoints").iterdir()) == []
    for step in copied.steps:
        assert linked.manifest.checkpoints[step].sha256 == copied.manifest.checkpoints[step].sha256
        assert linked.weights_file(step) == copied.weights_file(step)
        assert same_weights(copied, linked, step)
    tokens = torch.randint(9, (2, 7))
    assert torch.equal(linked.checkpoint("last")(tokens), copied.checkpoint("last")(tokens))
    compact = thin_run(linked, "runs/compact", ["last"], dtype="float32")
    shutil.rmtree("series")
    assert same_weights(compact, copied, copied.steps[-1])


def test_a_linked_run_is_read_from_anywhere_and_made_again_by_its_command(here: Path, capsys, monkeypatch) -> None:
    answer(capsys, *import_words("series", "linked", "--link"))
    words = find_command(Run.open("runs/linked")).split()
    assert "--link" in words
    answer(capsys, *words[1:], "--n", "10", "--out", "elsewhere")
    monkeypatch.chdir("/")
    assert Run.open(here / "elsewhere" / "linked").weights(8).keys()


def test_a_linked_file_that_is_gone_changed_or_added_is_named(here: Path, capsys) -> None:
    answer(capsys, *import_words("series", "linked", "--link"))
    weights = here / "series" / "step8" / "model.safetensors"
    content, before = weights.read_bytes(), contents(here / "runs")
    assert answer(capsys, "evaluate", "linked", "--n", "10")

    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert refusal(capsys, "evaluate", "linked") == (
        f"{weights}: was changed since it was linked; put the file back, or import it again."
    )
    weights.rename(weights.with_name("moved"))
    assert refusal(capsys, "evaluate", "linked") == (
        f"{weights}: is linked and no longer there; put the file back, or import it again."
    )
    assert contents(here / "runs") == before

    weights.write_bytes(content)
    assert answer(capsys, "evaluate", "linked", "--n", "10")


def test_a_link_to_a_pipe_is_not_waited_for_and_a_damaged_one_is_refused(here: Path, capsys) -> None:
    answer(capsys, *import_words("series/step8", "linked", "--link"))
    weights = here / "series" / "step8" / "model.safetensors"
    weights.unlink()
    os.mkfifo(weights)
    assert "is linked and no longer there" in refusal(capsys, "evaluate", "linked")
    names = ["model.safetensors"]
    rewrite_manifest(Path("runs/linked"), lambda content: content["checkpoints"]["8"]["original"].update(files=names))
    assert "the manifest is damaged: it names no files of" in refusal(capsys, "evaluate", "linked")


def test_a_file_that_would_be_read_instead_of_the_linked_one_is_named(here: Path, capsys) -> None:
    folder = here / "series" / "step8"
    model = Run.open("runs/plain").checkpoint(8)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    answer(capsys, *import_words("series/step8", "linked", "--link"))
    export_hugging_face(model, "other")
    shutil.copy("other/model.safetensors", folder)
    assert refusal(capsys, "evaluate", "linked").startswith(f"{folder / 'model.safetensors'}: was not there when")


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda: Path("empty").mkdir(), "empty: holds no checkpoint"),
        (lambda: Path("empty/step5").mkdir(parents=True), "empty/step5: "),
        (lambda: Path(f"empty/step{'9' * 19}").mkdir(parents=True), "its name holds no step"),
        (lambda: [Path(f"empty/{name}5").mkdir(parents=True) for name in ("step", "step_")], "is also the step of"),
    ],
)
@pytest.mark.parametrize("link", [[], ["--link"]])
def test_a_folder_that_is_no_series_is_refused_and_nothing_is_written(
    here: Path, capsys, prepare, sentence: str, link: list[str]
) -> None:
    prepare()
    before = contents(here)
    assert sentence in refusal(capsys, *import_words("empty", "x", *link))
    assert contents(here) == before


def test_a_card_tells_task_settings_seed_data_size_and_accuracy_at_its_step(here: Path) -> None:
    made = Run.open("runs/plain")
    for step in made.steps:
        card = Path(f"series/step{step}/README.md").read_text()
        record = next((record for record in made.metrics if record["step"] == step), None)
        accuracy = (
            f"| test | {100 * record['test']['accuracy']:.1f} % |" if record else "It was not evaluated at this step."
        )
        expected = [
            f"# plain, step {step}\n",
            "| task | binding |",
            "`bindscope sample binding` prints what it is asked.",
            "| seed | 0 |",
            f"sha256 {made.manifest.data['sha256']}",
            f"| parameters | {made.config.model.n_parameters:,} |",
            accuracy,
            '"lr": ',
        ]
        assert [text for text in expected if text not in card] == []
        assert "## Claims" not in card  # nothing was measured


def test_a_card_has_the_verdicts_of_saved_results_and_saves_none(here: Path, capsys) -> None:
    verified = json.loads(answer(capsys, "verify", "plain", "--claim", "VB11", "--json"))
    (claim,) = verified["claims"]
    before = contents(here / "runs")
    answer(capsys, "export-hf", "plain", "one")
    card = Path("one/README.md").read_text()
    assert f"- **VB11 {claim['title']}**: *{claim['verdict']}*" in card
    assert claim["reason"] in card
    assert "VB4" not in card  # was not measured
    assert contents(here / "runs") == before


def test_the_card_of_an_imported_run_invents_no_seed_and_no_training(here: Path, capsys) -> None:
    answer(capsys, *import_words("series", "again"))
    answer(capsys, "export-hf", "again", "second")
    card = Path("second/README.md").read_text()
    assert "| seed | not known |" in card
    assert '"task"' in card
    assert '"training"' not in card
    assert "| made by |" not in card  # the command names paths of whoever exports
    assert "series" not in card


def test_several_steps_are_named_with_commas(here: Path, capsys) -> None:
    answer(capsys, "export-hf", "plain", "some", "--steps", "last,0")
    assert sorted(path.name for path in Path("some").iterdir()) == ["step0", "step8"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["series", "--steps", "0,8"], "series/step8: exists already"),
        (["series/step8", "--step", "0"], "series/step8: exists already"),
        (["new", "--steps", "0,999"], "step 999 was not saved; the nearest is 8"),
        (["new", "--steps", "0", "--context", "0"], "context: must be at least 1"),
    ],
)
def test_an_export_that_cannot_be_is_refused_and_nothing_is_written(here: Path, capsys, words, sentence: str) -> None:
    shutil.rmtree("series/step0")
    before = contents(here)
    assert sentence in refusal(capsys, "export-hf", "plain", *words)
    assert contents(here) == before
