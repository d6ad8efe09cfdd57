"""Each command as a person uses it, on a run small enough to train in a moment."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.cli.main import run
from bindscope.tasks.binding import parse_program
from cli.answers import answer, refusal
from cli.small_run import small_options
from interrupts import heed_interrupts
from rewriting import rewrite_manifest, rewrite_metrics


def test_every_sampled_program_is_printed_with_its_own_answer(capsys: pytest.CaptureFixture[str]) -> None:
    lines = answer(capsys, "sample", "binding-tiny", "--n", "20", "--json").splitlines()
    assert len(lines) == 20
    for line in lines:
        example = json.loads(line)
        program = parse_program(example["text"])
        assert example["answer"] == str(program.answer)
        assert example["facts"]["depth"] == program.depth == len(example["facts"]["chain"])


def test_sampling_is_decided_by_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (answer(capsys, "sample", "binding", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again != other


def test_only_the_asked_depth_is_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "sample", "binding-laptop", "--depth", "4", "--n", "5", "--json")
    assert [json.loads(line)["facts"]["depth"] for line in text.splitlines()] == [4] * 5


def test_sums_are_sampled_from_any_split(capsys: pytest.CaptureFixture[str]) -> None:
    for line in answer(capsys, "sample", "assign-add", "--split", "2add", "--n", "5", "--json").splitlines():
        example = json.loads(line)
        assert example["facts"]["n_variables"] == 2
        assert int(example["answer"]) == (example["facts"]["n1"] + example["facts"]["n2"]) % 59


def test_a_pair_is_drawn_of_a_run_or_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    wish = ("--pair", "--depth", "3", "--lines", "9", "--seed", "4")
    drawn = json.loads(answer(capsys, "sample", "binding-laptop", *wish, "--json"))
    assert (drawn["depth"], drawn["n_lines"]) == (3, 9)
    assert drawn["answer"] != drawn["counterfactual_answer"]
    text = answer(capsys, "sample", "binding-laptop", *wish)
    assert drawn["text"] in text
    assert drawn["counterfactual"] in text
    assert json.loads(answer(capsys, "sample", "binding", *wish, "--json"))["depth"] == 3
    assert "programs are for runs on binding" in refusal(capsys, "sample", "assign-add", "--pair")
    assert "give that too" in refusal(capsys, "sample", "binding", "--lines", "4")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bindng"], "Did you mean 'binding'?"),
        (["binding", "--depth", "9"], "between 1 and 4"),
        (["assign-add", "--depth", "2"], "only binding programs have a depth"),
        (["assign-add", "--split", "2ad"], "Did you mean '2add'?"),
        (["binding", "--n", "0"], "at least 1"),
        (["binding", "--seed", "-1"], "Must be >= 0"),
        (["binding", "--set", "lins=3"], "Did you mean 'task.lines'?"),
        (["binding", "--set", "lines=40"], "task.lines"),
        (["binding", "--set", "n_variables=8"], "task.lines: 16 lines need 16 variables"),
    ],
)
def test_impossible_samples_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, "sample", *arguments)


def test_a_run_is_listed_with_its_status_and_steps(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in answer(capsys, "runs", "--json").splitlines()]
    row = next(row for row in rows if row["run"] == "runs/small")
    assert (row["status"], row["step"], row["of"], row["checkpoints"]) == ("finished", 12, 12, 4)
    assert "runs/small" in answer(capsys, "runs")


def test_an_evaluation_shows_intervals_around_every_fraction(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = json.loads(answer(capsys, "evaluate", "small", "--n", "200", "--json"))
    table = answer(capsys, "evaluate", "small", "--n", "200")
    assert evaluation["step"] == 12
    assert f"{evaluation['test']['accuracy']:.3f}" in table
    assert "accuracy by depth" in table
    assert "accuracy by root line" in table
    assert "–" in table


def test_the_same_seed_gives_the_same_evaluation(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (answer(capsys, "evaluate", "small", "--n", "60", "--seed", seed) for seed in "112")
    assert first == again != other


def test_a_step_that_was_not_kept_names_the_nearest(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the nearest is 8" in refusal(capsys, "evaluate", "small", "--step", "7")
    assert "for --n. Must be >= 1" in refusal(capsys, "evaluate", "small", "--n", "0")


def test_the_trajectory_prints_phases_and_writes_figure_numbers_and_report(
    workplace: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = answer(capsys, "trajectory", "small", "--html")
    assert "depth 1" in text
    for name in ("trajectory.svg", "trajectory.nc", "trajectory.html"):
        assert (trained / "results" / name).stat().st_size > 0
        assert name in text
    answer(capsys, "trajectory", "small", "--out", str(workplace / "figure.png"))
    assert (workplace / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_trajectory_that_cannot_be_drawn_is_refused_before_anything_is_printed(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "unknown format 'xyz'" in refusal(capsys, "trajectory", "small", "--out", "x.xyz")


def test_a_command_on_sums_says_what_it_needs(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(capsys, "fourier", "small")
    assert told.startswith("small: its task is binding; this command needs a run on")
    assert told.endswith(".")


@pytest.mark.parametrize("text", ["a=5\nb=a\n#b:", "a=5;b=a;#b:", "a=5\\nb=a\\n#b:"])
def test_line_breaks_may_be_typed_in_three_ways(text: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "true answer: 5" in answer(capsys, "predict", "small", text)


def test_every_checkpoint_answers_with_probabilities_that_fall(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = answer(capsys, "predict", "small", "a=5;b=a;#b:", "--step", "all", "--top", "4", "--json").splitlines()
    predictions = [json.loads(line) for line in lines]
    assert [prediction["step"] for prediction in predictions] == [0, 4, 8, 12]
    for prediction in predictions:
        probabilities = [shown["probability"] for shown in prediction["top"]]
        assert len(probabilities) == 4
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1 + 1e-6
        assert prediction["prediction"] == prediction["top"][0]["answer"]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("a=5;b=q;#b:", "line 2: 'q' is used before it is assigned"),
        ("a=5;b=a", "no query"),
        ("a=1;b=2;c=3;d=4;e=5;#a:", "5 lines"),
        ("--tip", "unknown option: --tip"),
        ("", "empty"),
    ],
)
def test_a_program_that_cannot_be_run_is_refused_with_its_line(
    program: str, sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, "predict", "small", program)


def test_predictions_stay_on_one_line_whatever_they_are(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, "predict", "small", "a=5;#a:", "--top", "40").splitlines()
    assert len(shown) == len(["a=5", "#a:", "", "true answer", "head", "rule", "row"])
    assert "\\n 0." in shown[-1]


@pytest.mark.parametrize("step", ["²", "-1", "1.5", "soon"])
def test_a_step_that_is_no_number_is_refused(step: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give a number" in refusal(capsys, "predict", "small", "a=5;#a:", "--step", step)


def test_damaged_runs_are_named_and_the_others_listed(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("whole", "no-config", "no-metrics", "cut"):
        shutil.copytree(trained, tmp_path / name)
    rewrite_manifest(tmp_path / "no-config", lambda manifest: manifest.update(config={}))
    rewrite_metrics(tmp_path / "no-metrics", "not a record\n")
    (tmp_path / "cut" / "manifest.json").write_text("{")
    assert run(["runs", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    listed = [json.loads(line) for line in captured.out.splitlines()]
    assert [row["run"] for row in listed if row["status"] != "shipped"] == [str(tmp_path / "whole")]
    assert all(name in captured.err for name in ("no-config", "no-metrics", "cut"))


def test_a_finished_run_has_nothing_to_resume(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "complete" in answer(capsys, "resume", "small")
    assert "complete" in answer(capsys, "train", "--resume", "runs/small")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["binding-tny"], "Did you mean 'binding-tiny'?"),
        ([], "name a preset"),
        (["binding-tiny", "--name", "small"], "exists already"),
        (["binding-tiny", "--set", "training.lr=3"], "unknown setting 'training.lr'"),
        (["binding-tiny", "--seed", "3", "--set", "seed=4"], "keep one"),
        (["binding-tiny", "--set", "model.n_layers=0"], "model.n_layers: must be at least 1"),
        (["binding-tiny", "--set", "training.optimizer.lr=inf"], "training.optimizer.lr: expected a finite number"),
        (["binding-tiny", "--set", "model.init.gain=nan"], "model.init.gain: expected a finite number"),
        (["--resume", "small", "--seed", "3"], "leave out"),
        (["--resume", "smal"], "Did you mean 'small'?"),
        (["templates-copy", "--steps", "3", "--set", "training.epochs=2"], "both say how long to train"),
    ],
)
def test_what_cannot_be_trained_is_refused_and_leaves_nothing_behind(
    arguments: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(workplace.rglob("*"))
    assert sentence in refusal(capsys, "train", *arguments)
    assert sorted(workplace.rglob("*")) == before


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = 100_000
    command = [sys.executable, "-m", "bindscope", "train", "binding-tiny", "--steps", str(steps), "--threads", "1"]
    options = small_options(training__evaluate_every=10, training__checkpoints__every=steps)
    options += ["--out", str(tmp_path)]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step 20/"):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert errors == f"bindscope: stopped; go on with 'bindscope resume {tmp_path / 'binding-tiny'}'.\n"
    listed = answer(capsys, "runs", str(tmp_path), "--json")
    assert json.loads(listed.splitlines()[0])["status"] == "interrupted"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    writer = subprocess.Popen(
        [sys.executable, "-m", "bindscope", "sample", "binding", "--n", "2000", "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr is not None
    assert writer.stderr.read() == ""
    assert writer.wait(timeout=600) == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = answer(capsys, "completion", shell)
    assert all(name in script for name in ("train", "export-hf", "presets", "--threads"))


def test_the_checkpoints_of_a_run_can_be_imported_as_another(
    workplace: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, (trained / "checkpoints").glob("*.safetensors")))
    options = ["--family", "binding", "--as", "copy", "--set", "lines=4", "--set", "max_depth=2", "--n", "50"]
    answer(capsys, "import", *files, *options, "--out", str(tmp_path))
    question = ["a=5;b=a;#b:", "--step", "all", "--json"]
    first, second = (answer(capsys, "predict", path, *question) for path in (str(trained), str(tmp_path / "copy")))
    assert first == second


def test_files_that_cannot_be_imported_leave_nothing_behind(
    workplace: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = str(trained / "checkpoints" / "step_00000004.safetensors")
    (tmp_path / "step_9.safetensors").write_bytes(b"not a checkpoint")
    (tmp_path / "final.pth").write_bytes(b"not a checkpoint")
    directory = tmp_path / "runs"
    options = ["--family", "binding", "--as", "copy", "--out", str(directory), "--n", "10", "--set", "min_lines=2"]
    options += ["--set", "lines=4", "--set", "max_depth=2"]
    assert "holds no step" in refusal(capsys, "import", str(tmp_path / "final.pth"), *options)
    assert "also the step of" in refusal(capsys, "import", good, good, *options)
    assert run(["import", good, str(tmp_path / "step_9.safetensors"), *options]) == 2
    assert "step_9.safetensors" in capsys.readouterr().err
    assert "assign_add task needs" in refusal(capsys, "import", good, "--family", "assign-add", *options[2:8])
    assert not (directory / "copy").exists()


def test_the_released_checkpoints_of_study_2_become_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    data = Path(os.environ.get("BINDSCOPE_SHARED", root.parent / "shared")) / "data" / "assign_and_add"
    if not data.is_dir():
        pytest.skip("the released checkpoints are not here")
    files = [str(data / f"checkpoint_step_{step}.pth") for step in (401, 20001)]
    options = ["--family", "assign-add", "--as", "released", "--out", str(tmp_path), "--n", "400"]
    answer(capsys, "import", *files, *options)
    table = json.loads(answer(capsys, "evaluate", str(tmp_path / "released"), "--n", "400", "--json"))
    assert table["step"] == 20001
    assert min(table["watched"].values()) > 0.95


def test_a_plain_model_is_exported_and_a_modified_one_is_refused(
    workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scaled = ["train", "binding-tiny", "--name", "scaled", "--out", str(tmp_path), "--steps", "1"]
    answer(capsys, *scaled, *small_options(model__identity_qk="true", model__identity_gain=20))
    assert "identity scaling" in refusal(capsys, "export-hf", str(tmp_path / "scaled"), str(tmp_path / "modified"))
    assert not (tmp_path / "modified").exists()
    plain = small_options(model__identity_qk="false", model__identity_vo="false")
    arguments = ["binding-tiny", "--name", "plain", "--out", str(tmp_path), "--steps", "2", "--threads", "1"]
    answer(capsys, "train", *arguments, *plain)
    assert "GPTNeoX" in answer(capsys, "export-hf", str(tmp_path / "plain"), str(tmp_path / "exported"))
    assert (tmp_path / "exported" / "config.json").is_file()
    assert "exists already" in refusal(capsys, "export-hf", str(tmp_path / "plain"), str(tmp_path / "exported"))
