"""`longtail tune`: settings tried on points kept apart, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from command_line import refused, run
from longtail import Dataset, LongtailClassifier
from longtail.errors import InputError
from longtail.trials import kept_apart, trial
from small_wordnet import small_wordnet

SMALL = ["--set", "dimension=16", "epochs=1"]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Some of the dictionary, as a file."""
    dataset = small_wordnet(600, 1, n_labels=40)[0]
    path = tmp_path_factory.mktemp("tune") / "train.jsonl"
    dataset.write(path)
    return str(path)


def test_tries_are_compared_and_the_best_can_be_trained(train, capsys):
    tries = ["--try", "recipe=parabel", "leaf_size=5", "--try", "n_voted=5"]
    base = ["--set", "dimension=2", "epochs=1", "n_near_points=0", "label_texts=false"]
    tries += ["--try", "dimension=48", "epochs=5", "n_near_points=none", "label_texts=true"]
    code, out, err = run(capsys, "tune", train, "--share", "0.4", *tries, *base)
    assert code == 0
    assert "600 points, 40 labels" in err
    assert "4 trainings on 360 points each; 240 others are asked." in err
    assert "2 of 4: recipe=parabel leaf_size=5" in err
    assert err.count("Training will take about") == 4
    lines = out.splitlines()
    assert lines[0].split()[:6] == ["%", "P@1", "P@5", "PSP@1", "PSP@5", "R@100"]
    assert lines[0].endswith("P@1 gains  standard error  training")
    assert "standard errors" in lines[5]
    assert lines[6].strip().startswith(f"longtail train {train} --model model ")


def test_what_is_not_beyond_chance_is_not_recommended(train, capsys):
    tries = ["--try", "dimension=16"]  # as it is already
    code, out, _ = run(capsys, "tune", train, *tries, *SMALL)
    assert code == 0
    assert out.splitlines()[-1] == "None gains more P@1 than chance may. Keep what there is."
    first, second = out.splitlines()[1:3]
    assert "+0.00" in second
    assert first.split()[2:7] == second.split()[1:6]


def test_a_try_keeps_what_else_is_set_and_another_recipe_does_not(train, capsys):
    """Else parabel would be told of a `dimension`, which it has not."""
    code, _, err = run(capsys, "tune", train, "--try", "recipe=parabel", *SMALL)
    assert code == 0
    assert "1 of 2: dimension=16 epochs=1" in err


def test_the_command_that_is_shown_has_the_winners_settings(capsys, tmp_path):
    """Where nothing is learnt in the first place, everything gains."""
    dataset = small_wordnet(400, 1, n_labels=10)[0]
    path = tmp_path / "train.csv"
    dataset.write(path)
    options = ["--format", "csv", "--share", "0.4", "--recipe", "parabel", "--by", "P@5"]
    nothing = ["--set", "cost=1e-6"]
    code, out, _ = run(
        capsys, "tune", path, *options, "--try", "cost=1", "n_learners=1", "--seed", "3", *nothing
    )
    assert code == 0
    command = out.splitlines()[-1].strip()
    assert command == (
        f"longtail train {path} --format csv --model model --recipe parabel --seed 3 "
        "--set cost=1 n_learners=1"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--try", "dimensions=3"], "has no setting 'dimensions'. Did you mean 'dimension'?"),
        (["--try", "recipe=parable"], "parable"),
        (["--try", "tail=0", "--by", "P@2"], "--by P@2 is not one of the metrics."),
        (["--try", "tail=0", "--share", "1"], "--share must lie between 0 and 1, got 1."),
        (["--try", "tail=0", "--share", ".01"], "fewer than 20 tell nothing"),
        ([], "--try"),
    ],
)
def test_what_cannot_be_tried_is_refused(options, said, train, capsys):
    assert said in refused(capsys, "tune", train, *options)


def test_points_are_kept_apart_with_their_twins():
    texts = [f"word{i // 2} of many" for i in range(200)]
    train, asked = kept_apart(Dataset.of(texts, [[i % 5] for i in range(200)]), 0.2, seed=0)
    assert set(train.texts).isdisjoint(asked.texts)
    assert train.n_points + asked.n_points == 200


def test_where_no_point_can_be_spared_that_is_said():
    dataset = Dataset.of([f"text {i}" for i in range(200)], [[i] for i in range(200)])
    with pytest.raises(InputError, match="No points can be kept apart"):
        kept_apart(dataset, 0.2, seed=0)


def test_a_trial_measures_what_the_model_answers():
    train, asked = small_wordnet(400, 100, n_labels=20)
    estimator = LongtailClassifier(dimension=16, epochs=1, n_threads=1)
    found = trial(estimator, train, asked)
    metrics = estimator.predictor_.evaluate(asked)
    for name, of_points in found.metrics.items():
        assert of_points.shape == (100,)
        assert np.isclose(of_points.mean(), metrics[name])
    assert found.seconds > 0
