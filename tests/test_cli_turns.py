"""Commands that write a model over the one that they read undo no other's work."""

from __future__ import annotations

import os
import shutil
import threading

import pytest

from command_line import refused, write_lines
from longtail import load
from longtail.cli import main, one_at_a_time
from longtail.cli.one_at_a_time import turn_to_change
from longtail.predictor import Predictor


@pytest.fixture
def own(text_model_path, tmp_path):
    """A model that a test may change."""
    return shutil.copytree(text_model_path, tmp_path / "own")


def point(link, target):
    """Point a link at another folder in one step, as docs/serving.md says."""
    link.with_name("next").symlink_to(target)
    link.with_name("next").replace(link)


def test_a_command_that_waits_changes_what_the_other_one_has_left(own, monkeypatch):
    def rename_second():
        with turn_to_change(str(own), str(own)) as check_unchanged:
            model = load(own)
            check_unchanged()
            model.with_names({"white": "blanc"}).save(own)

    told = threading.Event()
    monkeypatch.setattr(one_at_a_time, "notice", lambda _: told.set())
    second = threading.Thread(target=rename_second)
    with turn_to_change(str(own), str(own)) as check_unchanged:
        model = load(own)
        second.start()
        assert told.wait(60)
        check_unchanged()
        model.with_names({"red": "rouge"}).save(own)
    second.join()
    assert {"rouge", "blanc"} <= {*load(own).label_space.names}


def test_nobody_waits_to_write_elsewhere(own, tmp_path):
    with turn_to_change(str(own), str(own)):
        assert main(["labels", "rename", str(own), "red", "rouge", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["labels", "rename", "MODEL", "red", "rouge", "MODEL"],
        ["labels", "remove", "MODEL", "red", "MODEL"],
        ["labels", "add", "MODEL", "NEW", "MODEL"],
        ["compress", "MODEL", "MODEL"],
    ],
)
@pytest.mark.parametrize("how", ["a link", "a training", "nothing left"])
def test_a_model_that_came_meanwhile_is_not_written_over(
    words, how, own, tmp_path, monkeypatch, capsys
):
    link = tmp_path / "served"
    point(link, own)
    newer = tmp_path / "newer"
    other = load(own).with_names({"drink": "beverage"})
    other.save(newer)
    from_folder = Predictor.from_folder

    def exchanged_meanwhile(folder):
        model = from_folder(folder)
        if how == "a link":
            point(link, newer)
        elif how == "a training":
            other.save(link)
        else:
            own.rename(tmp_path / "away")
        return model

    monkeypatch.setattr(Predictor, "from_folder", exchanged_meanwhile)
    names = {"MODEL": str(link), "NEW": write_lines(tmp_path / "new.txt", ["new car"])}
    error = refused(capsys, *(names.get(word, word) for word in words))
    assert f"Another model is at {link} now than the one that was read" in error
    monkeypatch.undo()
    if how == "nothing left":
        assert not own.exists()
    else:
        assert load(link).label_space.names == other.label_space.names


def test_a_file_system_without_locks_is_taken_as_it_is(own, monkeypatch):
    def refuse(*_):
        raise OSError(os.strerror(38))

    monkeypatch.setattr(one_at_a_time.fcntl, "flock", refuse)
    assert main(["labels", "rename", str(own), "red", "rouge", str(own)]) == 0
    assert "rouge" in load(own).label_space.ids_by_name
