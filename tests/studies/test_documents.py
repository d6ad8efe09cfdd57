"""A claim as a TOML document: what it says is what is judged, and what it gets wrong is one sentence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.framework.claims import Finding
from bindscope.studies.framework.documents import Document, claim_to_toml, read_documents
from bindscope.studies.framework.quantities import fraction_of
from bindscope.studies.framework.verify import all_studies, find_claim

HEAD = """\
[[claim]]
id = "mine"
title = "T"
statement = "S"
source = "me"
figure = "80 %"
fixed = {on = 2026-11-18, seen = "nothing"}
"""
CRITERION = """
[[claim.criterion]]
result = "r"
variable = "x"
select = {where = "on"}
at_least = 0.8
"""
CONTROL = """
[[claim.control]]
result = "r"
variable = "x"
select = {where = "off"}
at_most = 0.1
"""
REQUIRES = """
[[claim.requires]]
result = "r"
variable = "x"
select = {where = "all"}
at_least = 0.9
"""


def read(text: str, folder: Path) -> list[Document]:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_documents(path, find_claim)


def judge(text: str, folder: Path, n: int = 200, **values: float) -> Finding:
    cells = [fraction_of("", value, n) for value in values.values()]
    columns: dict[str, Any] = {"x": [cell.value for cell in cells]}
    columns |= {"x_low": [cell.low for cell in cells], "x_high": [cell.high for cell in cells]}
    dataset = xr.Dataset({name: ("where", np.array(column)) for name, column in columns.items()}, {"where": [*values]})
    (document,) = read(text, folder)
    return document.claim.judge({"r": dataset})


@pytest.mark.parametrize(
    ("on", "off", "able", "verdict"),
    [
        (0.95, 0.01, 0.99, "replicates"),
        (0.5, 0.01, 0.99, "differs"),
        (0.8, 0.01, 0.99, "inconclusive"),
        (0.95, 0.4, 0.99, "differs"),
        (0.95, 0.1, 0.99, "inconclusive"),
        (0.95, 0.01, 0.5, "not testable"),
        (0.95, 0.01, 0.9, "inconclusive"),
        (0.95, float("nan"), 0.99, "inconclusive"),
    ],
)
def test_the_four_verdicts_are_those_of_intervals_and_of_a_control_that_can_fail(
    on: float, off: float, able: float, verdict: str, tmp_path: Path
) -> None:
    finding = judge(HEAD + REQUIRES + CRITERION + CONTROL, tmp_path, on=on, off=off, all=able)
    assert finding.verdict == verdict


def test_a_control_that_fails_is_said_first(tmp_path: Path) -> None:
    finding = judge(HEAD + CRITERION + CONTROL, tmp_path, on=0.95, off=0.5)
    assert finding.reason.startswith("The criterion is met, but its control is not: X of r at where off 50 %")


def test_the_criterion_is_told_in_words_with_since_when_it_stands(tmp_path: Path) -> None:
    (document,) = read(HEAD + CRITERION + CONTROL, tmp_path)
    claim = document.claim
    assert claim.criterion == "x of r at where on is at least 0.8."
    assert claim.control_description == "x of r at where off is at most 0.1."
    assert str(claim.fixed) == "2026-11-18, having seen nothing"
    assert (claim.results, claim.source, claim.paper) == (("r",), "me", "80 %")


def test_every_shipped_claim_prints_as_a_document_that_reads_back_to_it(tmp_path: Path) -> None:
    for study in all_studies():
        text = "\n".join(claim_to_toml(claim, study.source) for claim in study.claims)
        documents = read(text, tmp_path)
        for document, claim in zip(documents, study.claims, strict=True):
            found = document.claim
            assert found.judge is claim.judge
            assert found.draw is claim.draw
            for name in (
                "id",
                "title",
                "statement",
                "paper",
                "measure",
                "criterion",
                "control_description",
                "results",
                "fixed",
            ):
                assert getattr(found, name) == getattr(claim, name)
            assert found.source == study.source


def test_words_that_a_shipped_judge_does_not_go_by_are_refused(tmp_path: Path) -> None:
    text = claim_to_toml(find_claim("VB3"), "paper")
    with pytest.raises(BindscopeError, match=r"criterion: VB3 judges by its own, which differs"):
        read(text.replace("reach 80 %", "reach 10 %"), tmp_path)
    with pytest.raises(BindscopeError, match=r"fixed: the criterion of VB3 was fixed 2026-11-17"):
        read(text.replace("fixed = {on = 2026-11-17", "fixed = {on = 2020-01-01"), tmp_path)


def test_a_judge_is_looked_up_and_never_loaded(tmp_path: Path) -> None:
    with pytest.raises(BindscopeError, match=r"mine: there is no claim 'os:system'"):
        read(HEAD + 'judge = "os:system"\n', tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begin each claim with [[claim]]."),
        ('title = "x"\n' + HEAD + CRITERION + CONTROL, "'title' stands outside of one."),
        (HEAD.replace('figure = "80 %"', "figure = 80") + CRITERION + CONTROL, "mine: figure: a text is needed"),
        (HEAD.replace('source = "me"\n', "") + CRITERION + CONTROL, "mine: source: a text is needed"),
        (HEAD.replace("title =", "titel =") + CRITERION + CONTROL, "there is no key 'titel'. Did you mean 'title'?"),
        (HEAD.replace('"mine"', '"a/b"') + CRITERION + CONTROL, "id: letters, digits"),
        (HEAD.replace("2026-11-18", '"today"') + CRITERION + CONTROL, "'on' is a date without quotes"),
        (HEAD.replace('seen = "nothing"', 'seen = ""') + CRITERION + CONTROL, "'seen' is a text"),
        (
            HEAD.replace('fixed = {on = 2026-11-18, seen = "nothing"}\n', "") + CRITERION + CONTROL,
            "fixed: say since when",
        ),
        (HEAD + CRITERION, "control: it is missing, and a claim without a control that can fail shows nothing"),
        (HEAD + CONTROL, "criterion: it is missing"),
        (HEAD + CRITERION.replace("at_least = 0.8\n", "") + CONTROL, "criterion 1: there is no comparison"),
        (HEAD + CRITERION.replace("0.8", '"0.8"') + CONTROL, "at_least: a number is needed, not '0.8'."),
        (HEAD + CRITERION.replace("0.8", "nan") + CONTROL, "at_least: a number is needed, not nan."),
        (HEAD + CRITERION.replace("0.8", "true") + CONTROL, "at_least: a number is needed, not True."),
        (HEAD + CRITERION.replace('result = "r"\n', "") + CONTROL, "name what it reads"),
        (HEAD + CRITERION.replace('variable = "x"\n', "") + CONTROL, "variable: name the number to read"),
        (HEAD + CRITERION.replace("at_least", "at_leats") + CONTROL, "'at_leats'. Did you mean 'at_least'?"),
        (HEAD + CRITERION + 'reduce = ["median over x"]\n' + CONTROL, "reduce: 'median over x' is not"),
        (HEAD + CRITERION + "ask = {n = 2}\n" + CONTROL, "ask: these are the settings of a question"),
        (HEAD + CRITERION + "n = 0\n" + CONTROL, "n: at least 1."),
        (HEAD + CRITERION.replace('"on"', "[]") + CONTROL, "select: no where is listed."),
        (HEAD + CRITERION.replace('"on"', "{}") + CONTROL, "a range of where is written {from = 1, to = 3}."),
        (HEAD + CRITERION + CRITERION.replace("criterion", "control"), "control 1: the criterion asks the same"),
        (HEAD + 'criterion = "words"\n', "criterion: write each of its terms under [[claim.criterion]]."),
        (HEAD + CRITERION + CONTROL + HEAD + CRITERION + CONTROL, "two claims are called 'mine'."),
        ("[[claim]\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_document_is_one_sentence_with_its_file(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BindscopeError) as problem:
        read(text, tmp_path)
    sentence = str(problem.value)
    assert sentence.startswith(f"{tmp_path / 'mine.toml'}: ")
    assert said in sentence
    assert "\n" not in sentence


def test_a_printed_document_is_plain_toml() -> None:
    table = tomllib.loads(claim_to_toml(find_claim("vb6"), "paper"))
    assert table["claim"][0]["judge"] == "VB6"


def test_a_term_that_asks_a_question_is_called_by_the_question(tmp_path: Path) -> None:
    ask = 'question = "ablate"\nask = {sites = ["L0.H0", "L1.H1"], first_root_line = 3}'
    (document,) = read(HEAD + CRITERION.replace('result = "r"\nvariable', ask + "\nvariable") + CONTROL, tmp_path)
    (term,) = document.terms.criterion
    assert str(term).startswith("x of ablate (sites L0.H0 + L1.H1, first root line 3) at ")
    assert term.result == document.asked[0].name
