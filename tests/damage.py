"""What can happen to a file of a run: every kind of damage, done to it on purpose."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

KINDS = ("bit flipped", "cut", "empty", "directory", "pipe", "link", "of another run", "gone")


def damage_file(path: Path, kind: str, other: Path, rng: random.Random) -> None:
    """Damage a file in one of ``KINDS``; ``other`` is the same file of another run, or what a link leads to.

    >>> damage_file(run / "manifest.json", "cut", other / "manifest.json", random.Random(0))
    """
    content = path.read_bytes()
    path.unlink()
    if kind == "bit flipped":
        bit = rng.randrange(8 * len(content))
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
    elif kind in ("cut", "empty"):
        path.write_bytes(content[: len(content) // 2 if kind == "cut" else 0])
    elif kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(other)
    elif kind == "of another run":
        shutil.copyfile(other, path)
