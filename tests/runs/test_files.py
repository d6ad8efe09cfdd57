from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.errors import BindscopeError
from bindscope.runs.files import append_line, read_json, read_verified, write_atomically


def fail_with(number: int):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_is_replaced_whole_and_its_hash_returned(tmp_path):
    path = tmp_path / "file"
    for content in (b"old", b"newer"):
        assert write_atomically(path, content) == hashlib.sha256(content).hexdigest()
        assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("operation", ["fsync", "replace"])
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_keeps_the_old_content_and_leaves_no_rubbish(tmp_path, monkeypatch, operation, problem):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, operation, fail_with(problem))
    expected = "no space left" if problem == errno.ENOSPC else "cannot be written"
    with pytest.raises(BindscopeError, match=expected):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_line_that_cannot_be_added_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    append_line(path, "first")
    monkeypatch.setattr(os, "fsync", fail_with(errno.ENOSPC))
    with pytest.raises(BindscopeError, match="no space left"):
        append_line(path, "second")
    assert path.read_bytes() == b"first\n"


def test_a_real_limit_on_file_size_is_one_sentence(tmp_path):
    """Another process is allowed files of 1000 bytes and asked to write 5000."""
    program = (
        "import resource, sys; from pathlib import Path; from bindscope.runs.files import write_atomically\n"
        "from bindscope.errors import BindscopeError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_atomically(Path(sys.argv[1]), b'x' * 5000)\n"
        "except BindscopeError as error: print(error)\n"
    )
    path = tmp_path / "file"
    path.write_bytes(b"old")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, env=environment)
    assert done.stdout.startswith(f"{path}: no space left to write it")
    assert done.stderr == ""
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_missing_and_damaged_files_are_named(tmp_path):
    path = tmp_path / "manifest.json"
    with pytest.raises(BindscopeError, match=r"manifest.json: the manifest is missing"):
        read_json(path, "the manifest")
    path.write_bytes(b"{\xff")
    with pytest.raises(BindscopeError, match="not valid JSON"):
        read_json(path, "the manifest")
    with pytest.raises(BindscopeError, match=r"the manifest is damaged: its content is not what was recorded"):
        read_verified(path, hashlib.sha256(b"{}").hexdigest(), "the manifest")
    with pytest.raises(BindscopeError, match="cannot be read"):
        read_verified(Path(tmp_path), "", "the manifest")
