"""The generated pages say everything: every site in the drawing, every saved result with all of its variables."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from bindscope.cli.result_schemas import describe_results
from bindscope.cli.site_diagram import HEIGHT, PILL, WIDTH, draw_sites
from bindscope.model.sites import KINDS
from bindscope.runs.locate import find_run
from bindscope.runs.results import read_result
from bindscope.studies.framework.verify import all_studies

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def results_page() -> str:
    return describe_results()


def test_the_diagram_shows_every_site_of_layers_in_sequence_and_in_parallel() -> None:
    drawn = list(ElementTree.fromstring(draw_sites()))
    assert {word.text for word in drawn[1:] if word.tag == f"{SVG}text"} >= set(KINDS)
    halves: dict[bool, set[str | None]] = {False: set(), True: set()}
    for pill, word in pairwise(drawn):
        if pill.get("fill") == PILL:
            halves[float(pill.get("x", 0)) > WIDTH * 0.39].add(word.text)
    assert halves[False] == set(KINDS)
    assert halves[True] == set(KINDS) - {"resid_mid"}


def test_nothing_of_the_diagram_lies_outside_it() -> None:
    for shape in ElementTree.fromstring(draw_sites()).iter(f"{SVG}rect"):
        x, y, width, height = (float(shape.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH
        assert 0 <= y <= y + height <= HEIGHT


def test_every_result_that_is_saved_is_described(results_page: str) -> None:
    described = re.findall(r"^### (\w+): ([\w-]+)$", results_page, flags=re.MULTILINE)
    assert described == [
        (study.family, result.name) for study in all_studies() for result in study.results if result.kept
    ]


def test_the_description_of_a_result_names_all_of_its_variables_and_dimensions(results_page: str) -> None:
    section = results_page.split("### binding: chain\n")[1].split("###")[0]
    chain = read_result(find_run("binding-neutral") / "results" / "chain.nc")
    named = set(re.findall(r"`(\w+)`", section))
    assert named >= set(chain.dims)
    for name in map(str, chain.data_vars):
        assert name in named or (name.endswith(("_low", "_high")) and name.rpartition("_")[0] in named)


def test_a_saved_result_has_the_attributes_that_the_page_lists(results_page: str) -> None:
    listed = re.findall(r"`(\w+)`", results_page.split("| attribute |")[1].split("\n\n")[0])
    saved = read_result(find_run("assign-add") / "results" / "progress.nc")
    assert set(listed[:7]) <= set(saved.attrs)
    assert {"result_stem", "checkpoint", "measured_on", "dtype"} <= set(listed)
    assert "result_stem" in saved.attrs
    assert "checkpoint" in saved.coords
