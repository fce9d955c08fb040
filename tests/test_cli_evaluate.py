"""`longtail evaluate`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command_line import refused, rows, run, write_lines
from longtail import load

METRICS = {f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG", "coverage") for k in (1, 3, 5)}
METRICS |= {"R@10", "R@100", "points_per_second"}


def test_evaluation_prints_a_table_and_writes_flat_json(place, capsys, tmp_path):
    target = tmp_path / "metrics.json"
    code, out, _ = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert code == 0
    metrics = json.loads(target.read_text())
    assert set(metrics) == METRICS
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


def test_unknown_labels_count_as_missed(place, capsys, tmp_path):
    lines = [json.dumps({"text": "red wine", "labels": ["animal"]})]
    test = write_lines(tmp_path / "test.jsonl", lines)
    _, out, err = run(capsys, "evaluate", place / "model", test, "--by-frequency")
    assert out.splitlines()[1].split() == ["P", "0.00", "0.00", "0.00"]
    assert "none of its labels is one of the model's" in err
    assert "it has 'animal', the model has 'drink'." in err
    lines.append(json.dumps({"text": "red wine", "labels": ["drink"]}))
    assert (
        run(capsys, "evaluate", place / "model", write_lines(tmp_path / "test.jsonl", lines))[2]
        == ""
    )


def test_contributions_by_frequency_add_up(place, capsys):
    out = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--by-frequency")[1]
    total = float(out.splitlines()[1].split()[3])
    parts = [line.split() for line in out.splitlines()[-5:]]
    assert sum(float(part[-2]) for part in parts) == pytest.approx(total, abs=0.05)


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


def test_evaluation_without_labels_or_output_folder_is_refused(place, capsys, tmp_path):
    line = json.dumps({"text": "red wine", "labels": []})
    test = write_lines(tmp_path / "test.jsonl", [line])
    assert "No point of" in refused(capsys, "evaluate", place / "model", test)
    target = tmp_path / "none" / "metrics.json"
    command = ("evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert "there is no folder" in refused(capsys, *command)


def test_metrics_do_not_replace_the_test_set(place, capsys):
    test = place / "test.jsonl"
    before = test.read_bytes()
    message = refused(capsys, "evaluate", place / "model", test, "--json", test)
    assert "would be lost" in message
    assert test.read_bytes() == before
