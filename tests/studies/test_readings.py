"""Figures that say what is pointed at: every curve, bar, dot and cell, where it is drawn, and without a script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.readings import MOST, Reading, read_figure, readable_svg
from bindscope.studies.plots.style import new_figure


def readings_of(figure: Figure) -> list[Reading]:
    figure.set_dpi(72)
    figure.draw_without_rendering()
    return list(read_figure(figure, figure.get_tightbbox()))


def test_each_cell_of_a_heat_map_is_named_by_its_ticks_and_stands_where_it_is_drawn() -> None:
    cells = np.array([[0.25, 0.5, np.nan], [1.0, 0.0, 0.125]])
    with new_figure(4, 2) as figure:
        axes = figure.add_subplot()
        mesh = draw_cells(axes, cells, rows=["L0", "L1"], columns=["a", "b", "c"], top_down=True)
        axes.set_xlabel("token")
        add_colour_bar(axes, mesh, "effect")
    found = {reading.text: reading for reading in readings_of(figure)}
    assert list(found) == [
        "L0, token a: 0.25", "L0, token b: 0.5", "L1, token a: 1", "L1, token b: 0", "L1, token c: 0.125",
    ]  # fmt: skip
    first, right, below = found["L0, token a: 0.25"], found["L0, token b: 0.5"], found["L1, token a: 1"]
    assert right.left == pytest.approx(first.left + first.width)
    assert below.top == pytest.approx(first.top + first.height)
    assert first.width * 3 == pytest.approx(axes.bbox.width)


def test_points_of_a_curve_have_its_name_and_the_units_of_their_axes() -> None:
    with new_figure(4, 2) as figure:
        axes = figure.add_subplot()
        axes.plot([0, 100, 1000], [0.1, 0.5, 0.991], label="depth 2")
        axes.axhline(0.1)  # a reference has nothing to read
        axes.set_xlabel("training step")
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_ylabel("accuracy")
    assert [reading.text for reading in readings_of(figure)] == [
        "depth 2: training step 0, accuracy 10.0 %",
        "depth 2: training step 100, accuracy 50.0 %",
        "depth 2: training step 1,000, accuracy 99.1 %",
    ]


def test_bars_and_dots_and_images_are_read_too() -> None:
    with new_figure(6, 2) as figure:
        bars, dots, image = figure.subplots(1, 3)
        bars.bar([0, 1], [3, 5])
        bars.set_xticks([0, 1], ["random", "found"])
        dots.scatter([0.5], [0.25], label="seed 1")
        image.imshow(np.array([[1.0, 2.0]]))
        image.set_xticks([0, 1], ["k", "="])
        image.set_yticks([0], ["c"])
    texts = [reading.text for reading in readings_of(figure)]
    assert texts == ["random: 3", "found: 5", "seed 1: 0.5, 0.25", "c, k: 1", "c, =: 2"]


def test_what_lies_outside_of_the_axes_cannot_be_pointed_at() -> None:
    with new_figure(3, 2) as figure:
        axes = figure.add_subplot()
        axes.plot([0, 1, 2, 30], [0, 1, 2, 30])
        axes.set_xlim(0, 2.5)
        axes.set_ylim(0, 2.5)
    assert len(readings_of(figure)) == 3


def test_the_drawing_has_no_script_fetches_nothing_and_escapes_what_it_says() -> None:
    with new_figure(3, 2) as figure:
        figure.add_subplot().bar(["<k>"], [1])
    svg = readable_svg(figure, "b", "one bar")
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    assert "<k>: 1" in "".join(root.itertext())
    assert not re.search(r"<script|https?:|on\w+=", svg)
    width = float(root.attrib["viewBox"].split()[2])
    said = root.findall(".//g[@class='bindscope-reading']/g/rect")
    assert len(said) == 1
    assert 0 <= float(said[0].attrib["x"]) <= width - float(said[0].attrib["width"]) + 0.1


def test_a_figure_of_too_many_cells_is_drawn_without_words() -> None:
    with new_figure(3, 2) as figure:
        draw_cells(figure.add_subplot(), np.zeros((2, MOST)))
    assert "bindscope-reading" not in readable_svg(figure, "b", "cells")
    assert figure.dpi == 100  # as it was
