"""The command line, as a user meets it: what it says, its settings and its errors."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from command_line import refused, run
from longtail.cli.settings import parse_settings
from longtail.errors import InputError
from longtail.estimators.limits import check_settings
from longtail.recipes.astec import Astec
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.names import RECIPES, recipe
from longtail.recipes.xtransformer import XTransformer
from longtail.siamese.pair_losses import TripletLoss


def test_help_version_and_prediction_need_neither_torch_nor_scikit_learn(place):
    script = (
        "import sys\nfrom longtail.cli import main\n"
        "for arguments in (['--help'], ['--version'], ['predict', '--help']):\n"
        "    try:\n        main(arguments)\n    except SystemExit as stop:\n"
        "        assert stop.code == 0\n"
        f"assert main(['predict', {str(place / 'model')!r}, '--text', 'red wine']) == 0\n"
        f"assert main(['evaluate', {str(place / 'model')!r}, {str(place / 'test.jsonl')!r}]) == 0\n"
        f"assert main(['inspect', {str(place / 'model')!r}]) == 0\n"
        "heavy = {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "predict" in done.stdout


def test_the_installed_command_says_errors_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from longtail.cli import main; sys.exit(main())",
         "predict", tmp_path / "none", "--text", "x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("longtail: error: There is no model folder")
    assert done.stderr.count("\n") == 1


def test_no_command_and_unknown_commands_are_refused(capsys):
    assert "COMMAND" in run(capsys)[2]
    code, _, err = run(capsys, "trian")
    assert code == 2
    assert "There is no command 'trian'. Did you mean 'train'? There are train, evaluate," in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--verison"], "--verison is not an option of longtail itself. Did you mean '--version'?"),
        (["--text", "red", "predict", "model"], "The command comes first, and its options after"),
    ],
)
def test_what_stands_before_the_command_is_refused(capsys, words, said):
    code, _, err = run(capsys, *words)
    assert (code, said in err) == (2, True), err


def test_the_help_of_the_server_says_what_each_limit_is_of(capsys):
    said = " ".join(run(capsys, "serve", "--help")[1].split())
    assert "--max-characters N length of a text (20,000)" in said
    assert "in bytes (4,194,304)" in said


def test_settings_are_read_as_their_types():
    pairs = ["dropout=0.5", "max_features=none", "char_ngrams=none", "as_in_code=true", "min_df=3"]
    assert parse_settings(Astec, [*pairs, "device=cpu"]) == {
        "dropout": 0.5,
        "max_features": None,
        "char_ngrams": None,
        "as_in_code": True,
        "min_df": 3,
        "device": "cpu",
    }


def test_a_word_is_one_of_several_where_several_are_taken():
    assert parse_settings(recipe("xtransformer"), ["further_encoders=folder"]) == {
        "further_encoders": ("folder",)
    }
    assert parse_settings(recipe("longtail"), ["char_ngrams=auto"]) == {"char_ngrams": "auto"}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("dimension", "key=value"),
        ("n_meta_labels=many", "n_meta_labels must be a whole number, got 'many'"),
        ("dimension=1.5", "a whole number"),
        ("n_meta_labels=none", "a whole number"),
        ("dropout=nan", "finite"),
        ("reranker=perhaps", "true or false"),
        ("char_ngrams=3", "2 values such as 3,5 or a word or none"),
        ("char_ngrams=3,x", "2 values such as 3,5 or a word or none"),
        ("dimensoin=3", "Did you mean 'dimension'? It has: word_ngrams, "),
        ("predictor_=3", "no setting"),
    ],
)
def test_wrong_settings_are_explained(pair, words):
    with pytest.raises(InputError) as caught:
        parse_settings(Astec, [pair])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "pair", "words"),
    [
        (XTransformer, "indexers=none", "indexers must be words, with commas between them, got"),
        (AttentionXML, "hidden_layers=a", "whole numbers, with commas between them or none, got"),
    ],
)
def test_settings_of_any_number_of_values_say_so(recipe, pair, words):
    with pytest.raises(InputError, match=words):
        parse_settings(recipe, [pair])


@pytest.mark.parametrize(("text", "value"), [(".3", 0.3), ("1.", 1.0), ("+.5e0", 0.5), ("0", 0.0)])
def test_numbers_may_be_written_as_python_has_them(text, value):
    assert parse_settings(LongtailClassifier, [f"dropout={text}"]) == {"dropout": value}
    assert parse_settings(LongtailClassifier, [f"tail={text}"]) == {"tail": value}


def test_an_option_of_two_dashes_has_no_value(place, capsys):
    assert "--label cannot be '--'" in refused(capsys, "inspect", place / "model", "--label=--")


def test_a_setting_given_twice_is_refused():
    with pytest.raises(InputError, match="--set dimension is given twice"):
        parse_settings(Astec, ["dimension=3", "dropout=0.2", "dimension=4"])


@pytest.mark.parametrize("pair", ["dimension=0", "dropout=1", "batch_size=-1", "n_threads=0"])
def test_settings_out_of_range_are_refused_before_any_work(pair, place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", "--set", pair)
    assert f"{pair.split('=')[0]} must be between" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


def test_words_are_refused_before_any_work_too(place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", "--set")
    message = "storage must be one of 'float32', 'float16', 'int8', got 'int7'"
    assert message in refused(capsys, *command, "storage=int7")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ngame", {"word_ngrams": 3}, "word_ngrams must be between 1 and 2"),
        ("dismec", {"char_ngrams": (5, 3)}, "char_ngrams must be (shortest, longest)"),
        ("longtail", {"char_ngrams": (3, 10**9)}, "2 <= shortest <= longest <= 100, or None"),
        ("longtail", {"beam_size": 10**9}, "beam_size must be between 1 and 1,000,000"),
        ("astec", {"n_random": 10**9}, "n_random must be between 0 and 1,000,000"),
        (
            "bonsai",
            {"energy_reranker": "best"},
            "energy_reranker must be one of None, 'spen', 'icnn'",
        ),
        ("spen", {"loss": "least"}, "loss must be one of 'squared-error'"),
        ("icnn", {"inference": "quick"}, "inference must be one of"),
        ("xtransformer", {"teacher_forcing": False, "matcher_aware": False}, "one of the two"),
        ("xtransformer", {"encoder": "no/such/folder"}, "not a transformer folder"),
        ("xmlcnn", {"n_words": 4, "n_chunks": 5}, "n_chunks must be at most n_words"),
        ("xmlcnn", {"along_embedding": True, "dimension": 7}, "dimension must be at least 8"),
        (
            "xtransformer",
            {"further_encoders": "one"},
            "further_encoders must be a tuple, got",
        ),
        ("xtransformer", {"further_encoders": None}, "further_encoders must be a tuple, got None"),
        ("xtransformer", {"further_encoders": (1,)}, "names of folders or 'bag', got 1"),
        (
            "xtransformer",
            {"indexers": ("x",)},
            "must be one of 'features', 'embeddings', 'texts', got 'x'",
        ),
        ("slice", {"vectors": 5}, "such as RandomProjection(); an int has no learn"),
        ("siamesexml", {"classifier_loss": TripletLoss}, "got the class TripletLoss. Pass Triplet"),
        ("dexa", {"encoder": 2}, "encoder must be a string, got 2"),
    ],
)
def test_what_a_recipe_cannot_be_is_found_before_data_is_read(name, settings, message):
    with pytest.raises(InputError) as caught:
        check_settings(recipe(name)(**settings))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"dimension": "64"}, "dimension must be a whole number, got '64'"),
        ({"dimension": 16.5}, "dimension must be a whole number, got 16.5"),
        ({"tail": "a"}, "tail must be a number, got 'a'"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be a whole number"),
        ({"label_texts": "no"}, "label_texts must be True or False, got 'no'"),
        ({"char_ngrams": 3}, "char_ngrams must be (shortest, longest)"),
        ({"char_ngrams": (3,)}, "char_ngrams must be (shortest, longest)"),
        ({"char_ngrams": "34"}, "char_ngrams must be (shortest, longest)"),
        ({"dimension": True}, "dimension must be a whole number, got True"),
        ({"held_out": None}, "held_out must be a number, got None"),
    ],
)
def test_settings_of_the_wrong_type_are_refused_in_python(setting, message):
    with pytest.raises(InputError) as caught:
        LongtailClassifier(**setting).fit(["red wine", "old car"], [["wine"], ["car"]])
    assert message in str(caught.value)


@pytest.mark.parametrize("name", RECIPES)
def test_none_is_no_number_unless_a_recipe_says_so(name):
    settings = [field for field in fields(recipe(name)) if field.init]
    for field in settings:
        estimator = recipe(name)(**{field.name: None})
        if field.type in {"int", "float", "bool", "str"}:
            with pytest.raises(InputError, match=f"{field.name} must be .*, got None"):
                check_settings(estimator)
        elif str(field.type).endswith("| None"):
            check_settings(estimator)
        elif field.name.endswith("_loss"):
            with pytest.raises(InputError, match="must be an object"):
                check_settings(estimator)


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("longtail", "epochs=-1"),
        ("longtail", "learning_rate=0"),
        ("longtail", "tail=11"),
        ("longtail", "cost=0"),
        ("longtail", "n_near_labels=0"),
        ("longtail", "beam_size=0"),
        ("parabel", "leaf_size=0"),
        ("parabel", "beam_size=0"),
        ("parabel", "prune=-1"),
        ("bonsai", "n_children=0"),
        ("bonsai", "max_depth=0"),
        ("xtransformer", "patience=0"),
        ("xtransformer", "warm_up=1"),
        ("xtransformer", "clip=0"),
        ("attentionxml", "patience=0"),
        ("attentionxml", "warm_up=-0.1"),
    ],
)
def test_settings_of_every_recipe_have_limits(name, pair):
    with pytest.raises(InputError, match=f"{pair.split('=')[0]} must be between"):
        check_settings(recipe(name)(**parse_settings(recipe(name), [pair])))


@pytest.mark.parametrize("value", ["ten", "\udcff"])  # the latter is a byte that is no UTF-8
def test_what_is_no_number_is_told_what_it_should_be(value):
    with pytest.raises(InputError, match=r"dimension must be a whole number.*, got"):
        parse_settings(recipe("longtail"), [f"dimension={value}"])


def test_an_unknown_recipe_names_the_one_that_was_meant(place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", "--recipe", "astek")
    assert "Did you mean 'astec'?" in refused(capsys, *command)
    assert "No such device" not in refused(capsys, *command[:4], "--device", "abacus")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_there(name):
    assert callable(recipe(name).fit_dataset)
