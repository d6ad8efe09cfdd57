"""A command that torchrun started in several processes speaks with one voice: what all refuse is said once.

torchrun ends with exit code 1 and a traceback of its own whenever one of its processes fails; no process can change that.
What a process can do is to leave with its own exit code, which torchrun reports, and to leave its sentence where torchrun
looks for the cause, so that its report ends with the sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

SECONDS = 20  # that another process has to say what it was the first to claim


def started_by_torchrun(environment: Mapping[str, str] = os.environ) -> bool:
    return "TORCHELASTIC_RUN_ID" in environment


def is_first(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process speaks for all: it is alone, or the first of several."""
    return environment.get("RANK", "0") == "0"


def say_once(sentence: str, say: Callable[[str], None]) -> None:
    """Say a sentence unless another process, or an earlier attempt of this one, has said the same."""
    _leave_for_torchrun(sentence)
    store = _open_store()
    if store is None:
        say(sentence)
        return
    key = f"bindscope/said/{hashlib.sha256(sentence.encode()).hexdigest()}"
    if store.add(key, 1) == 1:
        say(sentence)
        store.set(f"{key}/done", "")
        return
    with suppress(RuntimeError):  # whoever claimed it was ended before it spoke
        store.wait([f"{key}/done"], timedelta(seconds=SECONDS))
        return
    say(sentence)


def _open_store() -> Any:
    """The store that torchrun itself keeps for its processes; None where it keeps none, or cannot be reached."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    from torch.distributed import TCPStore

    with suppress(RuntimeError, KeyError, ValueError):
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return TCPStore(address, port, is_master=False, timeout=timedelta(seconds=SECONDS))
    return None


def _leave_for_torchrun(sentence: str) -> None:
    """In the file that torchrun names for it: the form in which it expects a message, its traceback being the sentence."""
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not file:
        return
    told = {"py_callstack": f"bindscope: {sentence}", "timestamp": str(int(time.time()))}
    with suppress(OSError):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(json.dumps({"message": {"message": sentence, "extraInfo": told}}))
