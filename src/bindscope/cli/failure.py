"""How a command fails: one sentence on standard error and an exit code, never a traceback for what a person can fix."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from cyclopts.exceptions import CycloptsError, MissingArgumentError, UnknownCommandError, UnusedCliTokensError

from bindscope.cli.one_voice import say_once, started_by_torchrun
from bindscope.errors import BindscopeError, suggest_nearest

OK, REFUSED, INTERRUPTED = 0, 2, 130
UNREAD, TERMINATED = 141, 143  # as of any process whose reader left, or that was told to end
PATIENCE = 20.0  # seconds that a command which was told to end has for it
LAST_RESORT = "told to end"  # the thread that waits for so long, by its name


class Interrupted(Exception):
    """A command was stopped, by whatever is its context; the message says what was kept and how to go on."""


class Terminated(KeyboardInterrupt):
    """The system or another process told the command to end."""


def heed_termination() -> None:
    """Being told to end (SIGTERM) is as Ctrl-C: workers end too and nothing unfinished is left. Told twice, it ends at once.

    Processes of torchrun wait for each other where no handler is called, so they end at once.
    """
    if "RANK" not in os.environ:
        signal.signal(signal.SIGTERM, _terminate)


def guard(action: Callable[[], Any], arguments: Sequence[str] = ()) -> int:
    """Run ``action`` and turn every expected failure into a sentence and an exit code.

    >>> guard(lambda: find_preset("binding-tny"))
    bindscope: there is no preset 'binding-tny'. Did you mean 'binding-tiny'?
    2
    """
    try:
        result = _heeding_the_end(action)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except Interrupted as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            _close_output_quietly()
        return _say(str(stop), _code_of(stop.__context__))
    except KeyboardInterrupt as stop:
        return _say("interrupted; nothing further was written.", _code_of(stop))
    except BindscopeError as problem:
        return _say(str(problem), REFUSED)
    except CycloptsError as problem:
        return _say(describe_usage_error(problem, arguments), REFUSED)
    except BrokenPipeError:
        _close_output_quietly()
        return OK
    except OSError as problem:
        return _say(describe_system_error(problem), REFUSED)
    except (MemoryError, RuntimeError) as problem:
        if not is_want_of_memory(problem):
            raise
        return _say("not enough memory; use a smaller model, batch or evaluation.", REFUSED)


def describe_usage_error(problem: CycloptsError, arguments: Sequence[str] = ()) -> str:
    """What was wrong with the words typed, and where to look."""
    problem.verbose = False
    if isinstance(problem, UnknownCommandError) and problem.unused_tokens and problem.app is not None:
        word = problem.unused_tokens[0]
        flags = {*problem.app.help_flags, *problem.app.version_flags}
        known = flags if word.startswith("-") else [name for name in problem.app if name not in flags]
        kind = "option" if word.startswith("-") else "command"
        return f"there is no {kind} '{word}'.{suggest_nearest(word, known)}"
    if isinstance(problem, UnusedCliTokensError) and problem.unused_tokens:
        extra = shlex.join(problem.unused_tokens)
        return f"unexpected argument: {extra}.{_point_to_help(arguments)}"
    sentence = " ".join(str(problem).split())
    if isinstance(problem, MissingArgumentError) and problem.argument is not None and not problem.tokens_so_far:
        return f"{_describe_missing(problem.argument.names, arguments)}{_point_to_help(arguments)}"
    return f"{sentence[:1].lower()}{sentence[1:]}{_point_to_help(arguments)}"


def describe_system_error(problem: OSError) -> str:
    """What the operating system refused, and on which file."""
    where = f"{problem.filename}: " if problem.filename else ""
    if problem.errno == errno.ENOSPC:
        return f"{where}no space left on the disk; free some and run the command again."
    reason = problem.strerror or str(problem) or type(problem).__name__
    return f"{where}{reason[:1].lower()}{reason[1:]}."


def is_want_of_memory(problem: Exception) -> bool:
    """Whether an allocation failed: Python and numpy have an error of their own for it, torch only has words."""
    return isinstance(problem, MemoryError) or any(
        words in str(problem) for words in ("not enough memory", "out of memory", "Storage size calculation overflowed")
    )


def _describe_missing(names: Sequence[str], arguments: Sequence[str]) -> str:
    """An option that was typed without its value, or something that was not typed at all."""
    typed = [name for name in names if name in arguments]
    return f"{typed[0]} needs a value after it." if typed else f"{names[0]} is missing."


def _point_to_help(arguments: Sequence[str]) -> str:
    command = f" {arguments[0]}" if arguments and not arguments[0].startswith("-") else ""
    return f" See 'bindscope{command} --help'."


def _say(sentence: str, code: int) -> int:
    if started_by_torchrun():
        say_once(sentence, _print)
    else:
        _print(sentence)
    return code


def _print(sentence: str) -> None:
    with suppress(OSError):  # where nobody is listening the exit code still speaks
        print(f"bindscope: {sentence}", file=sys.stderr, flush=True)


def _heeding_the_end(action: Callable[[], Any]) -> Any:
    """Run ``action``; where a library took being told to end for a failure of its own, as torch's readers do, it is that still."""
    try:
        return action()
    except Exception as problem:
        told = any(thread.name == LAST_RESORT for thread in threading.enumerate())
        if told and not isinstance(problem, Interrupted):
            raise Terminated from problem
        raise


def _code_of(cause: BaseException | None) -> int:
    codes = {Terminated: TERMINATED, BrokenPipeError: UNREAD}
    return next((code for kind, code in codes.items() if isinstance(cause, kind)), INTERRUPTED)


def _terminate(number: int, frame: FrameType | None) -> None:
    if frame is not None and (frame.f_code.co_name == "__del__" or frame.f_code.co_filename == weakref.__file__):
        again = threading.Timer(0.01, os.kill, (os.getpid(), number))  # Python ignores what is raised in here
        again.daemon = True
        again.start()
        return
    signal.signal(number, signal.SIG_DFL)
    last_resort = threading.Timer(PATIENCE, os._exit, (TERMINATED,))  # files are whole at every moment
    last_resort.name, last_resort.daemon = LAST_RESORT, True
    last_resort.start()
    raise Terminated


def _close_output_quietly() -> None:
    # The reader of a pipe left (as ``head`` does): point stdout elsewhere so that closing it cannot complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
