"""Saving into folders that cannot be renamed: mounted ones, and the one where one is."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from longtail import Dataset, folder_exchange, model_folder
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


def test_files_of_a_users_own_stay_in_a_mounted_folder(mounted):
    save(mounted, 1, second=True)
    for name in ("README.md", ".gitattributes"):
        (mounted / name).write_text("mine")
    save(mounted, 2)
    beside = [".gitattributes", "README.md", "lost+found"]
    assert names(mounted) == sorted([*beside, "first.safetensors", "manifest.json"])
    assert (mounted / "README.md").read_text() == "mine"
    assert ModelFolder.open(mounted, verify=True).manifest == {"value": 2}
    (mounted / "further.json").touch()
    with pytest.raises(ModelFolderError, match=r"holds the file 'further\.json' besides"):
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


def failing(_):
    raise RuntimeError("Symlink loop")


@pytest.mark.parametrize("resolve", [failing, Path.absolute], ids=["until 3.12", "from 3.13 on"])
@pytest.mark.parametrize("name", ["ring", "ring/model"])
@pytest.mark.parametrize("act", [check_target, ModelFolder.open, Dataset.open])
def test_links_in_a_circle_are_told_by_each_python(tmp_path, monkeypatch, resolve, name, act):
    (tmp_path / "ring").symlink_to("ring")
    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(InputError, match="links lead round in a circle"):
        act(tmp_path / name)


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


def left_behind(place, *leaving):
    for name in leaving:
        (place / name).mkdir()
        (place / name / "first.safetensors").write_text("half of it")
    time.sleep(0.02)  # more than clocks of disks need to tell what came before


ABANDONED = (".model.partial-7-0123abcd", ".model.trial-7-0123abcd", ".model.old-7-0123abcd")


def test_what_killed_processes_left_is_deleted_by_the_next(tmp_path, monkeypatch):
    others = [".other.partial-7-0123abcd", ".model.partial-mine", "model.partial-7-0123abcd"]
    save(tmp_path / "model", 1)
    left_behind(tmp_path, *ABANDONED, *others)
    save(tmp_path / "model", 2)  # they may be at work: an hour has not gone by
    assert names(tmp_path) == sorted([*ABANDONED, *others, "model"])
    monkeypatch.setattr(folder_exchange, "_ABANDONED", 0.0)
    save(tmp_path / "model", 3)
    assert names(tmp_path) == sorted([*others, "model"])
    assert ModelFolder.open(tmp_path / "model").manifest == {"value": 3}


def test_a_disk_is_rid_of_what_killed_processes_left(mounted, monkeypatch):
    monkeypatch.setattr(folder_exchange, "_ABANDONED", 0.0)
    left_behind(mounted, ".disk.partial-7-0123abcd")
    save(mounted, 1)
    assert names(mounted) == ["first.safetensors", "lost+found", "manifest.json"]


def test_an_old_model_stays_until_there_is_a_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_exchange, "_ABANDONED", 0.0)
    left_behind(tmp_path, *ABANDONED)
    with folder_exchange.new_folder_for(tmp_path / "model"):
        pass  # what was to be saved could not be
    assert names(tmp_path) == [ABANDONED[-1]]
    save(tmp_path / "model", 1)
    time.sleep(0.02)
    save(tmp_path / "model", 2)
    assert names(tmp_path) == ["model"]


def test_what_cannot_be_looked_at_hinders_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_exchange, "_ABANDONED", 0.0)
    (tmp_path / ABANDONED[0]).write_text("a file, which is no folder of ours")
    left_behind(tmp_path, ABANDONED[1])
    save(tmp_path / "model", 1)
    assert names(tmp_path) == [ABANDONED[0], "model"]


def test_a_model_is_on_the_disk_before_it_replaces_another(tmp_path, monkeypatch):
    target, flushed = tmp_path / "model", []
    flush = os.fsync

    def watching(handle):
        flushed.append(os.fstat(handle).st_ino)
        flush(handle)
        assert ModelFolder.open(target).manifest == {"value": 1}

    monkeypatch.setattr(folder_exchange.os, "fsync", watching)
    save(target, 1)
    assert flushed == []  # nothing could be lost
    save(target, 2)
    assert set(flushed) == {place.stat().st_ino for place in (target, *target.iterdir())}
    assert flushed[-1] == target.stat().st_ino


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_late_leaves_the_old_model(tmp_path, monkeypatch, fault):
    def refuse(handle):
        raise OSError(fault, os.strerror(fault))

    save(tmp_path / "model", 1)
    monkeypatch.setattr(folder_exchange.os, "fsync", refuse)
    with pytest.raises(ModelFolderError, match="was not saved to"):
        save(tmp_path / "model", 2)
    assert names(tmp_path) == ["model"]
    assert ModelFolder.open(tmp_path / "model").manifest == {"value": 1}


def test_file_systems_that_cannot_flush_take_models_all_the_same(tmp_path, monkeypatch):
    def refuse(handle):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(folder_exchange.os, "fsync", refuse)
    save(tmp_path / "model", 1)
    save(tmp_path / "model", 2)
    assert ModelFolder.open(tmp_path / "model").manifest == {"value": 2}


def stop_after(monkeypatch, owner, name, is_the_one):
    """Let Ctrl-C come once, behind what the system does when asked so."""
    usual, came = getattr(owner, name), []

    def stopped(*arguments, **keywords):
        result = usual(*arguments, **keywords)
        if not came and is_the_one(*arguments):
            came.append(arguments)
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(owner, name, stopped)


@pytest.mark.parametrize(("mark", "left"), [(".old-", 1), (".partial-", 2)])
def test_ctrl_c_behind_a_renaming_leaves_one_model(tmp_path, monkeypatch, mark, left):
    save(tmp_path / "model", 1)
    stop_after(monkeypatch, Path, "rename", lambda *paths: any(mark in str(p) for p in paths))
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "model", 2)
    assert names(tmp_path) == ["model"]
    assert ModelFolder.open(tmp_path / "model", verify=True).arrays["first/a"][0] == left


def test_ctrl_c_while_the_old_model_is_deleted_waits_for_that(tmp_path, monkeypatch):
    save(tmp_path / "model", 1)
    stop_after(monkeypatch, os, "unlink", lambda path, **_: str(path).endswith("safetensors"))
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "model", 2)
    assert names(tmp_path) == ["model"]


def test_ctrl_c_while_a_folder_is_tried_leaves_it_alone(tmp_path, monkeypatch):
    save(tmp_path / "model", 1)
    stop_after(monkeypatch, Path, "mkdir", lambda path, *_: path.name == "taken")
    with pytest.raises(KeyboardInterrupt):
        is_fixed(tmp_path / "model")
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("name", ["first.safetensors", "manifest.json"])
def test_ctrl_c_while_files_are_moved_moves_the_rest(mounted, monkeypatch, name):
    save(mounted, 1)
    stop_after(monkeypatch, Path, "replace", lambda path, _: path.name == name)
    with pytest.raises(KeyboardInterrupt):
        save(mounted, 2)
    assert names(mounted) == ["first.safetensors", "lost+found", "manifest.json"]
    assert ModelFolder.open(mounted, verify=True).arrays["first/a"][0] == 2
