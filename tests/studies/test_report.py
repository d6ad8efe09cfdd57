"""A report is one sound HTML file that says what was measured and trusts nothing it is given."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.binding.phases import PhaseCriterion
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.studies.plots.html import element
from bindscope.studies.plots.report import (
    ExampleProgram,
    Prediction,
    ReportedRun,
    Section,
    render_reports,
)
from measures.simulated_runs import SimulatedRun
from studies.test_trajectory import sums_records, templates_records

VOID = {"meta", "link", "br", "hr", "img", "input"}
DATASET = trajectory_dataset(SimulatedRun().records(), family="binding")
CONFIG = {"task": {"family": "binding", "lines": 6}, "training": {"steps": 2000, "stop_at": None}}
EXAMPLE = ExampleProgram(
    text="a=5\nb=7\nc=b\n#c:",
    answer="7",
    heuristic="5",
    remark="depth 2",
    predictions=(Prediction(0, "\n"), Prediction(500, "5", 0.8), Prediction(2000, "7", 0.99)),
)


class Checked(HTMLParser):
    """Reads a page and keeps what a browser would need to know about it; unbalanced tags fail."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action"):
                self.addresses.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def render_report(title, dataset, config, phases=None, sections=(), **more) -> str:
    found = phases_of(dataset) if phases is None else phases
    return render_reports(title, [ReportedRun(title, dataset, config, found, sections=sections, **more)])


@cache
def full_report() -> str:
    section = Section("Seeds", ("Three seeds agree.",), ("seed", "steps"), (("0", "1,800"), ("1", "2,700")))
    command = "bindscope train binding-tiny --seed 0"
    return render_report("binding-tiny", DATASET, CONFIG, None, [section], command=command, examples=[EXAMPLE])


def test_a_report_is_sound_html_with_unique_ids_and_references_that_exist():
    page = full_report()
    checked = Checked(page)
    assert len(checked.ids) == len(set(checked.ids))
    referred = {address[1:] for address in checked.addresses if address.startswith("#")}
    referred |= set(re.findall(r"url\(#([^)]+)\)", page))
    assert referred
    assert referred <= set(checked.ids)
    assert checked.tags.count("svg") == 6


def test_a_report_fetches_nothing_and_runs_nothing():
    page = full_report()
    checked = Checked(page)
    assert all(address.startswith(("#", "data:")) for address in checked.addresses)
    assert "http" not in page
    assert "@import" not in page
    assert "script" not in checked.tags


def test_a_report_says_the_numbers_phases_criterion_command_and_settings():
    text = Checked(full_report()).text
    for phase in phases_of(DATASET):
        assert f"{phase.first_step:,} – {phase.last_step:,}" in text
    for sentence in PhaseCriterion().describe().values():
        assert sentence in text
    assert "bindscope train binding-tiny --seed 0" in text
    assert "task.lines 6" in text
    assert "training.stop_at none" in text
    assert "Three seeds agree." in text
    assert "2,700" in text


def test_phases_a_run_never_had_are_named_as_not_reached():
    text = Checked(
        render_report(
            "stuck", trajectory_dataset(SimulatedRun(500, masters=(None,) * 3).records(), family="binding"), {}
        )
    ).text
    assert "systematic not reached" in text
    assert "still answers from the first lines" in text


def test_examples_tell_right_heuristic_and_neither_apart_without_colour():
    page = full_report()
    assert 'class="chain" title="step 2,000: 7 (right), probability 0.99"' in page
    assert 'class="heuristic" title="step 500: 5 (line 1), probability 0.80"' in page
    assert 'class="neither" title="step 0: \\n (neither)"' in page


def test_everything_given_is_escaped():
    evil = "<script>alert('&')</script>"
    example = ExampleProgram(evil, evil, (Prediction(0, evil),), evil, evil)
    section = Section(evil, (evil,), (evil,), ((evil,),))
    page = render_report(evil, DATASET, {evil: evil}, (), [section], command=evil, examples=[example])
    assert "script" not in Checked(page).tags
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 10


def test_attributes_are_escaped_too():
    assert element("p", "x", title='"><b>') == '<p title="&quot;&gt;&lt;b&gt;">x</p>'


@pytest.mark.parametrize(
    ("family", "records"),
    [
        ("binding", SimulatedRun(0).records()),
        ("assign_add", sums_records()),
        ("templates", templates_records()),
        ("templates", templates_records(real=False)),
    ],
    ids=["one evaluation", "assign and add", "real templates", "symbolic templates"],
)
def test_every_family_has_a_report(family, records):
    checked = Checked(render_report("a run", trajectory_dataset(records, family=family), {}))
    assert len(checked.ids) == len(set(checked.ids))
    assert "nan" not in re.findall(r"\w+", checked.text.lower())


def test_several_runs_are_compared_and_then_shown_apart():
    runs = [
        ReportedRun(f"seed {seed}", dataset, {"seed": seed}, phases_of(dataset))
        for seed in (0, 1)
        for dataset in [trajectory_dataset(SimulatedRun(seed=seed).records(), family="binding")]
    ]
    checked = Checked(render_reports("two seeds", runs))
    assert len(checked.ids) == len(set(checked.ids))
    assert {"#run1", "#run2"} <= set(checked.addresses)
    assert checked.tags.count("article") == 2


def test_a_report_of_nothing_is_refused():
    with pytest.raises(BindscopeError, match="no run given"):
        render_reports("empty", [])


def test_dark_paper_has_its_own_colours():
    page = full_report()
    assert page.count("prefers-color-scheme: dark") == 2
    used = set(re.findall(r"var\(--([\w-]+)\)", page))
    defined = set(re.findall(r"--([\w-]+):", page))
    assert used <= defined
