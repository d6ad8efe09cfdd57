"""A device and a number type are properties of an opened run; whatever runs its models follows them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import bindscope
from bindscope.cli.main import COMMANDS as COMMAND_TABLE
from bindscope.cli.main import build_app, run
from bindscope.errors import BindscopeError
from bindscope.model.transformer import Transformer
from bindscope.questions.opened import Opened
from bindscope.questions.patch import Patch
from bindscope.questions.program import Ablate, Attention, Lens, Predict
from bindscope.questions.question import RunQuestion
from bindscope.runs.directory import Run
from bindscope.runs.placement import CPU, Placement
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study
from bindscope.subspaces.rotation import RotationPlan, learn_rotation
from bindscope.tasks.binding import sample_root_pairs
from bindscope.training import device as devices
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from cli.small_run import small_options
from elsewhere import ELSEWHERE, Elsewhere, StrayTensor, There

PROGRAM, OTHER, SUM = "a=5;b=a;#b:", "a=8;b=a;#b:", "c=1 _ b=7 | b+9"
DRAWN = ["--n", "6"]
SMALL_TASK = ["--set", "lines=4", "--set", "max_depth=2"]
COMMANDS = [  # every command that runs a model, in each of its ways to do so
    ["predict", "small", PROGRAM], ["predict", "sums", SUM],
    ["lens", "small", "--n", "40", "--step", "last"], ["lens", "small", "--program", PROGRAM, "--step", "last"],
    ["attention", "small", PROGRAM, "--ablate", "L1.H0"], ["attention", "sums", SUM],
    ["evaluate", "small", "--n", "20"], ["behaviour", "small", "--n", "20"], ["probe", "small", "--n", "40"],
    ["patch", "small", *DRAWN], ["patch", "small", "--grid", "residual", *DRAWN, "--from-step", "first"],
    ["patch", "small", "--grid", "heads", *DRAWN, "--approximate"], ["patch", "small", "--grid", "mlps", *DRAWN],
    ["patch", "small", "--site", "L1.H0@rhs 1", "--site", "L1.mlp_out", *DRAWN],
    ["path", "small", "--sender", "L0.H0", "--receiver", "L1.H0.q", "--receiver", "L1.mlp_out", *DRAWN],
    ["ablate", "small", *DRAWN], ["ablate", "small", "--kind", "resample", *DRAWN],
    ["ablate", "small", "--of", "L0.H0", "--of", "L1.mlp_out", "--kind", "zero", *DRAWN],
    ["ablate", "small", "--cut", "colon>query", "--layer", "1", *DRAWN],
    ["subspace", "small", "--n", "20"], ["subspace", "small", "--n", "20", "--over-training"],
    ["subspace", "small", "--n", "20", "--method", "rotation", "--rank", "2"],
    ["circuit", "small", "--depth", "1", "--least-success", "0.0001", "--least-loss", "0.0001", *DRAWN],
    ["algorithm", "small", "--n", "8"], ["hypotheses", "small", "--n", "8"], ["mixture", "longer", "--n", "40"], ["identifiers", "small", "--n", "8"], ["lookbacks", "longer", "--n", "8"], ["reassignment", "again", "--n", "8"], ["transplant", "sums", "--part", "QK1", "--from", "last", "--to", "first", *DRAWN],
    ["transplant", "sums", "--part", "pattern 1 of =", "--from", "last", "--to", "first", *DRAWN],
    ["fourier", "sums", "--n", "10"], ["progress", "sums", "--fresh"],
    ["verify", "small", "--claim", "VB4", *DRAWN, "--fresh", "--no-html"], ["explain", "VB4", "small", *DRAWN, "--fresh"],
    ["figure", "small", "ablations", *DRAWN, "--fresh"], ["trajectory", "small", "--html"],
    ["copying", "--widths", "8", "--n", "8", "--steps", "1", "--seeds", "1"],
]  # fmt: skip
RUN_NO_MODEL = {
    "sample", "templates", "runs", "thin", "claims", "completion", "export-hf", "export-metrics",
    "across", "announce", "calibrate", "check", "doctor", "kernel", "one-step",  # datasets of experiments; kernels and a gradient that are computed in closed form
}  # fmt: skip
QUESTIONS: list[RunQuestion] = [
    Predict(run="small", program=PROGRAM),
    Lens(run="small", program=PROGRAM, step="last"),
    Attention(run="small", program=PROGRAM, ablate=("L1.H0",)),
    Ablate(run="small", n=6),
    Patch(run="small", grid="residual", n=4),
    Predict(run="sums", program=SUM),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory above ./runs with a small run on programs, one on longer programs, one with reassignment and one on sums."""
    out = tmp_path_factory.mktemp("placed")
    rest = ["--out", str(out / "runs"), "--threads", "1"]
    assert run(["train", "binding-tiny", "--name", "small", "--steps", "4", *rest, *small_options()]) == 0
    longer = small_options(task__lines=8)  # enough lines to tell the accounts of a lookup apart
    assert run(["train", "binding-tiny", "--name", "longer", "--steps", "2", *rest, *longer]) == 0
    again = small_options(task__lines=8, task__reassign=0.3)
    assert run(["train", "binding-tiny", "--name", "again", "--steps", "2", *rest, *again]) == 0
    sums = {"task.modulus": 11, "task.n_variables": 5, "model.d_model": 16, "model.d_head": 16, "model.d_mlp": 16,
            "training.batch_size": 16, "training.evaluate_every": 2, "training.evaluation_size": 20,
            "training.save_every": 2, "training.checkpoints.every": 2}  # fmt: skip
    options = [word for key, value in sums.items() for word in ("--set", f"{key}={value}")]
    assert run(["train", "assign-add", "--name", "sums", "--steps", "2", *rest, *options]) == 0
    return out


@pytest.fixture
def workplace(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(runs)
    return runs


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    """A machine whose mps is the test's own device."""
    usual = devices.select_device
    found = lambda name, rank=0: ELSEWHERE if name in ("mps", ELSEWHERE.type) else usual(name, rank)  # noqa: E731
    monkeypatch.setattr(devices, "select_device", found)
    adam = importlib.import_module("torch.optim.adam")
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *_: None)  # mps and cuda have it
    with Elsewhere() as mode:
        yield mode


@pytest.mark.parametrize("arguments", [each for each in COMMANDS if "rotation" not in each], ids=" ".join)
def test_every_command_runs_its_model_where_it_is_told_to(
    arguments: list[str], workplace: Path, elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str]
) -> None:
    build_app()([*arguments, "--device", "mps"])
    assert elsewhere.n_operations > 0


def test_a_rotation_is_learned_where_the_model_is(workplace: Path, elsewhere: Elsewhere) -> None:
    opened, generator = Run.open("runs/small", Placement("mps")), torch.Generator().manual_seed(0)
    pairs = sample_root_pairs(opened.config.task, np.random.default_rng(0), 8)  # type: ignore[arg-type]
    learned = learn_rotation(
        opened.checkpoint(), pairs, layer=1, position="colon", rank=2, generator=generator, plan=RotationPlan(2, 4)
    )
    assert elsewhere.n_operations > 0
    assert learned.subspace.basis.device == torch.device("cpu")


def test_a_planted_stray_is_caught(workplace: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    from bindscope.interventions import outcome

    monkeypatch.setattr(outcome, "to_host", lambda values: values)  # logits stay there, answers are here
    with pytest.raises((StrayTensor, RuntimeError)):
        build_app()(["patch", "small", *DRAWN, "--device", "mps"])


def test_the_device_of_the_tests_refuses_what_gpus_refuse(elsewhere: Elsewhere) -> None:
    there, here = torch.zeros(3, 3, device=ELSEWHERE), torch.zeros(3, 3)
    assert isinstance(there, There)
    for stray in (
        lambda: there + here,
        lambda: torch.where(here > 0, there, there),
        lambda: torch.stack([there, here]),
        lambda: here[there.long()],
        lambda: there.double(),
    ):
        with pytest.raises(StrayTensor):
            stray()
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    assert torch.equal((there[[0, 1]] + torch.tensor(1.0)).cpu(), torch.ones(2, 3))  # lists, single numbers: allowed


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 2e-4), ("bfloat16", 0.4)])
def test_answers_in_other_numbers_agree(question: RunQuestion, dtype: str, tolerance: float, workplace: Path) -> None:
    single = question.answer(Opened.at(question.run))
    other = question.answer(Opened.at(question.run, Placement("cpu", dtype)))  # type: ignore[arg-type]
    shared = [name for name, values in single.data_vars.items() if values.dtype.kind == "f" and name not in FLIPS]
    assert shared
    for name in shared:
        one, two = single[name].values, other[name].values
        assert np.abs(one - two)[np.isfinite(one) & np.isfinite(two)].max(initial=0) <= tolerance * max(
            1, np.abs(one[np.isfinite(one)]).max(initial=0)
        ), name


FLIPS = ("success", "kept", "correct", "base_correct", "logit_difference", "new_logit")  # divided by next to nothing


def test_answers_elsewhere_are_those_of_the_cpu(workplace: Path, elsewhere: Elsewhere) -> None:
    question = Patch(run="small", grid="residual", n=4)
    here, there = (question.answer(Opened.at("small", Placement(device))) for device in ("cpu", "mps"))
    assert elsewhere.n_operations > 0
    for name in ("kl", "success", "kept"):
        np.testing.assert_allclose(here[name].values, there[name].values, atol=1e-6)


@pytest.mark.parametrize("name", ["small", "sums", ""])
def test_float64_works_for_every_command(name: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in COMMANDS:
        if name == next((known for known in ("small", "sums") if known in arguments), ""):
            build_app()([*arguments, "--dtype", "float64"])


def test_what_was_found_is_applied_where_it_is_told_to(
    workplace: Path, elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str]
) -> None:
    build_app()(["patch", "small", "--site", "L1.H0@rhs 1", *DRAWN, "--save", "found.safetensors"])
    before = elsewhere.n_operations
    build_app()(["apply", "found.safetensors", "small", "--device", "mps"])
    assert elsewhere.n_operations > before


def test_what_is_made_outside_is_evaluated_where_it_is_told_to(
    workplace: Path, tmp_path: Path, elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--lines", "4", "--max-depth", "2", *DRAWN]
    counts = [0]
    for options, folder in ([], "here"), (["--device", "mps"], "there"):
        build_app()(["construct", *sizes, "--out", str(tmp_path / folder), *options])
        build_app()(["import", "runs/small/checkpoints/step_00000004.safetensors", "--as", "again", *SMALL_TASK, *DRAWN,
                     "--out", str(tmp_path / folder), *options])  # fmt: skip
        counts.append(elsewhere.n_operations)
    assert counts[2] - counts[1] > 2 * counts[1]  # reading a file takes a few
    for name in ("binding-constructed", "again"):
        here, there = (Run.open(tmp_path / folder / name) for folder in ("here", "there"))
        assert here.metrics[0]["test"]["accuracy"] == there.metrics[0]["test"]["accuracy"]
        assert here.manifest.checkpoints == there.manifest.checkpoints


def test_the_device_of_an_evaluation_is_in_the_command_that_makes_it_again(workplace: Path, tmp_path: Path) -> None:
    from bindscope.studies.framework.command import find_command

    sizes = ["--lines", "4", "--max-depth", "2", *DRAWN]
    build_app()(["construct", *sizes, "--out", str(tmp_path), "--dtype", "float64"])
    assert find_command(Run.open(tmp_path / "binding-constructed")).endswith(" --dtype float64")


def test_the_demo_trains_and_asks_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from bindscope.cli import demo

    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(demo, "beside", lambda *words: asked.append(words))
    for device in ("cpu", "cuda"):
        demo.training(tmp_path / "binding-tiny", None, Placement(device))  # type: ignore[arg-type]
    assert [words[words.index("--device") + 1] for words in asked] == ["cpu", "cuda"]


def test_every_command_that_runs_a_model_can_be_told_where() -> None:
    """All others say here that they run none, or train none."""
    without = [name for name in COMMAND_TABLE if not takes_device(name)]
    assert set(without) == RUN_NO_MODEL


def takes_device(command: str) -> bool:
    path, function = COMMAND_TABLE[command][0].split(":")
    parameters = inspect.signature(getattr(importlib.import_module(f"bindscope.cli.{path}"), function)).parameters
    return "place" in parameters or "device" in parameters


def test_a_model_is_placed_once_in_the_asked_numbers(workplace: Path) -> None:
    view = bindscope.open_run("small", device="cpu", dtype="float64")
    assert {parameter.dtype for parameter in view.model().parameters()} == {torch.float64}
    assert view.opened.model("last").W_E.dtype == torch.float64
    assert bindscope.open_run(view.run).run is view.run
    assert bindscope.open_run(view.run, dtype="float32").model().W_E.dtype == torch.float32
    assert bindscope.open_run("small", device="auto").run.placement.device != "auto"


def test_a_result_in_other_numbers_is_not_taken_for_the_saved_one(workplace: Path, tmp_path: Path) -> None:
    results = find_study("binding").results
    single, double = Run.open("runs/small"), Run.open("runs/small", Placement("cpu", "float64"))
    libraries = [Library(opened, results, tmp_path, n=6) for opened in (single, double)]
    keys = [library.key(library._find("heads")) for library in libraries]
    assert keys[0] != keys[1]
    view = bindscope.open_run("small", dtype="float64")
    assert view.library.folder == Path("runs/small/results/float64")
    assert bindscope.open_run("small").library.folder == Path("runs/small/results")
    assert Library(Run.open("runs/small", CPU), results, tmp_path, n=6).key(results[-1]) == libraries[0].key(
        results[-1]
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--device", "cuda"], "device: this machine's torch has no cuda; usable here: cpu."),
        (["--device", "mps"], "device: this machine's torch has no mps; usable here: cpu."),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available() or torch.backends.mps.is_available(), reason="the machine has a GPU")
def test_a_device_that_is_not_there_gets_one_sentence(
    options: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["predict", "small", PROGRAM], ["verify", "small"], ["serve", "small", "--no-open"]):
        assert run([*command, *options]) == 2
        assert capsys.readouterr().err == f"bindscope: {sentence}\n"


def test_a_number_type_that_the_device_lacks_gets_one_sentence(
    workplace: Path, elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["predict", "small", PROGRAM, "--device", "mps", "--dtype", "float64"]) == 2
    assert "has no float64; usable there: float32, bfloat16, float16." in capsys.readouterr().err
    with pytest.raises(BindscopeError, match=r"unknown number type 'float8'"):
        bindscope.open_run("small", dtype="float8")  # type: ignore[arg-type]
    with pytest.raises(BindscopeError, match=r"unknown device 'gpu'"):
        bindscope.open_run("small", device="gpu")  # type: ignore[arg-type]


def test_the_page_asks_its_models_where_the_server_put_them(workplace: Path, tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    lab = Lab.open([Path("runs/small")], tmp_path, placement=Placement("cpu", "float64"))
    assert isinstance(lab.find("small").model(4), Transformer)
    assert lab.find("small").model(4).W_E.dtype == torch.float64
    with TestClient(create_app(lab), base_url="http://127.0.0.1:8420") as client:
        asked = {"run": "small", "program": PROGRAM, "steps": [4]}
        answer = client.post("/api/live/predict", json=asked, headers={"origin": "http://127.0.0.1:8420"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["command"].endswith(" --dtype float64")
    assert 'bindscope.open_run("small", dtype="float64")' in answer.json()["python"]


@pytest.mark.parametrize(
    "command",
    [
        ["experiment", "loss"],
        ["evidence", "held-out", "--train"],
        ["recipe", "binding-tiny"],
        ["copying"],
        ["demo"],
        ["demo", "--once"],
        ["construct"],
    ],
    ids=" ".join,
)
def test_what_trains_refuses_a_missing_device_before_it_begins(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*command, "--device", "mps"]) == 2
    assert "has no mps; usable here: cpu" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_of_a_sweep_is_trained_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from bindscope.runs import cell, execute
    from bindscope.runs.config import config_to_mapping
    from bindscope.studies.framework.presets import find_preset

    asked = []
    monkeypatch.setattr(execute, "train_run", lambda config, path, **options: asked.append(options["device"]))
    mapping = config_to_mapping(find_preset("binding-tiny").config)
    cell.train_cell(mapping, str(tmp_path))
    cell.train_cell(mapping, str(tmp_path), "cuda")
    assert asked == ["cpu", "cuda"]
