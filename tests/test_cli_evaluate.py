"""`longtail evaluate`."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_array

from command_line import SMALL, refused, rows, run, stdin_of, write_lines
from html_page import Page
from longtail import Dataset, load
from longtail.amounts import bytes_text
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import in_ids_of
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.evaluation import answers_to
from longtail.metrics import evaluate, set_aside
from longtail.model_folder import ModelFolder
from longtail.predictor import Predictor

METRICS = {f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG", "coverage") for k in (1, 3, 5)}
METRICS |= {"R@10", "R@100", "points_per_second"}
MEASURED = {"n_points", "n_unanswered", "test", "model", "model_checksum", "propensity"}


def test_evaluation_prints_a_table_and_writes_flat_json(place, capsys, tmp_path):
    target = tmp_path / "metrics.json"
    code, out, _ = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert code == 0
    metrics = json.loads(target.read_text())
    assert set(metrics) == METRICS | MEASURED
    assert all(0 <= value <= 100.01 for name, value in metrics.items() if "@" in name)
    assert metrics["points_per_second"] > 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["%", "@1", "@3", "@5"]
    assert lines[1] == ["P", *(f"{metrics[f'P@{k}']:.2f}" for k in (1, 3, 5))]
    assert lines[4][0] == "PSnDCG"
    assert lines[5] == ["R@10", f"{metrics['R@10']:.2f}", "R@100", f"{metrics['R@100']:.2f}"]
    model = load(place / "model")
    ids, _ = model.predict_topk([row["text"] for row in rows()], 1)
    right = [
        model.label_space.name(label) in row["labels"]
        for label, row in zip(ids[:, 0].tolist(), rows(), strict=True)
    ]
    assert metrics["P@1"] == pytest.approx(100 * np.mean(right))


def test_metrics_say_what_was_measured(place, capsys, tmp_path, monkeypatch):
    test, model = place / "test.jsonl", place / "model"
    filters, target = write_lines(tmp_path / "filter.txt", ["0 0"]), tmp_path / "a.json"
    more = "--filter", filters, "--propensity", "0.6,2.6", "--against", place / "astec"
    assert run(capsys, "evaluate", model, test, *more, "--json", target)[0] == 0
    written = json.loads(target.read_text())
    expected = {
        "n_points": 8,
        "n_unanswered": 0,
        "test": str(test),
        "model": str(model),
        "model_checksum": ModelFolder.open(model).checksum,
        "propensity": [0.6, 2.6],
        "filter": filters,
        "against_model": str(place / "astec"),
    }
    assert {key: written[key] for key in expected} == expected
    monkeypatch.setattr("sys.stdin", stdin_of(test.read_bytes()[: test.read_bytes().index(b"\n")]))
    piped = "--format", "json-lines", "--json", "-"
    found = json.loads(run(capsys, "evaluate", model, "-", *piped)[1])
    assert (found["n_points"], found["test"]) == (1, "-")


@pytest.mark.parametrize("is_filtered", [False, True])
def test_python_measures_what_the_command_does(place, capsys, tmp_path, is_filtered):
    further = [("", ["drink"]), ("qqqzzz", ["fast", "animal"]), ("a red car", []), ("wine", ["?"])]
    lines = [json.dumps({"text": text, "labels": names}) for text, names in further]
    test = write_lines(tmp_path / "test.jsonl", [*map(json.dumps, rows()), *lines])
    model, target = load(place / "model"), tmp_path / "a.json"
    with pytest.warns(InputWarning, match="empty texts"):
        dataset = Dataset.read(test)
    pairs, more = None, ()
    if is_filtered:
        label = dataset.label_space.id_of("drink")
        pairs = csr_array(([1], ([0], [label])), shape=dataset.labels.shape)
        own = model.label_space.id_of("drink")
        more = "--filter", write_lines(tmp_path / "filter.txt", [f"0 {own}"])
    command = "evaluate", place / "model", test, "--json", target, "--propensity", "0.6,2.6"
    err = run(capsys, *command, *more)[2]
    assert "No answer for 2 points: the model knows nothing of what is said there" in err
    assert ("or all its answers are left out." in err) == is_filtered
    written = json.loads(target.read_text())
    assert (written["n_points"], written["n_unanswered"]) == (12, 2)
    found = model.evaluate(dataset, propensity=(0.6, 2.6), set_aside=pairs)
    assert set(found) == METRICS - {"points_per_second"}
    assert {name: round(value, 4) for name, value in found.items()} == {
        name: written[name] for name in found
    }


@pytest.mark.parametrize("lacks", ["n_points", "recipe"])
def test_a_model_made_by_hand_is_measured_once_it_says_how_many_points_it_had(
    place, capsys, tmp_path, lacks
):
    pytest.importorskip("matplotlib")
    model = load(place / "model")
    description = {key: value for key, value in model.description.items() if key != lacks}
    bare, report = model.replaced(description=description, documents={}), tmp_path / "report.html"
    bare.save(tmp_path / "bare")
    command = "evaluate", tmp_path / "bare", place / "test.jsonl", "--report", report
    if lacks == "n_points":
        assert "has no `n_points`, how many training points there" in refused(capsys, *command)
        with pytest.raises(InputError, match="has no `n_points`"):
            bare.evaluate(Dataset.read(place / "test.jsonl"))
        return
    assert run(capsys, *command)[0] == 0
    assert "A model of 10 labels, trained on 40 points." in report.read_text(encoding="utf-8")


def labelled(path, *labels):
    lines = [json.dumps({"text": "red wine", "labels": list(row)}) for row in labels]
    return write_lines(path, lines)


def test_a_test_set_of_other_labels_is_refused(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", ["animal"], ["plant"])
    message = refused(capsys, "evaluate", place / "model", test, "--by-frequency")
    assert "none of its 2 labels is one of the model's 10, so nothing can be measured" in message
    assert "It has 'animal', the model has 'drink'." in message
    ids = write_lines(tmp_path / "ids.svm", ["7 0:1", "8 1:1"])
    message = refused(capsys, "evaluate", place / "sparse", ids)
    assert "Ids must be those used in training" in message


def test_labels_that_the_model_has_not_are_counted(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", ["drink", "red"], ["animal"])
    code, out, err = run(capsys, "evaluate", place / "model", test)
    assert (code, out.splitlines()[1].split()[1]) == (0, "50.00")
    assert err == (
        f"{test}: 1 of its 3 labels, such as 'animal', is not in the model and counts as missed: "
        "33.3 % of the labels of its points.\n"
    )
    test = labelled(tmp_path / "test.jsonl", ["drink"], ["animal", "plant"])
    err = run(capsys, "evaluate", place / "model", test)[2]
    assert f"longtail: warning: {test}: 2 of its 3 labels" in err


def test_ids_without_names_are_said_to_be_the_models(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", [0, 1])
    code, out, err = run(capsys, "evaluate", place / "model", test)
    assert (code, out.splitlines()[1].split()[1]) == (0, "100.00")
    assert "has label ids, which are taken for the model's own: 0 is 'drink'" in err
    assert "pass it as --labels" in err
    names = write_lines(tmp_path / "labels.txt", ["red", "drink"])
    code, out, err = run(capsys, "evaluate", place / "model", test, "--labels", names)
    assert (code, err) == (0, "")


def test_ids_of_other_labels_are_not_called_names(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", [1042], [2000])
    message = refused(capsys, "evaluate", place / "model", test)
    assert "has ids of labels, such as 1042, and none of them is one of the model's 10" in message
    assert "which have names, such as 'drink'" in message
    assert "If they are lines of a labels file, pass it as --labels." in message
    assert 'If the numbers are names, write them as strings: "1042".' in message
    assert "Names must match" not in message


def test_a_model_of_ids_reads_its_own_answers(capsys, tmp_path):
    ids = [[0, 3], [1, 2]] * 20
    lines = [json.dumps({"text": f"{row[0]} wine", "labels": row}) for row in ids]
    train, target = write_lines(tmp_path / "ids.jsonl", lines), tmp_path / "answers.jsonl"
    assert run(capsys, "train", train, "--model", tmp_path / "model", *SMALL)[0] == 0
    command = ("predict", tmp_path / "model", train, "--output", target, "--top-k", 1)
    assert run(capsys, *command)[0] == 0
    assert isinstance(json.loads(target.read_text().splitlines()[0])["labels"][0], str)
    code, out, err = run(capsys, "evaluate", tmp_path / "model", target)
    assert (code, out.splitlines()[1].split()[1]) == (0, "100.00")
    assert "has names of labels that are numbers, which are taken for the model's ids" in err
    message = refused(capsys, "evaluate", tmp_path / "model", labelled(tmp_path / "t.jsonl", ["4"]))
    assert "such as '4', but the model knows ids only, from 0 to 3" in message
    names = write_lines(tmp_path / "labels.txt", ["3", "2", "1", "0"])
    message = refused(capsys, "evaluate", tmp_path / "model", train, "--labels", names)
    assert "such as '3', but the model knows ids only" in message


def test_a_labels_file_of_others_is_refused(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", [0], [2])
    short = write_lines(tmp_path / "short.txt", ["red", "drink"])
    message = refused(capsys, "evaluate", place / "model", test, "--labels", short)
    assert "line 2: The label id 2 is out of range: the labels file has 2 lines" in message
    assert "Pass the labels file that belongs to these points." in message
    other = write_lines(tmp_path / "other.txt", ["one", "two", "three"])
    message = refused(capsys, "evaluate", place / "model", test, "--labels", other)
    assert "none of its 2 labels" in message
    points = write_lines(tmp_path / "points.txt", ["1 5 3", "0 1:1"])
    message = refused(capsys, "evaluate", place / "sparse", points, "--labels", other)
    assert "such as 'one', but the model knows ids only" in message


def test_contributions_by_frequency_add_up(place, capsys):
    out = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--by-frequency")[1]
    total = float(out.splitlines()[1].split()[3])
    parts = [line.split() for line in out.splitlines()[-5:]]
    assert sum(float(part[-2]) for part in parts) == pytest.approx(total, abs=0.05)


def test_labels_of_at_least_some_probabilities(place, capsys):
    code, out, _ = run(
        capsys, "evaluate", place / "model", place / "test.jsonl", "--thresholds", "--by-frequency"
    )
    lines = [line.split() for line in out.splitlines()]
    start = lines.index(["at", "least", "labels", "a", "point", "precision", "recall", "F1"])
    assert (code, len(lines) - start) == (0, 12)
    n_judged = min(100, load(place / "model").n_labels)
    assert f"pass --top-k {n_judged} to `predict`" in out.splitlines()[-1]
    test = Dataset.read(place / "test.jsonl")
    kept = load(place / "model").predict(list(test.texts), 10, threshold=0.5)
    true = [{test.label_space.name(label) for label in row} for row in test.label_lists()]
    n_right = sum(name in own for row, own in zip(kept, true, strict=True) for name, _ in row)
    n_kept = sum(map(len, kept))
    precision, recall = n_right / n_kept, n_right / sum(map(len, true))
    shown = [precision, recall, 2 / (1 / precision + 1 / recall)]
    expected = ["0.5", f"{n_kept / len(true):.2f}", *(f"{100 * share:.2f}" for share in shown)]
    assert expected in lines[start:]


def test_a_model_is_held_against_another(place, capsys, tmp_path):
    fewer, test = tmp_path / "fewer", place / "test.jsonl"
    assert run(capsys, "labels", "remove", place / "model", "drink", fewer)[0] == 0
    code, out, err = run(
        capsys, "evaluate", place / "model", test, "--against", fewer, "--json", tmp_path / "a"
    )
    assert (code, f"The same points for {fewer}:" in err) == (0, True)
    alone, _, _ = run(capsys, "evaluate", fewer, test, "--json", tmp_path / "b")
    assert alone == 0
    both, other = (json.loads((tmp_path / name).read_text()) for name in "ab")
    found = both["against"]
    assert set(found) == {name for name in METRICS if "@" in name and "coverage" not in name}
    for name, of in found.items():
        assert of["difference"] == pytest.approx(both[name] - of["theirs"], abs=2e-4), name
        # What labels are worth is measured alike; alone, `fewer` takes "drink" for the rarest.
        is_weighed = name.startswith("PS")
        assert (of["theirs"] != pytest.approx(other[name], abs=1e-4)) == is_weighed, name
    own, rival, dataset = load(place / "model"), load(fewer), Dataset.read(test)
    own_ids = own.label_space.ids_by_name
    same_label = np.array([own_ids[name] for name in rival.label_space.names])
    ids, scores = rival.predict_topk(dataset.texts, 5)
    truth = in_ids_of(own.label_space, dataset).labels
    weighed = evaluate(
        np.where(ids >= 0, same_label[ids], -1),
        scores,
        truth,
        train_label_counts=own.train_label_counts,
        n_train_points=own.description["n_points"],
        recall_ks=(5,),
    )
    for name in ("PSP@1", "PSP@3", "PSnDCG@5"):
        assert found[name]["theirs"] == pytest.approx(weighed[name], abs=1e-3)
    of = found["P@3"]
    assert of["difference"] > 2 * of["standard_error"] > 0
    line = next(line for line in out.splitlines() if line.startswith("P@3"))
    shown = [both["P@3"], of["theirs"], of["difference"], of["standard_error"]]
    assert [float(part) for part in line.split()[1:]] == pytest.approx(shown, abs=0.005)


@pytest.mark.parametrize("kind", ["model", "sparse"])
def test_the_same_answers_do_not_differ_by_what_labels_are_worth(place, capsys, tmp_path, kind):
    """A model that was trained on other points has other counts of them."""
    model, other = load(place / kind), tmp_path / "other"
    counts = model.train_label_counts[::-1].copy()
    model.replaced(
        train_label_counts=counts, description={**model.description, "n_points": 4_000}
    ).save(other)
    test = labelled(tmp_path / "test.jsonl", ["drink", "white"], ["fast", "red"])
    if kind == "sparse":
        test = write_lines(tmp_path / "test.svm", ["0,3 0:1 3:0.5", "1,2 1:1 2:0.5"])
    command = ("evaluate", place / kind, test, "--json", tmp_path / "a")
    for against in (other, place / kind):
        assert run(capsys, *command, "--against", against)[0] == 0
        found = json.loads((tmp_path / "a").read_text())["against"]
        assert {(of["difference"], of["standard_error"]) for of in found.values()} == {(0, 0)}


@pytest.mark.parametrize("filters", [[], ["0 0", "1 3"]], ids=["all pairs", "without some"])
def test_ids_of_a_test_set_are_those_of_the_first_of_two_models(place, capsys, tmp_path, filters):
    """Labels behind one that was removed have moved up in the other, and are the same labels."""
    fewer = tmp_path / "fewer"
    assert run(capsys, "labels", "remove", place / "model", "red", fewer)[0] == 0
    ids = load(place / "model").label_space.ids_by_name
    # Points without the label that is gone, so that both models can find all.
    known = [row for row in rows() if "red" not in row["labels"]]
    by_id = [{**row, "labels": [ids[name] for name in row["labels"]]} for row in known]
    found = []
    for form in (known, by_id):
        test = write_lines(tmp_path / "test.jsonl", map(json.dumps, form))
        more = ("--filter", write_lines(tmp_path / "filter.txt", filters)) if filters else ()
        command = ("evaluate", place / "model", test, "--against", fewer, *more)
        assert run(capsys, *command, "--json", tmp_path / "a")[0] == 0
        found.append(json.loads((tmp_path / "a").read_text())["against"])
    assert found[0] == found[1]
    # "drink" is label 0 of both, and label 3, "white", is label 2 of the other.
    assert (found[0]["R@10"]["theirs"] == 100) == (not filters)
    assert found[0]["R@10"]["difference"] == 0


def test_a_model_of_other_points_is_no_rival(place, capsys):
    test = place / "test.jsonl"
    for other, said in ((place / "sparse", "features"), (place / "none", "no model folder")):
        message = refused(capsys, "evaluate", place / "model", test, "--against", other)
        assert said in message


def test_the_difference_of_a_single_point_has_no_error(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", ["drink"])
    same, target = place / "model", tmp_path / "metrics.json"
    assert run(capsys, "evaluate", same, test, "--against", same, "--json", target)[0] == 0
    found = json.loads(target.read_text())["against"]["P@1"]
    assert (found["difference"], found["standard_error"]) == (0, None)


def test_filter_files_and_propensities_are_used(place, capsys, tmp_path):
    test = place / "test.jsonl"
    everything = [f"{point} {label}" for point in range(8) for label in range(10)]
    filters = write_lines(tmp_path / "filter.txt", everything)
    out = run(capsys, "evaluate", place / "model", test, "--filter", filters)[1]
    assert out.splitlines()[1].split() == ["P", "0.00", "0.00", "0.00"]
    out = run(capsys, "evaluate", place / "model", test, "--filter", filters, "--by-frequency")[1]
    assert {line.split()[-2] for line in out.splitlines()[-5:]} == {"0.00"}
    # A frequent label that is found, and a rare one that is not.
    half = json.dumps({"text": "red wine in a glass", "labels": ["drink", "fast"]})
    test = write_lines(tmp_path / "half.jsonl", [half])
    plain = run(capsys, "evaluate", place / "model", test)[1].splitlines()
    other = run(capsys, "evaluate", place / "model", test, "--propensity", "0.5,0.4")[1]
    assert other.splitlines()[1] == plain[1]
    assert other.splitlines()[3] != plain[3]
    for wrong in ("much", "nan,1", "1"):
        err = run(capsys, "evaluate", place / "model", test, "--propensity", wrong)[2]
        assert f"expected A,B such as 0.55,1.5, got '{wrong}'" in err


def test_places_are_those_that_are_asked_for(place, capsys, tmp_path):
    asked = "evaluate", place / "model", place / "test.jsonl"
    usual = run(capsys, *asked)[1].splitlines()
    target = tmp_path / "metrics.json"
    more = "--ks", "12,1", "--against", place / "model", "--json", target
    lines = run(capsys, *asked, *more)[1].splitlines()
    assert lines[0].split() == ["%", "@1", "@12"]
    assert lines[1].split()[:2] == usual[1].split()[:2]
    assert [line.split()[0] for line in lines[9:13]] == ["P@1", "P@12", "PSP@1", "PSP@12"]
    written = json.loads(target.read_text())
    assert "P@12" in written
    assert "P@5" not in written
    assert "PSP@12" in written["against"]
    for wrong in ("0", "1,x", ",", "10001"):
        err = run(capsys, *asked, "--ks", wrong)[2]
        assert f"expected numbers from 1 to 10,000 such as 1,3,5, got '{wrong}'" in err


def test_ids_of_a_filter_file_are_lines_of_the_labels_file(place, capsys, tmp_path):
    model = load(place / "model")
    own = list(model.label_space.names)
    names = write_lines(tmp_path / "labels.txt", own[::-1])
    turned = [[own[::-1].index(name) for name in row["labels"]] for row in rows()]
    lines = [json.dumps({**row, "labels": ids}) for row, ids in zip(rows(), turned, strict=True)]
    test = write_lines(tmp_path / "test.jsonl", lines)
    pairs = [f"{point} {label}" for point, ids in enumerate(turned) for label in ids]
    filters = write_lines(tmp_path / "filter.txt", pairs)
    command = "evaluate", place / "model", test, "--labels", names, "--filter", filters
    assert run(capsys, *command)[1].splitlines()[1].split() == ["P", "0.00", "0.00", "0.00"]
    # Without a labels file, ids beside names can only be the model's.
    command = "evaluate", place / "model", place / "test.jsonl", "--filter", filters
    assert f"taken for the model's own: 0 is {own[0]!r}" in run(capsys, *command)[2]


def test_evaluation_without_labels_or_output_folder_is_refused(place, capsys, tmp_path):
    line = json.dumps({"text": "red wine", "labels": []})
    test = write_lines(tmp_path / "test.jsonl", [line])
    assert "No point of" in refused(capsys, "evaluate", place / "model", test)
    target = tmp_path / "none" / "metrics.json"
    command = ("evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert "there is no folder" in refused(capsys, *command)


@pytest.mark.parametrize("name", ["manifest.json", "labels.safetensors", "further.json"])
def test_output_is_not_written_into_the_models_folder(place, capsys, tmp_path, name):
    model, test = tmp_path / "model", place / "test.jsonl"
    shutil.copytree(place / "model", model)
    (tmp_path / "link").symlink_to(model)
    before = sorted(model.iterdir())
    for command in (("evaluate", model, test, "--json"), ("predict", model, test, "--output")):
        for folder in (model, tmp_path / "link", model / ".." / "model"):
            message = refused(capsys, *command, folder / name)
            assert f"{name} is in the model folder {model}, where it would stay" in message
    assert f"is in the model folder {model}" in refused(capsys, "compress", model, model / "small")
    against = ("evaluate", place / "model", test, "--against", model, "--json", model / name)
    assert f"is in the model folder {model}" in refused(capsys, *against)
    assert sorted(model.iterdir()) == before
    assert run(capsys, "inspect", model, "--verify")[0] == 0


def test_metrics_do_not_replace_the_test_set(place, capsys):
    test = place / "test.jsonl"
    before = test.read_bytes()
    message = refused(capsys, "evaluate", place / "model", test, "--json", test)
    assert "would be lost" in message
    assert test.read_bytes() == before


def test_further_tables_are_written_too(place, capsys):
    options = ["--by-frequency", "--thresholds", "--json", "-"]
    code, out, err = run(capsys, "evaluate", place / "model", place / "test.jsonl", *options)
    found = json.loads(out)
    assert code == 0
    assert sum(part["P@5"] for part in found["by_frequency"]) == pytest.approx(
        found["P@5"], abs=0.01
    )
    assert sum(part["n_labels"] for part in found["by_frequency"]) == load(place / "model").n_labels
    rows = [line.split() for line in err.splitlines()]
    at_half = next(part for part in found["thresholds"] if part["at_least"] == 0.5)
    shown = next(row for row in rows if row and row[0] == "0.5")
    assert shown[2:] == [f"{at_half[name]:.2f}" for name in ("precision", "recall", "F1")]


def test_a_point_with_many_pairs_costs_others_nothing(place, monkeypatch):
    asked, model = [], load(place / "model")
    predict = Predictor.predict_topk

    def noting(self, X, k=5, **more):
        asked.append(k)
        return predict(self, X, k, **more)

    points = TextColumn.from_strings([row["text"] for row in rows()])
    pairs = np.zeros((len(points), model.n_labels))
    pairs[1, :5] = 1
    usual, of_usual = set_aside(*predict(model, points, model.n_labels), csr_array(pairs))
    monkeypatch.setattr(Predictor, "predict_topk", noting)
    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 3)
    found = list(answers_to(model, points, 3, csr_array(pairs)))
    assert asked == [8, *[3] * (len(found) - 1)]
    ids, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    np.testing.assert_array_equal(ids, usual[:, :3])
    np.testing.assert_array_equal(scores, of_usual[:, :3])


@pytest.mark.parametrize("value", ["0.5,-1", "11,1.5", "-1,1.5"])
def test_a_propensity_that_cannot_be_is_told_at_once(place, capsys, value):
    what = ["evaluate", place / "model", place / "test.jsonl", f"--propensity={value}"]
    assert "an A from 0 to 10 and a B above 0" in refused(capsys, *what)


def test_a_report_shows_mistakes_and_charts(place, capsys, tmp_path):
    report, test = tmp_path / "report.html", place / "test.jsonl"
    arguments = ["--report", report, "--against", place / "model", "--json", "-"]
    code, out, err = run(capsys, "evaluate", place / "model", test, *arguments)
    assert (code, set(json.loads(out)) - METRICS) == (0, MEASURED | {"against", "against_model"})
    assert f"The report is {report}." in err
    page = Page(report.read_text(encoding="utf-8"))
    shown = "".join(page.text)
    for part in ("red wine in a glass", "\N{CHECK MARK} drink", f"Beside {place / 'model'}"):
        assert part in shown
    assert page.all("svg")


def cells(shown, heading):
    """Return the cells of a section's tables, row by row, bars left out."""
    section = shown.split(f"<h2>{heading}</h2>")[1].split("</section>")[0]
    return [re.findall(r"<t[hd][^>]*>([^<]+)<", row) for row in section.split("<tr>")]


def test_a_report_says_of_its_model_and_its_points_what_others_say(place, capsys, tmp_path):
    report, model, test = tmp_path / "report.html", load(place / "model"), place / "test.jsonl"
    training = {"wall_seconds": 3725, "cpu_seconds": 9000}
    model.documents["training.json"].update(training)
    model.save(tmp_path / "model")
    arguments = ["--report", report, "--json", "-", "--propensity", "0.9,0.2"]
    code, out, _ = run(capsys, "evaluate", tmp_path / "model", test, *arguments)
    assert code == 0
    metrics, shown = json.loads(out), report.read_text(encoding="utf-8")
    assert f"<title>longtail: {tmp_path / 'model'} on 8 test points</title>" in shown
    assert "of 10 labels, trained on 40 points." in shown
    figures = dict(re.findall("<dt>([^<]*)</dt><dd>([^<]*)</dd>", shown))
    size = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert figures == {
        "labels": "10",
        "P@1": f"{metrics['P@1']:.1f} %",
        "PSP@1": f"{metrics['PSP@1']:.1f} %",
        "training": "1 h 2 min",
        "answers": f"{metrics['points_per_second']:,.0f} / s",
        "model": bytes_text(size),
    }
    quantiles = [row for row in cells(shown, "Accuracy") if len(row) == 5 and row[0].isdigit()]
    sums = np.array(quantiles, np.float64).sum(axis=0)
    assert sums[1] == 10
    assert sums[3:].tolist() == pytest.approx([metrics["P@5"], metrics["PSP@5"]], abs=0.05)
    by_probability = [row for row in cells(shown, "Probabilities") if len(row) == 3][1:]
    assert sum(int(row[2]) for row in by_probability) == 8 * 10  # all answers to all points
    assert ["points", "8"] in cells(shown, "Test points")
    assert ["together", "3,725.0", "9,000.0"] in cells(shown, "Training")
    assert ["together", bytes_text(size)] in cells(shown, "Model")
    assert "<pre>longtail" in shown.split("<h2>How this was made</h2>")[1]


def test_a_report_of_labels_that_the_model_has_not(place, capsys, tmp_path):
    report, test = tmp_path / "report.html", labelled(tmp_path / "t.jsonl", ["drink"], ["animal"])
    code, _, _ = run(capsys, "evaluate", place / "model", test, "--report", report, "--ks", "2")
    assert code == 0
    assert "Missing: <bdi>animal</bdi>" in report.read_text(encoding="utf-8")


def test_a_report_of_features(place, capsys, tmp_path):
    report = tmp_path / "report.html"
    test = write_lines(tmp_path / "ids.svm", ["0 0:1", "1 1:1"])
    assert run(capsys, "evaluate", place / "sparse", test, "--report", report)[0] == 0
    assert "point 1" in report.read_text(encoding="utf-8")


def test_a_report_of_a_model_that_says_nothing_of_its_training(place, capsys, tmp_path):
    report, model = tmp_path / "report.html", load(place / "model")
    arguments = ["evaluate", tmp_path / "model", place / "test.jsonl", "--report", report]
    model.documents = {}
    model.save(tmp_path / "model")
    assert run(capsys, *arguments)[0] == 0
    assert "Time a stage" not in report.read_text(encoding="utf-8")
    report.unlink()
    model.documents = {"training.json": {"stages": 1}}
    model.save(tmp_path / "model")
    assert "training.json says something else than how" in run(capsys, *arguments)[2]
    assert not report.exists()


def test_where_no_report_can_be_written(place, capsys, tmp_path):
    arguments = ["evaluate", place / "model", place / "test.jsonl", "--report"]
    assert "a page to look at" in refused(capsys, *arguments, "-")
    data = tmp_path / "train.jsonl"
    data.write_text("{}")
    assert f"ends in .html, such as report.html, got {data}" in refused(capsys, *arguments, data)
    assert data.read_text() == "{}"
    both = tmp_path / "both.html"
    (tmp_path / "link.html").symlink_to(both)
    for name in (both, tmp_path / "link.html"):
        assert "--json and --report both name" in refused(capsys, *arguments, name, "--json", both)
    assert "no folder" in refused(capsys, *arguments, tmp_path / "missing" / "report.html")
    assert "model" in refused(capsys, *arguments, place / "model" / "manifest.json")


def test_of_one_point_no_standard_error_is_shown(place, capsys, tmp_path):
    test = labelled(tmp_path / "test.jsonl", ["drink"])
    _, out, _ = run(capsys, "evaluate", place / "model", test, "--against", place / "model")
    (row,) = (line.split() for line in out.splitlines() if line.startswith("P@1"))
    assert row[-1] == "\N{EN DASH}"
    assert "nan" not in out
