"""Run a long step of the installation and say how far it is, without its chatter.

    python release/quietly.py TITLE LOG COMMAND ...

On a terminal one line shows the seconds and what is being done; elsewhere one line says what begins and one
what ended. The command's whole output is in LOG; its last lines are shown when it fails, with its exit code.
It runs before anything is installed: the standard library alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

LAST_LINES = 30
WIDTH = 78
STAGES = (  # what pip says, and what that means to a person
    (r"Collecting ([\w.-]+)", "looking up {}"),
    (r"Downloading (?:\S+/)?([A-Za-z0-9_.]+?)-\d\S* \(([\d.]+ .B)\)", "fetching {} ({})"),
    (r"Using cached ([A-Za-z0-9_.]+?)-\d", "found {}"),
    (r"Building editable for (\S+)", "building the page of {}"),
    (r"Installing build dependencies", "fetching what builds the page"),
    (r"Installing collected packages", "unpacking the packages"),
)


def main(title: str, log: Path, command: list[str]) -> int:
    """The exit code of the command."""
    began = time.monotonic()
    terminal = sys.stdout.isatty()
    if not terminal:
        print(f"{title} …", flush=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            while process.poll() is None:
                if terminal:
                    _show(f"{title}: {time.monotonic() - began:3.0f} s  {stage_of(_read(log))}")
                time.sleep(0.2)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            _show("")
            return 130
    if terminal:
        _show("")
    if process.returncode:
        lines = _read(log).splitlines()[-LAST_LINES:]
        print("\n".join(lines), f"\n{title} failed; all it said is in {log}.", sep="\n", file=sys.stderr)
    else:
        print(f"{title}: done in {time.monotonic() - began:.0f} s", flush=True)
    return process.returncode


def stage_of(text: str) -> str:
    """What the last line of pip's that means something says.

    >>> stage_of("Collecting torch\\n  Downloading torch-2.13.0-cp311-cp311-linux.whl (190.1 MB)\\n")
    'fetching torch (190.1 MB)'
    """
    for line in reversed(text.splitlines()):
        for pattern, words in STAGES:
            found = re.search(pattern, line)
            if found:
                return words.format(*found.groups())
    return ""


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _show(line: str) -> None:
    print(f"\r{line[:WIDTH]:{WIDTH}}" + ("" if line else "\r"), end="", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: python release/quietly.py TITLE LOG COMMAND ...")
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
