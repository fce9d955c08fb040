"""Reports: one HTML page about a model, its charts, and which mistakes it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rc_context
from scipy.sparse import csr_array

from html_page import Page
from longtail import Dataset
from longtail.errors import InputError, MissingExtraError
from longtail.metrics import (
    AtThreshold,
    Difference,
    FrequencyBin,
    ProbabilityBin,
    by_probability,
)
from longtail.report import charts, sections
from longtail.report.answers import MOST_LABELS, MOST_LETTERS, Answered, examples
from longtail.report.mistakes import most_confused, most_missed, sure_and_wrong, without_hit
from longtail.report.page import Bar, Name, figure, key_figures, paragraph, table, write_page

NASTY = """<script>alert("x")</script> & 'co'"""
METRICS = {"P@1": 33.25, "P@5": 14.0, "PSP@1": 19.5, "PSP@5": 22.0, "R@10": 45.0}
BINS = [FrequencyBin(20, 9.25, 0.1, 0.05), FrequencyBin(21, 1.0, 0.04, 0.17)]
THRESHOLDS = [AtThreshold(0.5, 1.25, precision=0.8, recall=0.5)]


def a_training():
    time = {"wall_seconds": 60.0, "cpu_seconds": 110.0}
    stages = ("shared space", "again: shared space")
    return {
        "recipe": "LongtailClassifier",
        "seed": 7,
        "settings": {"dimension": 128, "note": NASTY},
        "n_labels": 104_011,
        "stages": dict.fromkeys(stages, time),
        "wall_seconds": 120.0,
        "cpu_seconds": 220.0,
        "peak_memory_mb": 2100,
        "history": [
            {"stage": stage, "epoch": epoch + 1, "loss": 8.0 / (epoch + 1), "seconds": 1.0}
            for stage in stages
            for epoch in range(3)
        ],
    }


def answered(truth=((1, 0), (0, 1), (0, 1), (1, 1))):
    """Return four points: the second and the third are answered with the first label."""
    labels = [[NASTY if label == 0 else "boat" for label in np.flatnonzero(row)] for row in truth]
    ids, probabilities = np.array([[0], [0], [0], [1]]), np.array([[0.9], [0.4], [0.7], [-np.inf]])
    return Answered(
        points=Dataset.of([NASTY, "b", "c" * 400, ""], labels),
        ids=np.where(probabilities > 0, ids, -1),
        probabilities=probabilities,
        train_label_counts=np.array([1234]),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    of_answers = answered()
    judged = (of_answers.ids, of_answers.probabilities, of_answers.points.labels)
    write_page(
        path,
        title=NASTY,
        introduction=NASTY,
        headline=key_figures({"labels": "104,011", NASTY: NASTY}),
        sections={
            "Examples": examples([(NASTY, [(NASTY, 0.75), ("boat", 0.125)]), ("unknown", [])]),
            "Accuracy": sections.accuracy(METRICS, BINS, 5),
            NASTY: sections.comparison({"P@1": Difference(51.2, 50.0, 0.4)}),
            "Probabilities": sections.probabilities(by_probability(*judged), THRESHOLDS),
            "Speed": sections.latency(np.linspace(0.2, 1.2, 101), 12345.0),
            "Training": sections.training_stages(a_training()),
            "Nothing": "",
            "Data": sections.data(
                {
                    "training": {"n_points": 93_311, "labels_per_point": 3.114},
                    "test": {"n_points": 23_057},
                }
            ),
            "Labels": of_answers.missed_labels(),
            "Mistakes": of_answers.mistakes(),
            "Model": sections.files_and_settings(a_training(), {"labels.safetensors": 12_500_000}),
            "Origin": sections.origin(f"longtail demo --report {NASTY}"),
        },
    )
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_a_report_is_one_balanced_page_that_loads_nothing(source):
    page = Page(source)
    assert page.tags[0] == ("html", {"lang": "en"})
    assert len(page.ids) == len(set(page.ids)) > 0
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("img")
    targets = re.findall(r'(?:href|src)="([^"]*)"|url\(([^)]*)\)|@import', source)
    assert all((a or b).startswith("#") for a, b in targets)
    for target, _ in targets:
        assert not target or target[1:] in page.ids


def test_a_report_escapes_whatever_comes_from_data(source):
    page = Page(source)
    assert "<script" not in source + figure(NASTY, "")
    shown = "".join(page.text)
    of_names = ["introduction", "figure", "heading", "example", "its answer", "setting", "command"]
    of_labels = ["missed label", "confused label"]
    assert shown.count(NASTY) >= len(of_names + of_labels)


def test_a_report_holds_figures_and_charts(source):
    page = Page(source)
    labels = [attributes["aria-label"] for attributes in page.all("svg")]
    assert all(attributes["role"] == "img" for attributes in page.all("svg"))
    assert [label.split(",")[0] for label in labels] == [
        "Contribution to P@5",
        "Contribution to PSP@5",
        "Percent right by percent said",
        "Precision and recall by least probability",
        "Histogram of the time that one text takes: median 0.70",
        "shared space: training loss by epoch: 8",
        "again: shared space: training loss by epoch: 8",
    ]
    assert "quantile 1: 10.00, quantile 2: 4.00" in labels[0]
    assert labels[2].endswith("40: 0, 70: 0, 90: 100")
    assert labels[3].endswith("0.5: 80 and 50")
    shown = "".join(page.text)
    for part in ("33.25", "104,011", "12.5 MB", "2.1 GB", "0.70 ms", "93,311", "3.11", "75 %"):
        assert part in shown
    assert source.count('style="width: 75.0%"') == 1


def without_directions(source):
    """Leave out what tells a browser in which direction a text runs."""
    return re.sub(r'</?bdi>| dir="auto"', "", source)


def rows_of(source, name):
    """Return the cells, without bars, of each row that is named so."""
    rows = rf'<tr><th scope="row">{re.escape(name)}</th>(.*?)</tr>'
    found = re.findall(rows, without_directions(source))
    return [re.findall(r"<td>([^<]*)</td>", row) for row in found]


def test_tables_hold_the_numbers_of_what_their_columns_say(source):
    assert rows_of(source, "P") == [["33.25", "14.00", ""]]
    assert rows_of(source, "R") == [["", "", "45.00"]]
    assert rows_of(source, "2") == [["21", "1.0", "4.00", "17.00"]]
    assert rows_of(source, "P@1") == [["51.20", "50.00", "+1.20", "0.40"]]
    assert rows_of(source, "40.0 %") == [["0.0 %", "1"]]
    assert rows_of(source, "0.5") == [["1.25", "80.00", "50.00", "61.54"]]
    assert rows_of(source, "shared space") == [["60.0", "110.0"]]
    assert rows_of(source, "together") == [["120.0", "220.0"], ["12.5 MB"]]
    assert rows_of(source, "95 % below") == [["1.15 ms"]]
    assert len(re.findall(r"<td>110.0</td><td [^>]*><span style=.width: 50.0%", source)) == 2
    assert "Recipe LongtailClassifier, seed 7" in source
    assert "Peak memory: 2.1 GB." in source


def test_a_model_that_was_trained_in_no_time_has_a_report():
    training = a_training() | {"wall_seconds": 0.0, "stages": {}}
    assert "together" in sections.training_stages(training)


def test_a_bar_is_no_wider_than_its_cell():
    shown = table("shares", (), [("less", Bar(-0.5)), ("more", Bar(1.5))])
    assert re.findall(r"width: (\S+)%", shown) == ["0.0", "100.0"]


def test_a_report_can_be_read_without_seeing_it(source):
    page = Page(source)
    assert len(page.all("table")) == len(page.all("caption"))
    assert len(page.all("h1")) == 1
    assert len(page.all("h2")) == len(page.all("section")) == 11  # not the empty one
    assert all(attributes["scope"] in {"row", "col"} for attributes in page.all("th"))


def test_charts_take_their_colours_from_the_page(source):
    assert "prefers-color-scheme: dark" in source
    assert "var(--bar)" in source
    assert "currentColor" in source
    drawings = "".join(re.findall(r"<svg.*?</svg>", source, flags=re.DOTALL))
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []


def test_a_report_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        write_page(
            tmp_path / "missing" / "r.html", title="", introduction="", headline="", sections={}
        )


def test_missing_matplotlib_names_the_command(monkeypatch):
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[report\]'"):
        charts.loss_chart("module I", [1.0])


def test_what_no_page_may_hold_is_replaced(tmp_path):
    path, name = tmp_path / "report.html", "a\0b\x1bc\udcff\td\n"  # as of a file that is not UTF-8
    content = paragraph(name)
    write_page(path, title=name, introduction=name, headline="", sections={name: content})
    shown = path.read_text(encoding="utf-8")
    assert shown.count("a\ufffdb\ufffdc\ufffd\td\n") == 5


def test_charts_are_the_same_whatever_style_is_set():
    usual = charts.loss_chart("shared space", [2.0, 1.0])
    with rc_context({"text.usetex": True, "axes.facecolor": "black", "lines.color": "red"}):
        assert charts.loss_chart("shared space", [2.0, 1.0]) == usual


def test_a_backend_that_matplotlib_does_not_know(tmp_path):
    asked = "from longtail.report.charts import loss_chart; loss_chart('stage', [1.0])"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"MPLBACKEND": "bogus"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "InputError: matplotlib cannot be used: " in done.stderr
    assert "unset the environment variable MPLBACKEND" in done.stderr


def test_no_standard_error_is_not_a_number_to_read():
    of_one_point = Difference(ours=100.0, theirs=0.0, standard_error=float("nan"))
    shown = "".join(Page(sections.comparison({"P@1": of_one_point})).text)
    assert "100.00\N{EN DASH}" in shown
    assert "nan" not in shown


def test_shares_of_nothing_begin_at_zero():
    drawn = charts.frequency_chart(BINS, "P@5", [0.0, 0.0])
    assert not re.search(r">[^<]*\N{MINUS SIGN}[^<]*</text>", drawn)


def drawn_in(chart, kind="", colour="--bar"):
    """Yield the points of each line (kind "none") or area, by the numbers at the axes."""
    x = re.findall(r'xtick_\d+">.*?<use [^>]*? x="(\S+)".*?>([^<]+)</text>', chart, re.DOTALL)
    y = re.findall(r'ytick_\d+">.*?d="M \S+ (\S+) .*?>([^<]+)</text>', chart, re.DOTALL)
    x, y = ([(float(at), float(number.split("\n")[0])) for at, number in ticks] for ticks in (x, y))
    style = rf'style="fill: {kind}[^"]*{colour}\b'
    paths = re.findall(rf'<path d="([^"]+)" clip-path="[^"]*" {style}', chart)
    for path in paths:
        points = np.array(re.findall(r"[ML] (\S+) (\S+)", path), float)
        scales = [np.polyfit(*zip(*ticks, strict=True), 1) for ticks in (x, y)]
        yield np.transpose([np.polyval(s, points[:, i]) for i, s in enumerate(scales)])


def test_a_curve_of_losses_is_drawn_where_they_are():
    (curve,) = drawn_in(charts.loss_chart("stage", [2.0, 0.25, 1.0]), "none")
    np.testing.assert_allclose(curve, [(1, 2), (2, 0.25), (3, 1)], atol=1e-4)


def test_curves_of_probabilities_are_drawn_where_they_are():
    bins = [ProbabilityBin(9, 0.125, 0.2), ProbabilityBin(4, 0.5, 0.4), ProbabilityBin(2, 0.9, 1.0)]
    chart = charts.reliability_chart(bins)
    (curve,) = drawn_in(chart, "none")
    np.testing.assert_allclose(curve, [(12.5, 20), (50, 40), (90, 100)], atol=1e-3)
    (honest,) = drawn_in(chart, "none", "currentColor")
    np.testing.assert_allclose(honest, [(0, 0), (100, 100)], atol=1e-3)
    found = [AtThreshold(0.1, 3.0, precision=0.3, recall=0.8), AtThreshold(0.9, 1.0, 0.9, 0.05)]
    precision, recall = drawn_in(charts.threshold_chart(found), "none")
    np.testing.assert_allclose(precision, [(0.1, 30), (0.9, 90)], atol=1e-3)
    np.testing.assert_allclose(recall, [(0.1, 80), (0.9, 5)], atol=1e-3)


def test_bars_are_as_high_as_their_numbers():
    bars = drawn_in(charts.frequency_chart(BINS, "P@5", [12.5, 3.0]), r"var\(")
    np.testing.assert_allclose([np.ptp(bar[:, 1]) for bar in bars], [12.5, 3.0], atol=1e-3)
    milliseconds = np.linspace(1, 2, 301)  # 1.99 ms are more than 99 % take
    chart = charts.latency_chart(milliseconds)
    bars = [*drawn_in(chart, r"var\(")]
    edges = np.array([(bar[:, 0].min(), bar[:, 0].max()) for bar in bars])
    heights = [np.ptp(bar[:, 1]) for bar in bars]
    there_are = np.histogram(milliseconds[:298], bins=40)[0]
    np.testing.assert_allclose(heights, there_are, atol=1e-3)
    np.testing.assert_allclose((edges.min(), edges.max()), (1, 1.99), atol=1e-4)
    median, most = drawn_in(chart, "none", "currentColor")
    np.testing.assert_allclose((median[:, 0], most[:, 0]), [(1.5, 1.5), (1.95, 1.95)], atol=1e-4)


def test_the_line_of_honest_probabilities_is_as_dark_as_text():
    assert re.search(r"stroke-dasharray: [^\"]*stroke: currentColor", charts.reliability_chart([]))


def test_names_of_any_script_leave_those_beside_them_alone():
    turned = "a\N{RIGHT-TO-LEFT OVERRIDE}b"
    labels = [[turned, "boat"], ["car"]]
    shown = Answered(
        points=Dataset.of(["\u05e9\u05dc\u05d5\u05dd (a)", "b"], labels),
        ids=np.array([[2], [0]]),
        probabilities=np.array([[0.5], [0.5]]),
        train_label_counts=np.array([1, 1, 1]),
    ).drawn_points()
    assert f"<bdi>{turned}</bdi> \N{MIDDLE DOT} <bdi>boat</bdi>" in shown
    page = Page(shown)
    assert all(cell["dir"] == "auto" for cell in page.all("caption") + page.all("th"))


def test_names_and_numbers_of_a_table_are_told_apart():
    source = table("pairs", ("", "label", "points"), [("song", Name("music"), "8")])
    assert '<td class="name" dir="auto">music</td><td>8</td>' in source


def test_answers_are_marked_and_what_is_missing_is_named():
    shown = "".join(Page(answered().drawn_points()).text)
    assert f"\N{CHECK MARK} {NASTY}90 %" in shown
    assert "Missing: boat" in shown
    assert f"{'c' * 300}\N{HORIZONTAL ELLIPSIS}" in shown
    assert "(an empty text)" in shown


def test_blanks_are_no_heading_of_answers():
    blank = Answered(
        points=Dataset.of([" \n", f"{' ' * 400}a rose"], [["a"], ["b"]]),
        ids=np.array([[0], [0]]),
        probabilities=np.array([[0.5], [0.5]]),
        train_label_counts=np.array([1, 1]),
    )
    shown = blank.drawn_points()
    assert ">(an empty text)</caption>" in shown
    assert ">a rose</caption>" in shown


def test_features_are_shown_by_their_number():
    of_texts = answered()
    points = Dataset.of(csr_array(np.eye(4)), [["a"], ["b"], ["a"], ["b"]])
    of_features = Answered(
        points=points,
        ids=of_texts.ids,
        probabilities=of_texts.probabilities,
        train_label_counts=of_texts.train_label_counts,
    )
    assert "point 1" in of_features.mistakes()


def test_a_faultless_model_has_no_mistakes():
    faultless = answered(((1, 0), (1, 0), (1, 0), (0, 0)))
    assert (faultless.mistakes(), faultless.missed_labels()) == ("", "")


@pytest.fixture(scope="module")
def wines():
    """Two cars and ten wines, all answered with "car" first, and three with "wine" after it."""
    points = Dataset.of([f"text {i}." for i in range(12)], [["car"]] * 2 + [["wine"]] * 10)
    ids = np.array([[0, 1 if i >= 9 else -1] for i in range(12)])
    said = np.linspace(0.1, 0.9, 24).reshape(12, 2)
    counts = np.array([7, 5])
    return Answered(points=points, ids=ids, probabilities=said, train_label_counts=counts)


def captions(source):
    found = re.findall(r"<caption>text (\d+)\.</caption>", without_directions(source))
    return [int(i) for i in found]


def test_tables_say_which_labels_are_missed_and_what_stands_in_their_place(wines):
    shown = without_directions(wines.missed_labels())
    counts = '<th scope="row">wine</th><td>5</td><td>10</td><td>3</td><td class="bar"'
    assert re.search(f'{counts}[^>]*><span style="width: 30.0%">', shown)
    assert "found by 2 answers" in shown
    assert '<th scope="row">car</th><td class="name">wine</td><td>7</td>' in shown


def test_points_that_are_shown_are_the_surest_mistakes_and_some_from_all_over(wines):
    wrong, lost = wines.mistakes().split("among the first 2 answers.")
    assert captions(wrong) == [11, 10, 9, 8, 7, 6, 5, 4]
    assert captions(lost) == [2, 3, 4, 5, 6, 7, 8]
    assert captions(wines.drawn_points()) == [0, 1, 3, 4, 6, 7, 9, 10]


@pytest.mark.parametrize(("n_over", "more"), [(0, ""), (3, " and 3 more")])
def test_no_more_is_shown_than_there_is_room_for(n_over, more):
    names = [f"label {i:02}" for i in range(MOST_LABELS + n_over)]
    points = Dataset.of(["a" * (MOST_LETTERS + n_over)], [names])
    nothing, none = np.zeros((1, 1)), np.full((1, 1), -1)
    of_one = Answered(
        points=points, ids=none, probabilities=nothing, train_label_counts=np.zeros(0, np.int64)
    )
    shown = without_directions(of_one.drawn_points())
    dots = " \N{MIDDLE DOT} "
    assert f"<p>Missing: {dots.join(names[:MOST_LABELS])}{more}</p>" in shown
    cut = "\N{HORIZONTAL ELLIPSIS}" if n_over else ""
    assert f"<caption>{'a' * MOST_LETTERS}{cut}</caption>" in shown


def test_the_most_frequent_mistakes_come_first_and_no_more_than_asked_for():
    ids = np.zeros((10, 1), np.int64)
    truth = np.zeros((10, 4))
    truth[8:, 1] = truth[5:8, 3] = truth[:5, 2] = 1
    truth = csr_array(truth)
    assert most_missed(ids, truth, 2) == [(2, 5, 0), (3, 3, 0)]
    assert most_confused(ids, truth, 2) == [(0, 2, 5), (0, 3, 3)]
    said = np.linspace(0.1, 0.9, 10)[:, np.newaxis]
    assert sure_and_wrong(ids, said, truth, 2).tolist() == [9, 8]
    assert without_hit(ids, truth, 3).tolist() == [0, 3, 6]


@st.composite
def judged(draw):
    """Return ids without repetition, padded with -1, and what is true."""
    n_points, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    k = draw(st.integers(1, n_labels))
    orders = [draw(st.permutations(range(n_labels)))[:k] for _ in range(n_points)]
    ids = np.array(orders, np.int32)
    for row in ids:
        row[draw(st.integers(0, k)) :] = -1
    truth = draw(st.lists(st.booleans(), min_size=ids.shape[0] * n_labels, max_size=None))
    dense = np.array(truth[: n_points * n_labels], np.float32).reshape(n_points, n_labels)
    return ids, csr_array(dense)


@given(judged())
def test_labels_are_counted_as_in_plain_words(case):
    ids, truth = case
    dense = truth.toarray() > 0
    for label, n_points, n_found in most_missed(ids, truth, 10):
        having = np.flatnonzero(dense[:, label])
        assert n_points == len(having) > n_found == sum(label in ids[point] for point in having)
    missed = {found.label for found in most_missed(ids, truth, 10)}
    for point, label in zip(*np.nonzero(dense), strict=True):
        assert label in missed or label in ids[point]
    counts = {}
    for point, label in zip(*np.nonzero(dense), strict=True):
        first = ids[point, 0]
        if first >= 0 and not dense[point, first] and label not in ids[point]:
            pair = int(first), int(label)
            counts[pair] = counts.get(pair, 0) + 1
    found = {(of.answered, of.missed): of.n_points for of in most_confused(ids, truth, 100)}
    assert found == {pair: n for pair, n in counts.items() if n > 1}


@given(judged())
def test_points_are_chosen_as_in_plain_words(case):
    ids, truth = case
    dense, probabilities = truth.toarray() > 0, np.linspace(0.1, 0.9, len(ids))[:, np.newaxis]
    wrong = [p for p in range(len(ids)) if ids[p, 0] >= 0 and not dense[p, ids[p, 0]]]
    assert sure_and_wrong(ids, probabilities, truth, 10).tolist() == wrong[::-1]
    lost = [
        p
        for p in range(len(ids))
        if dense[p].any() and not any(label >= 0 and dense[p, label] for label in ids[p])
    ]
    assert without_hit(ids, truth, 10).tolist() == lost
