"""Labels that are named on the command line and are not there."""

from __future__ import annotations

import pytest

from command_line import refused, write_lines


@pytest.mark.parametrize("option", ["--allowed", "--masked"])
@pytest.mark.parametrize("what", [["--text", "red wine"], ["--text", "red", "--explain"], ["FILE"]])
def test_names_like_an_unknown_one_are_told(place, tmp_path, capsys, option, what):
    names = write_lines(tmp_path / "names.txt", ["red", "Vehicles"])
    words = [place / "test.jsonl" if word == "FILE" else word for word in what]
    message = refused(capsys, "predict", place / "model", *words, option, names)
    assert "labels is named 'Vehicles'. " in message
    assert message.endswith("Similar ones: 'vehicle'.")


def test_a_label_to_remove_that_is_not_there_is_told(place, tmp_path, capsys):
    arguments = ["labels", "remove", place / "model", "red", "whit", tmp_path / "smaller"]
    assert refused(capsys, *arguments).endswith("Similar ones: 'white'.")
    arguments[4] = "xyz"
    assert refused(capsys, *arguments).endswith("capital letters and spaces included.")
    assert not (tmp_path / "smaller").exists()


def test_models_of_ids_have_no_names_that_are_near(place, tmp_path, capsys):
    names = write_lines(tmp_path / "names.txt", ["77"])
    arguments = ["predict", place / "sparse", place / "sparse.txt", "--masked", names]
    assert "labels is named '77'" in refused(capsys, *arguments)
