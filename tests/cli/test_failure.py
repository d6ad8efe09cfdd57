from __future__ import annotations

import errno

import pytest

from bindscope.cli.failure import Interrupted, guard
from bindscope.cli.main import COMMANDS, run
from bindscope.errors import BindscopeError


def fail(problem: BaseException) -> None:
    raise problem


def test_a_problem_a_person_can_fix_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(lambda: fail(BindscopeError("line 3: 'q' is used before it is assigned."))) == 2
    captured = capsys.readouterr()
    assert captured.err == "bindscope: line 3: 'q' is used before it is assigned.\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a.safetensors"), "a.safetensors: no space left on the disk"),
        (PermissionError(errno.EACCES, "Permission denied", "/srv/x"), "/srv/x: permission denied."),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "out"), "out: is a directory."),
    ],
)
def test_what_the_system_refuses_is_one_sentence(
    problem: OSError, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard(lambda: fail(problem)) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "problem", [MemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.")]
)
def test_want_of_memory_is_one_sentence(problem: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(lambda: fail(problem)) == 2
    assert capsys.readouterr().err == "bindscope: not enough memory; use a smaller model, batch or evaluation.\n"
    with pytest.raises(RuntimeError, match="shapes"):
        guard(lambda: fail(RuntimeError("shapes differ")))


def test_an_interruption_says_what_to_do_next_and_exits_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(lambda: fail(Interrupted("stopped at step 3; go on with 'bindscope resume x'."))) == 130
    assert "bindscope resume x" in capsys.readouterr().err
    assert guard(lambda: fail(KeyboardInterrupt())) == 130


def test_a_mistake_in_bindscope_itself_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        guard(lambda: 1 // 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], "there is no command 'trian'. Did you mean 'train'?"),
        (["--hlp"], "there is no option '--hlp'. Did you mean '--help'?"),
        (["--quick"], "there is no option '--quick'. Known: --help, --version, -h."),
        (["train", "binding-tiny", "--sed", "3"], "unknown option: --sed. Did you mean --seed?"),
        (["train", "binding-tiny", "--seed", "x"], 'unable to convert "x" into int.'),
        (["train", "binding-tiny", "--device", "gpu"], "Choose from"),
        (["train", "binding-tiny", "--seed"], "--seed needs a value after it."),
        (["train", "binding-tiny", "extra"], "unexpected argument: extra."),
        (["evaluate"], "RUN is missing."),
        (["import", "models"], "--as is missing. See 'bindscope import --help'."),
        (["import", "models", "--as"], "--as needs a value after it."),
        (["import", "models", "--ass", "mine"], "unknown option: --ass. Did you mean --as?"),
        (["import", "models", "--as", "mine"], "models: no such file or directory"),
    ],
)
def test_a_typing_mistake_is_one_sentence_with_the_nearest_known_word(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.startswith("bindscope: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_no_word_at_all_shows_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in COMMANDS)
