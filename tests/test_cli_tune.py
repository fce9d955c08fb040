"""`longtail tune`: settings tried on points kept apart, and what is said of them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import refused, run, stdin_of, write_lines
from longtail import Dataset, LongtailClassifier
from longtail.cli.tune_results import SHOWN, Choice, Tried, best_of, results_table, verdict
from longtail.errors import InputError, TooLargeError, TrainingError
from longtail.trials import Trial, gains, kept_apart, trial
from small_wordnet import small_wordnet

SMALL = ["--set", "dimension=16", "epochs=1"]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Some of the dictionary, as a file."""
    dataset = small_wordnet(300, 1, n_labels=40)[0]
    path = tmp_path_factory.mktemp("tune") / "train.jsonl"
    dataset.write(path)
    return str(path)


def test_tries_are_compared_and_the_best_can_be_trained(train, capsys):
    tries = ["--try", "recipe=parabel", "leaf_size=5", "--try", "n_voted=5"]
    base = ["--set", "dimension=2", "epochs=1", "n_near_points=0", "label_texts=false"]
    tries += ["--try", "dimension=48", "epochs=5", "n_near_points=none", "label_texts=true"]
    code, out, err = run(capsys, "tune", train, "--share", "0.4", *tries, *base)
    assert code == 0
    assert "300 points, 40 labels" in err
    assert "8 trainings on 180 points each; 120 others are asked." in err
    assert "2 of 8: recipe=parabel leaf_size=5" in err
    assert "6 of 8: recipe=parabel leaf_size=5" in err
    assert err.count("Training will take about") == 4
    lines = out.splitlines()
    assert lines[0].split()[:6] == ["%", "P@1", "P@5", "PSP@1", "PSP@5", "R@100"]
    assert lines[0].endswith("P@1 gains  standard error  by chance  training")
    assert re.search(r" gains \d+\.\d\d P@1, as chance does (less than )?once in ", lines[5])
    assert lines[6].strip().startswith(f"longtail train {train} --model model ")
    assert len(lines) == 7


def test_what_is_not_beyond_chance_is_not_recommended(train, capsys):
    code, out, _ = run(capsys, "tune", train, "--try", "random_state=5", *SMALL)
    assert code == 0
    assert out.splitlines()[-1] == "None gains more P@1 than chance may. Keep what there is."


def test_with_one_seed_it_is_told_what_is_not_known(train, capsys):
    code, out, err = run(capsys, "tune", train, "--try", "epochs=2", "--seeds", "1", *SMALL)
    assert code == 0
    assert "2 trainings on" in err
    assert out.splitlines()[-1] == "What chance the seed is was not measured: --seeds 2 does."


def test_a_try_keeps_what_else_is_set_and_another_recipe_does_not(train, capsys):
    """Else parabel would be told of a `dimension`, which it has not."""
    code, _, err = run(capsys, "tune", train, "--try", "recipe=parabel", *SMALL)
    assert code == 0
    assert "1 of 4: dimension=16 epochs=1" in err


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
        (["--try", "tail=0", "--seeds", "0"], "--seeds 0 is too few. Take 1 or more."),
        (["--try", "tail"], "--try takes key=value, got 'tail'."),
        (["--try", "tail=0", "tail=1"], "--try tail is given twice."),
        (["--try", "recipe=astec", "recipe=dexa"], "--try recipe is given twice."),
        (["--try", "random_state=1", "--seed", "3"], "by --seed (3) and by --try (1). Keep one."),
        (["--try", "tail=0", "--try", "epochs=2", "--try", "tail=0.0"], "is the same as 'tail=0'"),
        (["--try", "tail=2", "--set", "tail=2", "epochs=1"], "is the same as 'tail=2 epochs=1'"),
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
    with pytest.raises(InputError, match="Only 0 points can be kept apart"):
        kept_apart(dataset, 0.2, seed=0)


WORDS = np.random.default_rng(0).integers(0, 200, (400, 4)).tolist()


def of_own_labels():
    """Each fourth point has a label of its own, which is called as the text is."""
    texts = [f"t{i} " + " ".join(f"word{j}" for j in words) for i, words in enumerate(WORDS)]
    labels = [[texts[i]] if i % 4 == 0 else [f"label {i % 4}"] for i in range(400)]
    return Dataset.of(texts, labels)


@pytest.mark.parametrize("is_given", [True, False])
def test_labels_that_only_points_to_ask_have_are_known_if_they_are_given(is_given):
    dataset = of_own_labels()
    train, asked = kept_apart(dataset, 0.2, seed=0, labels_are_given=is_given)
    has_points = np.bincount(train.labels.indices, minlength=train.n_labels) > 0
    assert has_points.all() != is_given
    own, other = train.label_space, asked.label_space
    assert list(other.names)[: own.n_labels] == list(own.names)
    assert set(other.names) == set(dataset.label_space.names)
    by_text = dict(zip(dataset.texts, named_labels(dataset), strict=True))
    for part in (train, asked):
        assert named_labels(part) == [by_text[text] for text in part.texts]
    found = trial(LongtailClassifier(dimension=16, epochs=1, n_threads=1), train, asked)
    is_unknown = np.array([labels[0].startswith("t") for labels in named_labels(asked)])
    reached = found.metrics["R@100"][is_unknown]
    assert is_unknown.any()
    assert reached.all() if is_given else not reached.any()


def named_labels(dataset):
    """Return each point's labels by name."""
    return [[dataset.label_space.name(i) for i in ids] for ids in dataset.label_lists()]


def test_the_command_knows_labels_by_their_file(capsys, tmp_path):
    dataset = of_own_labels()
    dataset.write(tmp_path / "train.jsonl")
    dataset.label_space.write(tmp_path / "labels.txt")
    points = zip(dataset.texts, dataset.label_lists(), strict=True)
    rows = (json.dumps({"text": text, "labels": labels}) for text, labels in points)
    write_lines(tmp_path / "ids.jsonl", rows)
    options = ["--json", "-", "--seeds", "1", "--try", "epochs=2", *SMALL]
    reached = []
    for points in (["ids.jsonl", "--labels", tmp_path / "labels.txt"], ["train.jsonl"]):
        code, out, _ = run(capsys, "tune", tmp_path / points[0], *points[1:], *options)
        assert code == 0
        reached.append(json.loads(out)["choices"][0]["metrics"]["R@100"])
    assert reached[0] > 95
    assert reached[1] < 85


def test_where_no_point_has_a_label_that_is_said():
    dataset = Dataset.of([f"text {i}" for i in range(200)], [[] for _ in range(200)])
    with pytest.raises(InputError, match="None of the 200 training points has a label"):
        kept_apart(dataset, 0.2, seed=0)


def test_a_trial_measures_what_the_model_answers():
    train, asked = small_wordnet(200, 100, n_labels=20)
    estimator = LongtailClassifier(dimension=16, epochs=1, n_threads=1)
    found = trial(estimator, train, asked)
    assert not hasattr(estimator, "predictor_")  # one model in memory is enough
    metrics = estimator.fit_dataset(train).predictor_.evaluate(asked)
    for name, of_points in found.metrics.items():
        assert of_points.shape == (100,)
        assert np.isclose(of_points.mean(), metrics[name])
    assert found.seconds > 0


def test_too_few_points_that_can_be_kept_apart_are_refused():
    """Of threes that stay together, as many as make 18 of the 20 that are wanted."""
    texts = [f"word{i // 3} of many" + " !" * (i % 3) for i in range(99)]
    alike = Dataset.of(texts, [[i % 5] for i in range(99)])
    with pytest.raises(InputError, match="Only 18 points can be kept apart, and fewer than 20"):
        kept_apart(alike, 20.5 / 99, seed=0)


FAILING = ["--try", "min_df=100000", "--try", "tail=0"]  # more texts than there are


def test_a_try_that_fails_ends_nothing_but_itself(train, capsys, tmp_path):
    path = tmp_path / "tries.json"
    code, out, err = run(capsys, "tune", train, *FAILING, "--json", path, *SMALL)
    assert code == 2
    assert "longtail: warning: min_df=100000 fails: min_df=100,000 leaves no token" in err
    assert "5 of 6" not in err
    assert "6 of 6: tail=0" in err
    lines = out.splitlines()
    assert lines[2].split() == ["min_df=100000", "failed"]
    assert lines[3].startswith("tail=0  ")
    first, failed, other = json.loads(path.read_text())["choices"]
    assert list(failed) == ["name", "recipe", "settings", "failure"]
    assert "leaves no token" in failed["failure"]
    assert first["n_seeds"] == other["n_seeds"] == 2


def test_where_all_tries_fail_no_more_is_trained(train, capsys):
    code, out, err = run(capsys, "tune", train, *FAILING[:2], *SMALL)
    assert code == 2
    assert "3 of 4" not in err
    assert len(out.splitlines()) == 3


def test_without_anything_to_compare_with_there_is_nothing_to_try(train, capsys):
    said = refused(capsys, "tune", train, "--try", "tail=0", "--set", "min_df=100000")
    assert "leaves no token" in said


def test_what_does_not_fit_in_memory_is_refused_before_the_first_training(
    train, capsys, monkeypatch
):
    def announce(estimator, *_, **__):
        if estimator.tail == 0:
            raise TooLargeError("Training needs 1 TB.")

    monkeypatch.setattr("longtail.cli.training_costs.announce", announce)
    code, out, err = run(capsys, "tune", train, "--try", "tail=0", *SMALL)
    assert (code, out) == (2, "")
    assert err.splitlines()[-2:] == ["tail=0:", "longtail: error: Training needs 1 TB."]
    assert "1 of 4" not in err


@pytest.mark.parametrize(
    ("stop", "code"), [(KeyboardInterrupt, 130), (OSError, 2), (TrainingError, 2)]
)
def test_what_was_measured_by_then_is_told(train, capsys, tmp_path, monkeypatch, stop, code):
    """The third training is by the second seed, without a try."""
    fit, n_fits = LongtailClassifier.fit_dataset, []

    def fit_twice(*arguments, **options):
        n_fits.append(1)
        if len(n_fits) > 2:
            raise stop("stopped")
        return fit(*arguments, **options)

    monkeypatch.setattr(LongtailClassifier, "fit_dataset", fit_twice)
    path = tmp_path / "tries.json"
    options = ["--try", "random_state=5", "--json", path, *SMALL]
    found, out, _ = run(capsys, "tune", train, *options)
    assert found == code
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["dimension=16", "random_state=5"]
    assert lines[3].startswith("None gains more P@1")
    written = json.loads(path.read_text())
    assert [choice["n_seeds"] for choice in written["choices"]] == [1, 1]
    assert written["n_choices"] == written["n_seeds"] == 2


def test_a_stop_during_the_first_training_tells_nothing(train):
    """Nothing is known by then."""
    command = [sys.executable, "-m", "longtail", "tune", train, "--try", "tail=0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.startswith("1 of 4"):
                process.send_signal(signal.SIGTERM)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert out == ""
    assert err.splitlines()[-1] == "Stopped."


def test_numbers_for_a_program(train, capsys, tmp_path):
    path = tmp_path / "tries.json"
    tries = ["--try", "recipe=parabel", "leaf_size=5", "--try", "char_ngrams=3,5", "epochs=2"]
    options = ["--json", path, "--seed", "7", "--share", ".2", "--by", "R@100", *SMALL]
    code, out, _ = run(capsys, "tune", train, *tries, *options)
    assert code == 0
    assert out.startswith("%")
    written = json.loads(path.read_text())
    choices = written.pop("choices")
    assert written == {
        "train": train,
        "n_train": 240,
        "n_asked": 60,
        "share": 0.2,
        "seed": 7,
        "n_seeds": 2,
        "n_choices": 3,
        "by": "R@100",
        "best": None,
    }
    first, trees, pieces = choices
    assert first["settings"] == {"dimension": 16, "epochs": 1}
    assert (trees["name"], trees["recipe"]) == ("recipe=parabel leaf_size=5", "parabel")
    assert trees["settings"] == {"leaf_size": 5}
    assert pieces["settings"] == {"dimension": 16, "char_ngrams": [3, 5], "epochs": 2}
    assert {"P@1", "nDCG@5", "PSP@5", "R@10"} < set(first["metrics"])
    assert "gains" not in first
    for other in (trees, pieces):
        gained = other["metrics"]["P@1"] - first["metrics"]["P@1"]
        assert np.isclose(other["gains"]["P@1"], gained, atol=2e-4)
        assert other["standard_errors"]["P@1"] > 0
        assert 0 <= other["chance"]["P@1"] <= 1
        assert other["seconds"] > 0


def test_what_is_read_by_a_program_is_not_mixed_with_what_people_read(train, capsys):
    options = ["--try", "random_state=5", "--json", "-", "--seeds", "1"]
    code, out, err = run(capsys, "tune", train, *options, *SMALL)
    assert code == 0
    assert len(json.loads(out)["choices"]) == 2
    assert "None gains more P@1" in err


def test_numbers_do_not_replace_the_points(train, capsys):
    said = refused(capsys, "tune", train, "--try", "tail=0", "--json", train)
    assert "is read by this command and would be lost" in said


def test_points_may_come_from_standard_input_with_names_that_have_line_ends(
    train, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "stdin", stdin_of(Path(train).read_bytes()))
    options = ["--format", "json-lines", "--try", "tail=0\n", "--seeds", "1", *SMALL]
    code, out, _ = run(capsys, "tune", "-", *options)
    assert code == 0
    assert out.splitlines()[2].startswith("tail=0\\n ")


def tried(name, *by_seed):
    """Return a choice with what each point reaches by each seed."""
    trials = [Trial(dict.fromkeys(SHOWN, np.asarray(values)), 1.0) for values in by_seed]
    return Tried(Choice(name, "longtail", [], LongtailClassifier()), trials)


HALF = np.tile([100.0, 0.0], 100)


def test_what_gains_most_may_be_chance_where_what_gains_less_is_not():
    """Much is gained on few points, and little on most."""
    lucky, sure = HALF.copy(), HALF + 2.0
    lucky[:3] += 350.0
    all_tried = [tried("as it is", HALF, HALF), tried("lucky", lucky, lucky)]
    all_tried.append(tried("sure", sure, sure + 0.01 * HALF))
    assert best_of(all_tried[:2], "P@1") is None
    assert best_of(all_tried, "P@1") == 2
    assert verdict(all_tried, "P@1").startswith("sure gains 2.25 P@1, as chance does once in")


def test_where_all_points_gain_alike_there_is_no_error_to_divide_by():
    nothing, everything = np.zeros(20), np.full(20, 100.0)
    all_tried = [tried("as it is", nothing, nothing), tried("better", everything, everything)]
    assert verdict(all_tried, "P@1") == (
        "better gains 100.00 P@1, as chance does less than once in 1,000 times."
    )
    assert results_table(all_tried, "P@1").splitlines()[2].split()[-5:] == [
        "+100.00",
        "0.00",
        "0.0",
        "1",
        "s",
    ]
    assert best_of(all_tried[::-1], "P@1") is None


def made(random, n_tries, *, of_seeds, n_seeds=2, n_points=500):
    """Return trials of choices none of which is any better."""
    points = 100 * random.random(n_points)

    def one():
        by_chance = 10 * random.standard_normal(n_points)
        return Trial({"P@1": points + by_chance + of_seeds * random.standard_normal()}, 1.0)

    return [[one() for _ in range(n_seeds)] for _ in range(n_tries + 1)]


@pytest.mark.parametrize("of_seeds", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("n_tries", [1, 4])
def test_chance_is_taken_for_a_gain_once_in_forty_times(n_tries, of_seeds):
    """By the points' standard error alone, it is so every second time if seeds matter most."""
    random = np.random.default_rng(0)
    n_false = 0
    for _ in range(400):
        choices = made(random, n_tries, of_seeds=of_seeds)
        n_false += min(found.chance for found in gains(choices, "P@1")) < 1 / 40
    assert n_false / 400 < 0.06


def test_what_is_better_is_found_whether_seeds_matter_or_not():
    random = np.random.default_rng(0)
    for of_seeds, gain in ((0.0, 3.0), (0.5, 6.0)):
        choices = made(random, 3, of_seeds=of_seeds)
        for one in choices[2]:
            one.metrics["P@1"] += gain
        first, second, third = gains(choices, "P@1")
        assert second.chance < 1 / 40 < min(first.chance, third.chance)
        assert abs(second.value - gain) < 3 * second.standard_error


def test_seeds_do_not_count_twice_where_only_points_differ():
    """Means over few points differ by seed, too: that is in the points' own error."""
    random = np.random.default_rng(0)
    errors = [gains(made(random, 1, of_seeds=0.0), "P@1")[0].standard_error for _ in range(200)]
    assert np.isclose(np.median(errors), 10 / np.sqrt(500), rtol=0.1)
