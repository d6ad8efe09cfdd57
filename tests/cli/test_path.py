from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal

SMALL = ("--n", "10", "--first-root-line", "1")


def test_each_receiver_is_measured_alone(workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--sender", "L0.H1", "--receiver", "L1.H0.v", "--receiver", "L1.H1.k@rhs 1", "--receiver", "logits")
    found = json.loads(answer(capsys, "path", "small", *SMALL, *words, "--json"))
    assert [cell["receiver"] for cell in found["cells"]] == ["L1.H0.v", "L1.H1.k@rhs 1", "logits"]
    assert "logits: L0.mlp_out, L1.attn_out, L1.mlp_out" in found["frozen"]
    alone = json.loads(answer(capsys, "path", "small", *SMALL, "--sender", "L0.H1", "--receiver", "L1.H0.v", "--json"))
    assert alone["cells"][0]["mean"] == found["cells"][0]["mean"]
    text = answer(capsys, "path", "small", *SMALL, *words, "--out", str(tmp_path / "path.svg"))
    assert "L1.H1.k@rhs 1" in text
    assert (tmp_path / "path.svg").exists()


def test_everything_the_embedding_says_along_all_ways_at_once_is_the_counterfactual(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing between the two ends the path is the whole residual stream."""
    words = ("a=5;b=a;#b:", "a=8;b=a;#b:", "--sender", "embed", "--receiver", "L0.resid_pre")
    (cell,) = json.loads(answer(capsys, "path", "small", *words, "--json"))["cells"]
    assert cell["mean"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sender", "L0.H1"], "name both ends"),
        (["--sender", "L1.H0", "--receiver", "L0.H0.q"], "must be computed after the sender"),
        (["--sender", "L7.H0", "--receiver", "logits"], "in layers L0 to L1"),
        (["--sender", "L0.H0", "--receiver", "L1.H0.w"], "resid_pre, q, k, v"),
        (["--sender", "L0.H0@rhs 9", "--receiver", "logits"], "no position 'rhs 9'"),
        (["--sender", "L0.H0", "--receiver", "logits", "--step", "7"], "the nearest is 8"),
    ],
)
def test_paths_that_do_not_exist_are_refused(
    arguments: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, "path", "small", *SMALL, *arguments)
