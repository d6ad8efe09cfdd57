"""Evaluations leave for other tools as the numbers they are."""

from __future__ import annotations

import csv
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bindscope.cli.main import run as run_command
from bindscope.runs.directory import Run
from bindscope.runs.exchange import crc32c, read_numbers, write_csv, write_tensorboard
from bindscope.runs.locate import SHIPPED_DIRECTORY
from rewriting import rewrite_metrics

SHIPPED = SHIPPED_DIRECTORY / "assign-add"


@pytest.fixture
def run() -> Run:
    return Run.open(SHIPPED)


def test_the_checksum_is_castagnolis() -> None:
    """Known values of RFC 3720, B.4."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_a_known_record_byte_by_byte(tmp_path: Path) -> None:
    made = SimpleNamespace(
        path=tmp_path, metrics=[{"step": 300, "elapsed": 2.0, "test": {"accuracy": 0.5, "ok": True}}]
    )
    content = write_tensorboard(made, tmp_path).read_bytes()  # type: ignore[arg-type]
    version = bytes.fromhex("09" + "00" * 8) + b"\x1a\x0dbrain.Event:2"
    assert content[:12] == bytes.fromhex("1800000000000000") + bytes.fromhex(
        "a37f4b22"
    )  # as TensorFlow begins any file
    assert content[12:36] == version
    event = content[40 + 12 : -4]
    assert event[:9] == b"\x09" + struct.pack("<d", 2.0)
    assert event[9:12] == b"\x10\xac\x02"  # 300 as 0b0000010_0101100
    assert event[12] == 0x2A
    assert event[14:] == (
        b"\x0a\x0e\x0a\x07elapsed\x15" + struct.pack("<f", 2.0) + b"\x0a\x14\x0a\x0dtest/accuracy\x15" + struct.pack("<f", 0.5)
    )  # fmt: skip


def test_tensorboard_reads_every_number(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write_tensorboard(run, tmp_path)
    events = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0}).Reload()
    rows = read_numbers(run)
    wanted = sorted({name for _, numbers in rows for name in numbers})
    assert sorted(events.Tags()["scalars"]) == wanted
    for name in (wanted[0], "0add/accuracy", wanted[-1]):
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert found == [(step, pytest.approx(numbers[name])) for step, numbers in rows if name in numbers]


def test_csv_has_every_number_exactly(run: Run, tmp_path: Path) -> None:
    with write_csv(run, tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, (step, numbers) in zip(rows, read_numbers(run), strict=True):
        assert int(row.pop("step")) == step
        assert {name: float(text) for name, text in row.items() if text} == numbers


def test_wandb_gets_them_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    logged: list[tuple[dict[str, float], int]] = []
    started: dict[str, Any] = {}

    def init(**settings: Any) -> Any:
        started.update(settings)
        return SimpleNamespace(log=lambda numbers, step: logged.append((numbers, step)), finish=lambda: None)

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))  # type: ignore[arg-type]
    assert run_command(["export-metrics", "assign-add", str(tmp_path), "--to", "wandb"]) == 0
    assert started["mode"] == "offline"
    assert started["config"] == run.manifest.config
    assert logged == [(numbers, step) for step, numbers in read_numbers(run)]
    monkeypatch.setitem(sys.modules, "wandb", None)  # type: ignore[arg-type]
    assert run_command(["export-metrics", "assign-add", str(tmp_path), "--to", "wandb"]) == 2
    assert capsys.readouterr().err.startswith("bindscope: wandb is not installed;")


def test_a_run_without_evaluations_is_refused_and_nothing_is_written(tmp_path: Path, capsys: Any) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "manifest.json").write_bytes((SHIPPED / "manifest.json").read_bytes())
    rewrite_metrics(empty, "")
    assert run_command(["export-metrics", str(empty), str(tmp_path / "logs")]) == 2
    assert "no evaluation was recorded yet" in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()
