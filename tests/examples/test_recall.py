"""A family defined in one file outside the package works everywhere, with no edit inside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bindscope
from bindscope import families
from bindscope.cli.main import run
from bindscope.errors import BindscopeError
from bindscope.families import Family, find_family, load_family, register_family
from bindscope.runs.config import config_from_mapping, config_to_mapping, override
from bindscope.runs.directory import Run
from bindscope.studies.framework.presets import PRESETS, find_preset
from bindscope.tasks.binding import BindingTask
from bindscope.web.lab import Lab, Missing
from bindscope.web.pages import PAGES
from bindscope.web.stored import Stored
from examples.conftest import RECALL, ROOT
from rewriting import rewrite_manifest

NAMED = ["--family", RECALL]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command with the family prints, which must not fail."""
    code = run([*arguments, *NAMED])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*arguments]) == 2
    return capsys.readouterr().err


def test_the_example_is_small() -> None:
    assert len((ROOT / "examples" / "recall.py").read_text().splitlines()) <= 150


def test_every_answer_is_the_digit_behind_the_letter_that_is_asked() -> None:
    task = find_preset_task()
    splits = {"train": task.sample_batch(np.random.default_rng(0), 50)}
    splits |= task.sample_evaluation(np.random.default_rng(1), 50)
    for batch in splits.values():
        for row in range(len(batch)):
            text = task.render(batch.tokens[row])
            pairs, _, asked = text.partition(" | ")
            assert dict(pair for pair in pairs.split())[asked] == task.vocabulary.symbols[batch.targets[row, 0]]
            np.testing.assert_array_equal(task.parse(text), batch.tokens[row])


def find_preset_task():
    load_family(RECALL)
    return find_preset("recall-small").config.task


def test_its_settings_are_written_down_read_back_and_changed_by_name() -> None:
    load_family(RECALL)
    config = find_preset("recall-small").config
    assert config_from_mapping(json.loads(json.dumps(config_to_mapping(config)))) == config
    longer = override(config, {"task.n_pairs": "6"})
    assert longer.model.n_positions == longer.task.n_positions == 14
    with pytest.raises(BindscopeError, match=r"task\.n_pairs: must lie between 2 and 16, got 1"):
        override(config, {"task.n_pairs": 1})


def test_a_run_of_it_is_listed_measured_drawn_and_asked(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in printed(capsys, "runs", str(trained.parent), "--json").splitlines()]
    assert ("recall", "finished") in [(row["family"], row["status"]) for row in rows]
    evaluation = json.loads(printed(capsys, "evaluate", str(trained), "--n", "40", "--json"))
    assert {name for name, scores in evaluation.items() if isinstance(scores, dict)} == {"test", "last", "watched"}
    assert evaluation["test"]["n"] == 40
    told = printed(capsys, "trajectory", str(trained), "--html")
    assert "guessing: At most 20% of the answers are right" in told
    assert "<strong>Recall</strong>" in (trained / "results" / "trajectory.html").read_text()
    assert "true answer: 7" in printed(capsys, "predict", str(trained), "a3 c7 b1 d9 | c")
    assert "recall-small" in printed(capsys, "presets")
    (example,) = [json.loads(line) for line in printed(capsys, "sample", "recall", "--n", "1", "--json").splitlines()]
    assert example["answer"] in example["text"]


def test_what_it_does_not_have_is_refused_in_a_sentence(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no claims about runs of the family 'recall' yet" in refusal(capsys, "verify", str(trained), *NAMED)
    assert "its task is recall; this command needs a run on binding programs" in refusal(
        capsys, "behaviour", str(trained), *NAMED
    )
    assert "its task is recall; programs are for runs on binding" in refusal(
        capsys, "attention", str(trained), "a=1;#a:", *NAMED
    )
    assert "only binding programs have a depth" in refusal(capsys, "sample", "recall", "--depth", "2", *NAMED)
    assert "this task has 4 pairs" in refusal(capsys, "predict", str(trained), "a3 c7 | c", *NAMED)


def test_a_run_of_an_unknown_family_is_named_and_the_others_go_on(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = f"{trained}: its task is of the family 'recall', which is not known here; say --family PATH:NAME"
    with pytest.raises(BindscopeError) as refused:
        _ = Run.open(trained).config
    assert str(refused.value) == f"{sentence} (it was trained with {RECALL})."
    assert run(["runs", str(trained.parent)]) == 0
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "binding-laptop" in captured.out
    assert sentence in refusal(capsys, "trajectory", str(trained))
    from bindscope.web.pages.runs import list_runs

    shown = list_runs(Lab.open([trained, Path(bindscope.__file__).parent / "shipped" / "binding-laptop"]))
    assert [run.name for run in shown.runs] == ["binding-laptop"]
    assert "recall-small: its task is of the family 'recall'" in shown.problems[0]


def test_opening_a_run_never_loads_what_the_run_names(trained: Path, tmp_path: Path) -> None:
    evil, mark = tmp_path / "evil.py", tmp_path / "was-run"
    evil.write_text(f"open({str(mark)!r}, 'w')\n")
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    rewrite_manifest(copy, lambda manifest: manifest.update(family_from=f"{evil}:Family"))
    with pytest.raises(BindscopeError, match="is not known here"):
        _ = Run.open(copy).config
    assert not mark.exists()


def test_the_page_shows_it_where_pages_apply(trained: Path, tmp_path: Path) -> None:
    load_family(RECALL)
    lab = Lab.open([trained], tmp_path)
    stored = Stored(lab)
    resources = {resource.path: resource for page in PAGES for resource in page.resources}
    listed = json.loads(stored.read(resources["runs.json"], {}))
    (summary,) = listed["runs"]
    assert (summary["family"], summary["kinds"], summary["subject"]) == ("recall", [], "pairs to recall")
    assert summary["phase_names"] == ["guessing", "choosing", "recalling"]
    assert listed["families"]["programs"] == ["binding", "code"]
    body = json.loads(stored.read(resources["runs/{run}/trajectory.json"], {"run": "recall-small"}))
    assert body["coords"]["split"]["values"] == ["test", "last"]
    assert "phase_recalling" in body["attrs"]
    assert body["command"] == f"bindscope trajectory recall-small --family {RECALL}"
    assert f'open_run("recall-small", family="{RECALL}")' in body["python"]
    with pytest.raises(Missing, match="a run of the family 'recall' has no such page"):
        stored.read(resources["runs/{run}/claims.json"], {"run": "recall-small"})
    for resource in resources.values():
        for parameters in resource.instances(lab) if "run" in resource.names else ():
            assert stored.read(resource, parameters)


def test_a_notebook_opens_it(trained: Path) -> None:
    view = bindscope.open_run(trained, family=RECALL)
    assert list(view.trajectory().split.values) == ["test", "last"]
    assert set(view.phases().phase.values) <= {"guessing", "choosing", "recalling"}
    assert view.trajectory().plot().axes
    with pytest.raises(AttributeError, match="its task is recall; 'predict' is for runs on programs"):
        view.predict("a3 c7 b1 d9 | c")


def test_the_command_that_trains_it_again_names_the_family(trained: Path) -> None:
    from bindscope.studies.framework.command import find_command

    load_family(RECALL)
    assert find_command(Run.open(trained)).endswith(f"--family {RECALL}")


def test_a_process_that_trains_for_a_sweep_finds_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bindscope.runs.sweep import train_sweep

    monkeypatch.setenv(families.VARIABLE, RECALL)
    small = {"training.steps": 2, "training.evaluation_size": 10}
    (ended,) = train_sweep([override(find_preset("recall-small").config, small)], tmp_path)
    assert ended.status == "finished"


def test_an_installed_package_brings_its_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples" / "recall.py", tmp_path / "recall_package.py")
    info = tmp_path / "recall_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: recall-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bindscope.families]\nrecall = recall_package:RecallFamily\n")
    monkeypatch.syspath_prepend(tmp_path)
    families.installed_families.cache_clear()
    assert find_family("recall").origin == "the package recall-package"
    assert "recall-small" in PRESETS
    assert find_family("recall").location == ""  # it is found by itself


def test_a_package_that_cannot_be_loaded_hurts_nobody_who_does_not_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bindscope.families]\nbroken = no_such_module:Family\n")
    monkeypatch.syspath_prepend(tmp_path)
    families.installed_families.cache_clear()
    assert "binding-tiny" in PRESETS
    with pytest.raises(BindscopeError, match="the family 'broken' of the package broken cannot be loaded"):
        find_family("broken")


@pytest.mark.parametrize(
    ("position", "said"),
    [
        ("nowhere.py:Family", "there is no file nowhere.py"),
        (f"{ROOT}/examples/recall.py", "say which class in it is the family"),
        (f"{ROOT}/examples/recall.py:RecalFamily", "Did you mean 'RecallFamily'"),
        ("no_such_module:Family", "the module no_such_module cannot be loaded: ModuleNotFoundError"),
        ("recal", "there is no family 'recal'"),
    ],
)
def test_a_family_that_is_not_there_is_refused_with_a_hint(
    position: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, "runs", "--family", position)


def test_a_file_that_fails_says_at_which_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("x = 1\ny = x / 0\n")
    said = refusal(capsys, "runs", "--family", f"{tmp_path}/mine.py:Mine")
    assert "mine.py cannot be loaded, line 2: ZeroDivisionError: division by zero." in said


def test_two_families_cannot_have_one_name() -> None:
    class Binding(Family):
        task = BindingTask

    with pytest.raises(BindscopeError, match="a family 'binding' comes with Bindscope already"):
        register_family(Binding)
    with pytest.raises(BindscopeError, match="'task' must be the dataclass of its tasks"):
        register_family(Family)
