"""`longtail inspect`."""

from __future__ import annotations

import pytest

from command_line import refused, rows, run
from longtail import load
from longtail.recipes.ngame import NGAME
from longtail.recipes.parabel import Parabel


def test_inspection_shows_sizes_labels_words_clusters_and_training(place, capsys):
    code, out, _ = run(capsys, "inspect", place / "astec")
    assert code == 0
    assert out.startswith("astec, trained on 40 points (texts): 10 labels, ")
    lines = [line.split() for line in out.splitlines()]
    assert ["drink", "20"] in lines
    assert ["vehicle", "20"] in lines
    size = sum(file.stat().st_size for file in (place / "astec").iterdir())
    assert f"{size / 1000:.1f} kB" in out
    assert "dimension = 16" in out
    assert "Label clusters (4 in all)" in out
    assert {"module", "re-ranker"} <= {line[0] for line in lines if line}
    assert "last loss" in out
    assert "best quality" not in out  # it did not stop early
    words = out[out.index("Most frequent words") :].splitlines()[2].split()
    assert {"wine", "car"} <= set(words)


@pytest.mark.parametrize("name", ["model", "astec"])
def test_neighbours_of_labels_and_tokens_are_shown(name, place, capsys):
    out = run(capsys, "inspect", place / name, "--label", "drink")[1]
    assert "labels near 'drink'" in out
    assert len(out.splitlines()) == 10
    assert ["drink"] not in [line.split()[:1] for line in out.splitlines()]
    out = run(capsys, "inspect", place / name, "--token", "Wine")[1]
    assert out.splitlines()[0].startswith("tokens near 'wine'")
    assert run(capsys, "inspect", place / name, "--token", "\uff37INE,")[1] == out
    assert "Similar ones: 'drink'" in refused(
        capsys, "inspect", place / "model", "--label", "drinks"
    )
    assert "no token 'winr'" in refused(capsys, "inspect", place / "model", "--token", "winr")
    assert "Omit --token" in refused(capsys, "inspect", place / "sparse", "--token", "wine")


def test_checksums_are_verified_when_asked(place, capsys):
    assert "checksums" in run(capsys, "inspect", place / "model", "--verify")[1]
    assert run(capsys, "inspect", place / "sparse")[0] == 0


def inspected(capsys, folder, *options):
    """Return what is shown of a model, and the words of each line."""
    code, out, _ = run(capsys, "inspect", folder, *options)
    assert code == 0
    return out, [line.split() for line in out.splitlines()]


def test_inspection_of_a_blended_model(capsys, place):
    out, lines = inspected(capsys, place / "model")
    assert out.startswith("longtail, trained on 40 points (texts): 10 labels, ")
    assert ", 16 dimensions in int8\n" in out
    assert ["drink", "20"] in lines
    assert {"encoder.safetensors", "manifest.json"} <= {line[0] for line in lines if line}
    assert "epochs = 3" in out
    assert "100.0 % of the 10 labels of the largest logits that an exact search finds (" in out
    assert "\n100.0 % of the 10 are met on the way, from which longer answers go on\n" in out
    assert "Label clusters" not in out
    assert {"shared", "blend", "again:"} <= {line[0] for line in lines if line}
    out = inspected(capsys, place / "sparse")[0]
    assert "(ready-made features): 5 labels, 5 features" in out


@pytest.mark.parametrize(
    ("settings", "asked"),
    [({"linear": False, "n_near_points": 0}, "10 labels"), ({}, "40 training points")],
)
def test_inspection_of_models_of_label_texts(capsys, tmp_path, settings, asked):
    texts, names = zip(*((row["text"], row["labels"]) for row in list(rows()) * 5), strict=True)
    small = NGAME(dimension=16, encoder_epochs=3, classifier_epochs=2, n_threads=1, **settings)
    small.fit(texts, names).save(tmp_path)
    out, lines = inspected(capsys, tmp_path)
    assert f"100.0 % of the 10 nearest labels that an exact search finds ({asked})" in out
    assert ["drink", "20"] in lines


def test_inspection_of_a_model_with_nothing_to_search_in(capsys, tmp_path):
    small = NGAME(dimension=16, encoder_epochs=1, classifier_epochs=1, n_threads=1)
    small.fit(["red wine", "old car"] * 20, [["\u0301"]] * 40).save(tmp_path)
    out, lines = inspected(capsys, tmp_path)
    assert "exact search" not in out
    assert ["\u0301", "40"] in lines


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({}, "made by hand (texts): 10 labels, "),
        ({"recipe": "mine"}, "mine (texts): 10 labels, "),
        ({"n_points": 40, "settings": {}}, "made by hand, trained on 40 points (texts): 10 labels"),
    ],
)
def test_inspection_of_a_model_made_by_hand(capsys, place, tmp_path, description, said):
    model = load(place / "model")
    model.replaced(description=description, documents={}).save(tmp_path)
    out, lines = inspected(capsys, tmp_path)
    assert out.startswith(said)
    assert ["drink", "20"] in lines
    assert "Most frequent words" in out
    assert "Settings" not in out
    assert "wall seconds" not in out


@pytest.mark.parametrize("n_learners", [1, 2])
def test_inspection_of_label_trees(capsys, tmp_path, n_learners):
    texts, names = zip(*((row["text"], row["labels"]) for row in list(rows()) * 5), strict=True)
    Parabel(n_learners=n_learners, leaf_size=4, n_threads=1).fit(texts, names).save(tmp_path)
    out, lines = inspected(capsys, tmp_path)
    first = out.splitlines()[0]
    assert first.startswith("parabel, trained on 40 points (texts): 10 labels, ")
    assert first.endswith(" features" if n_learners == 1 else " features, 2 learners")
    assert ["drink", "20"] in lines
    assert "leaf_size = 4" in out
    assert "Label clusters" not in out
    assert "first loss" not in out  # no epochs
    assert "wall seconds" in out
    message = refused(capsys, "inspect", tmp_path, "--label", "drink")
    assert "LabelTreeScorer has no vectors" in message
    assert "has no vectors" in refused(capsys, "inspect", tmp_path, "--token", "wine")


def test_names_neither_break_a_table_nor_reach_the_terminal(capsys, tmp_path):
    long, odd = "long " * 100, "two\nlines\x1b[31m"
    texts = [f"{word} {i % 3}" for i in range(30) for word in ("red wine", "old car")]
    small = NGAME(dimension=16, encoder_epochs=1, classifier_epochs=1, n_threads=1)
    small.fit(texts, [[long], [odd, "car"]] * 30).save(tmp_path)
    shown = inspected(capsys, tmp_path)[0] + inspected(capsys, tmp_path, "--label", "car")[0]
    assert "\x1b" not in shown
    assert shown.count("two\\nlines\\x1b[31m  ") == 2
    assert shown.count(f"{long[:59]}\N{HORIZONTAL ELLIPSIS}  ") == 2
    assert long[:60] not in shown
    assert long[:60] not in inspected(capsys, tmp_path, "--label", long)[0]
