"""Saving into folders that cannot be renamed: mounted ones, and the one where one is."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from longtail import folder_exchange, model_folder
from longtail.errors import InputError, ModelFolderError
from longtail.folder_exchange import is_fixed, resolved
from longtail.model_folder import ModelFolder, check_target, write_model_folder


def save(path, value, **groups):
    arrays = {f"{group}/a": np.full(3, value) for group in ("first", *groups)}
    write_model_folder(path, manifest={"value": value}, arrays=arrays)


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """A folder that the system does not let anybody rename, with what a disk has of its own."""
    target = tmp_path / "disk"
    (target / "lost+found").mkdir(parents=True)
    rename = Path.rename

    def refusing(self, other):
        if target in {self, Path(other)}:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(self, other)

    monkeypatch.setattr(Path, "rename", refusing)
    return target


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_mounted_folder_is_written_within(mounted):
    check_target(mounted)
    save(mounted, 1, second=True)
    opened = ModelFolder.open(mounted, verify=True)
    save(mounted, 2)
    assert names(mounted) == ["first.safetensors", "lost+found", "manifest.json"]
    assert opened.arrays["first/a"].tolist() == [1, 1, 1]  # who has it mapped keeps it
    assert ModelFolder.open(mounted, verify=True).arrays["first/a"].tolist() == [2, 2, 2]
    assert names(mounted.parent) == ["disk"]


def test_foreign_files_in_a_mounted_folder_are_refused(mounted):
    (mounted / "thesis.txt").touch()
    with pytest.raises(ModelFolderError, match="holds files but is not a model folder"):
        check_target(mounted)


def test_a_full_disk_leaves_the_old_model_of_a_mounted_folder(mounted, monkeypatch):
    save(mounted, 1)

    def full(path, _):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("longtail.model_folder.write_arrays", full)
    with pytest.raises(ModelFolderError, match="the disk is full"):
        save(mounted, 2)
    assert names(mounted) == ["first.safetensors", "lost+found", "manifest.json"]
    assert ModelFolder.open(mounted, verify=True).manifest == {"value": 1}


def test_one_is_still_in_the_folder_that_one_was_in(tmp_path, monkeypatch):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    for value in (1, 2):
        save(".", value)
        assert names(Path()) == ["first.safetensors", "manifest.json"]
        assert ModelFolder.open(".").manifest == {"value": value}
    assert names(tmp_path) == ["here"]


def test_a_folder_that_was_removed_from_under_one_is_no_circle_of_links(tmp_path, monkeypatch):
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    with pytest.raises(InputError, match="folder in which this runs is no more"):
        check_target("model")
    assert resolved(tmp_path / "model") == tmp_path / "model"


@pytest.mark.parametrize("fault", [RuntimeError("Symlink loop"), OSError(errno.ELOOP, "Loop")])
def test_links_in_a_circle_are_told_however_python_does(monkeypatch, fault):
    def failing(_):
        raise fault

    monkeypatch.setattr(Path, "resolve", failing)
    with pytest.raises(InputError, match="links lead round in a circle"):
        resolved("model")


def test_what_else_keeps_links_from_being_followed_is_told_as_it_is(monkeypatch):
    def failing(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "resolve", failing)
    with pytest.raises(PermissionError, match="Permission denied"):
        resolved("model")


def test_a_folder_in_a_place_that_is_not_writable_is_written_within(tmp_path, monkeypatch):
    place = tmp_path / "place"
    (place / "model").mkdir(parents=True)

    def refuse(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    save(place / "model", 1)
    assert names(place / "model") == ["first.safetensors", "manifest.json"]


def test_a_place_that_is_not_writable_is_told_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ModelFolderError, match=r"cannot be written to\. Make it writable"):
        check_target(tmp_path / "model")


def test_a_folder_that_can_be_renamed_is_left_as_it_was(tmp_path):
    (tmp_path / "model").mkdir()
    before = (tmp_path / "model").stat().st_ino
    assert not is_fixed(tmp_path / "model")
    assert (tmp_path / "model").stat().st_ino == before
    assert names(tmp_path) == ["model"]


def test_a_model_that_is_replaced_while_it_is_opened_is_opened_again(tmp_path, monkeypatch):
    from longtail import model_folder

    save(tmp_path / "model", 1)
    check = model_folder._check_file
    replaced = []

    def replacing(*arguments, **keywords):
        if not replaced:
            replaced.append(True)
            save(tmp_path / "model", 2)
        check(*arguments, **keywords)

    monkeypatch.setattr(model_folder, "_check_file", replacing)
    opened = ModelFolder.open(tmp_path / "model")
    assert opened.manifest == {"value": 2}
    assert opened.arrays["first/a"].tolist() == [2, 2, 2]


def test_what_comes_last_is_gone_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(".", 1)
    seen = []
    replace = Path.replace

    def watching(self, other):
        seen.append(("manifest.json" in names(tmp_path), Path(other).name))
        return replace(self, other)

    monkeypatch.setattr(folder_exchange.Path, "replace", watching)
    save(".", 2)
    assert seen == [(False, "first.safetensors"), (False, "manifest.json")]


def test_what_is_exchanged_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """Its files are then those of another model, which the manifest that was read does not fit."""
    target, find, n_found = tmp_path / "model", model_folder._find_arrays, []
    save(target, 1)

    def exchanging(*arguments):
        n_found.append(1)
        if len(n_found) == 1:
            write_model_folder(target, manifest={"value": 2}, arrays={"first/a": np.ones(7)})
        return find(*arguments)

    monkeypatch.setattr(model_folder, "_find_arrays", exchanging)
    opened = ModelFolder.open(target)
    assert (opened.manifest, len(opened.arrays["first/a"])) == ({"value": 2}, 7)


def test_a_folder_that_is_being_exchanged_is_waited_for(tmp_path):
    target, hidden = tmp_path / "model", tmp_path / ".model.old-1-2"
    save(target, 1)
    target.rename(hidden)
    timer = threading.Timer(0.1, hidden.rename, [target])
    timer.start()
    assert ModelFolder.open(target).manifest == {"value": 1}
    timer.join()
    target.rename(tmp_path / "gone")
    with pytest.raises(ModelFolderError, match="There is no model folder"):
        ModelFolder.open(target)


def test_two_who_save_at_once_leave_one_whole_model(tmp_path):
    target, problems = tmp_path / "model", []

    def writer(value):
        try:
            for _ in range(40):
                save(target, value)
        except Exception as error:  # noqa: BLE001 - whatever it is
            problems.append(error)

    writers = [threading.Thread(target=writer, args=[value]) for value in (1, 2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert not problems
    assert ModelFolder.open(target).manifest["value"] in {1, 2}
    assert names(tmp_path) == ["model"]
