"""The model folder: what goes in comes out, and what is not whole is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from longtail import model_folder
from longtail.errors import InputError, ModelFolderError
from longtail.files_beside import files_beside
from longtail.model_folder import (
    ModelFolder,
    check_target,
    write_model_folder,
)

ARRAYS = {
    "labels/vectors": np.arange(12, dtype=np.float32).reshape(3, 4),
    "labels/größe": np.array([1, 2, 3], dtype=np.int64),
    "tokens/hashes": np.array([2**63], dtype=np.uint64),
    "tokens/empty": np.empty((0, 5), dtype=np.float16),
    "alone": np.array([True, False]),
}
MANIFEST = {"recipe": "Astec", "names": ["Bücher", "本"], "scale": 0.1}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    write_model_folder(
        path, manifest=MANIFEST, arrays=ARRAYS, documents={"training.json": {"seconds": 1.5}}
    )
    return path


def rewrite_manifest(path, change):
    body = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    body.pop("checksum")
    change(body)
    text = json.dumps(body, sort_keys=True)
    body["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(body), encoding="utf-8")


def leftovers(path):
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def test_what_was_written_is_read(model):
    opened = ModelFolder.open(model, verify=True)
    assert opened.manifest == MANIFEST
    assert opened.document("training.json") == {"seconds": 1.5}
    assert set(opened.arrays) == set(ARRAYS)
    assert len(opened.arrays) == len(ARRAYS)
    for name, array in ARRAYS.items():
        found = opened.arrays[name]
        assert found.dtype == array.dtype
        assert found.flags.c_contiguous
        assert found.flags.aligned
        np.testing.assert_array_equal(found, array)
    assert set(opened.files) == {
        "arrays.safetensors",
        "labels.safetensors",
        "tokens.safetensors",
        "training.json",
    }
    assert opened.files["training.json"] == (model / "training.json").stat().st_size


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("files"),
        lambda body: body.pop("manifest"),
        lambda body: body.update(files=3),
        lambda body: body["files"].update({"training.json": {"size": 1}}),
        lambda body: body["files"].update({"training.json": 1}),
    ],
)
def test_a_manifest_that_lacks_a_part_is_refused(model, change):
    rewrite_manifest(model, change)
    with pytest.raises(ModelFolderError, match="lacks a part"):
        ModelFolder.open(model)


@pytest.mark.parametrize("header", [b"no JSON", b"[1]", b'{"alone": {"dtype": "F32"}}'])
def test_a_header_that_is_none_is_refused(model, header):
    path = model / "arrays.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    record = {
        "size": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "header_sha256": hashlib.sha256(header).hexdigest(),
    }
    rewrite_manifest(model, lambda body: body["files"].update({path.name: record}))
    with pytest.raises(ModelFolderError, match="its header is none"):
        ModelFolder.open(model)


@pytest.mark.parametrize("dtype", ["?", "f2", "f4", "f8", "i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,), (2, 0, 2)])
def test_every_dtype_and_shape(tmp_path, dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    write_model_folder(tmp_path / "m", manifest={}, arrays={"a": array, "b": np.arange(3)})
    found = ModelFolder.open(tmp_path / "m").arrays["a"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_arrays_are_read_only_maps_of_the_file(model):
    array = ModelFolder.open(model).arrays["labels/vectors"]
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    base = array
    while not isinstance(base, np.memmap) and base.base is not None:
        base = base.base
    assert isinstance(base, np.memmap)


def test_transposed_and_big_endian_arrays(tmp_path):
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    write_model_folder(tmp_path / "m", manifest={}, arrays={"a": array})
    np.testing.assert_array_equal(ModelFolder.open(tmp_path / "m").arrays["a"], array)


def test_many_threads_read_one_folder(model):
    opened = ModelFolder.open(model)
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda _: opened.arrays["labels/vectors"].sum(), range(50)))
    assert set(sums) == {66.0}


def test_an_old_model_is_replaced_and_open_maps_stay_valid(model):
    before = ModelFolder.open(model).arrays["labels/vectors"]
    write_model_folder(model, manifest={"n": 2}, arrays={"other": np.ones(2)})
    opened = ModelFolder.open(model, verify=True)
    assert opened.manifest == {"n": 2}
    assert list(opened.files) == ["arrays.safetensors"]
    assert before.sum() == 66.0
    assert leftovers(model) == []


def test_an_empty_folder_and_missing_parents_are_fine(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b"):
        write_model_folder(path, manifest={}, arrays={})
        assert ModelFolder.open(path).manifest == {}


def test_a_link_stays_a_link(model, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(model)
    write_model_folder(link, manifest={"n": 3}, arrays={})
    assert link.is_symlink()
    assert ModelFolder.open(model).manifest == {"n": 3}


@pytest.mark.parametrize("has_old", [True, False])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, has_old):
    path = tmp_path / "model"
    if has_old:
        write_model_folder(path, manifest={"n": 1}, arrays=ARRAYS)

    def write_half(path, arrays):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_folder, "write_arrays", write_half)
    with pytest.raises(ModelFolderError, match=r"the disk is full.*Free some space"):
        write_model_folder(path, manifest={"n": 2}, arrays=ARRAYS)
    assert leftovers(path) == []
    assert path.exists() == has_old
    if has_old:
        assert ModelFolder.open(path, verify=True).manifest == {"n": 1}


def test_a_failed_last_step_brings_the_old_model_back(model, monkeypatch):
    rename = Path.rename

    def fail_for_the_new(self, target):
        if ".partial-" in self.name:
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(ModelFolderError, match="Permission denied"):
        write_model_folder(model, manifest={}, arrays={})
    assert ModelFolder.open(model, verify=True).manifest == MANIFEST
    assert leftovers(model) == []


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelFolderError, match="not a model folder that may be replaced"):
        write_model_folder(tmp_path, manifest={}, arrays={})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_is_refused(tmp_path):
    (tmp_path / "model").write_text("x")
    with pytest.raises(ModelFolderError, match="is a file"):
        check_target(tmp_path / "model")


FOREIGN = {
    "README.md": "# Mine",
    ".gitattributes": "*.safetensors filter=lfs",
    "notes": "keep me",
    "données 🍷.txt": "",
}


def with_foreign_files(model):
    for name, text in FOREIGN.items():
        (model / name).write_text(text, encoding="utf-8")
    (model / "nowhere").symlink_to("../no-such-file")
    (model / "README.md").chmod(0o640)
    return model


def check_foreign_files(model):
    for name, text in FOREIGN.items():
        assert (model / name).read_text(encoding="utf-8") == text
    assert (model / "nowhere").readlink() == Path("../no-such-file")
    assert (model / "README.md").stat().st_mode & 0o777 == 0o640


def without_links(*_, **__):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("has_links", [True, False])
def test_files_of_a_users_own_outlive_a_model(model, monkeypatch, has_links):
    with_foreign_files(model)
    if not has_links:  # as on many a stick
        monkeypatch.setattr("longtail.folder_exchange.os.link", without_links)
    assert ModelFolder.open(model, verify=True).manifest == MANIFEST
    assert files_beside(model) == sorted([*FOREIGN, "nowhere"])
    for n in (2, 3):
        write_model_folder(model, manifest={"n": n}, arrays={"other": np.ones(2)})
        assert ModelFolder.open(model, verify=True).manifest == {"n": n}
        check_foreign_files(model)
    own = {"manifest.json", "arrays.safetensors"}
    assert {place.name for place in model.iterdir()} == own | {*FOREIGN, "nowhere"}
    assert leftovers(model) == []


def test_files_of_a_users_own_outlive_a_saving_that_fails(model, monkeypatch):
    with_foreign_files(model)

    def full(path, arrays):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_folder, "write_arrays", full)
    with pytest.raises(ModelFolderError, match="the disk is full"):
        write_model_folder(model, manifest={}, arrays=ARRAYS)
    check_foreign_files(model)
    assert ModelFolder.open(model, verify=True).manifest == MANIFEST


def test_files_of_a_users_own_outlive_two_who_save_at_once(model):
    with_foreign_files(model)

    def save(n):
        for _ in range(20):
            write_model_folder(model, manifest={"n": n}, arrays={"other": np.ones(2)})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save, [1, 2]))
    check_foreign_files(model)
    assert leftovers(model) == []


def test_a_folder_that_is_no_models_has_no_files_beside_one(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert files_beside(tmp_path) == files_beside(tmp_path / "none") == []


def test_a_pipe_is_refused_and_not_waited_for(model):
    os.mkfifo(model / "README.md")
    with pytest.raises(ModelFolderError, match=r"the pipe, socket or device 'README\.md' besides"):
        check_target(model)


def test_a_link_to_a_pipe_stays_and_is_not_waited_for(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (model / "README.md").symlink_to(tmp_path / "pipe")
    write_model_folder(model, manifest={}, arrays={})
    assert (model / "README.md").is_symlink()


def test_what_could_not_be_kept_is_told_before_training(model, monkeypatch):
    (model / "README.md").write_text("of another user")
    may = os.access
    monkeypatch.setattr(
        "longtail.files_beside.os.access",
        lambda place, mode: Path(place).name != "README.md" and may(place, mode),
    )
    with pytest.raises(ModelFolderError, match=r"the file 'README\.md' besides, which you may not"):
        check_target(model)


def test_what_a_killed_process_left_is_deleted_though_files_in_it_changed(model, monkeypatch):
    (model / "README.md").write_text("mine")
    (model / "nowhere").symlink_to("../no-such-file")
    left = model.with_name(".model.old-1-0123abcd")
    left.mkdir()
    for name in ("README.md", "nowhere"):
        os.link(model / name, left / name, follow_symlinks=False)
    monkeypatch.setattr("longtail.folder_exchange._ABANDONED", 0.2)
    time.sleep(0.4)
    (model / "README.md").write_text("mine, again")
    write_model_folder(model, manifest={}, arrays={})
    assert not left.exists()
    assert (model / "README.md").read_text() == "mine, again"


@pytest.mark.parametrize("name", ["config.json", "Encoder.SafeTensors", ".git/", "figures/"])
def test_what_the_next_model_could_have_and_folders_are_refused(model, name):
    if name.endswith("/"):
        (model / name).mkdir()
        (model / name / "HEAD").write_text("keep me")
    else:
        (model / name).write_text("keep me")
    kind = "folder" if name.endswith("/") else "file"
    with pytest.raises(ModelFolderError, match=rf"holds the {kind} '{name.rstrip('/')}' besides"):
        write_model_folder(model, manifest={}, arrays={})
    assert (model / name).exists()
    assert ModelFolder.open(model, verify=True).manifest == MANIFEST


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.array(1.0)}, "zero-dimensional"),
        ({"a": np.array(["x"])}, "dtype <U1"),
        ({"a": np.array([None])}, "dtype object"),
        ({"../a/b": np.ones(1)}, "file name"),
        ({"/a": np.ones(1)}, "file name"),
        ({".hidden/a": np.ones(1)}, "file name"),
    ],
)
def test_arrays_that_cannot_be_saved(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        write_model_folder(tmp_path / "m", manifest={}, arrays=arrays)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["manifest.json", "notes.txt", "../x.json", "a/b.json", ""])
def test_document_names_that_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"name"):
        write_model_folder(tmp_path / "m", manifest={}, arrays={}, documents={name: {}})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x"])
def test_values_that_are_not_json(tmp_path, value):
    with pytest.raises(InputError, match="JSON"):
        write_model_folder(tmp_path / "m", manifest={"a": value}, arrays={})


def test_a_missing_folder(tmp_path):
    with pytest.raises(ModelFolderError, match="There is no model folder"):
        ModelFolder.open(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFolderError, match=r"There is a file, and no model folder at .*file"):
        ModelFolder.open(tmp_path / "file")


def test_a_home_folder_that_is_not_expanded_is_not_made_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/reader")
    hint = r"The '~' of a home folder is not expanded here: pass /home/reader/model\."
    with pytest.raises(ModelFolderError, match=hint):
        check_target("~/model")
    with pytest.raises(ModelFolderError, match=hint):
        write_model_folder("~/model", manifest={}, arrays={})
    with pytest.raises(ModelFolderError, match=hint):
        ModelFolder.open("~/model")
    assert not [*tmp_path.iterdir()]
    write_model_folder("./~/model", manifest={}, arrays={})
    assert ModelFolder.open("./~/model")
    assert ModelFolder.open("~/model")  # which is there


def test_a_folder_without_manifest(tmp_path):
    with pytest.raises(ModelFolderError, match="not a longtail model folder"):
        ModelFolder.open(tmp_path)


def test_another_format(model):
    rewrite_manifest(model, lambda body: body.update(format="other"))
    with pytest.raises(ModelFolderError, match="format 'other'"):
        ModelFolder.open(model)


def test_a_newer_format(model):
    rewrite_manifest(model, lambda body: body.update(format_version=2, longtail_version="9.1"))
    with pytest.raises(ModelFolderError, match=r"Install longtail 9\.1"):
        ModelFolder.open(model)


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\x00", ""])
def test_a_corrupted_manifest(model, text):
    (model / "manifest.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"manifest\.json"):
        ModelFolder.open(model)


def test_an_edited_manifest(model):
    text = (model / "manifest.json").read_text(encoding="utf-8")
    (model / "manifest.json").write_text(text.replace("0.1", "0.2"), encoding="utf-8")
    with pytest.raises(ModelFolderError, match="was changed"):
        ModelFolder.open(model)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/b", "manifest.json"])
def test_a_manifest_that_leads_out_of_the_folder(model, name):
    def point_outside(body):
        body["files"][name] = {"size": 1, "sha256": "", "header_sha256": ""}

    rewrite_manifest(model, point_outside)
    with pytest.raises(ModelFolderError, match="not a plain name"):
        ModelFolder.open(model)


@pytest.mark.parametrize(
    "change",
    [
        {"data_offsets": [0, 10**9]},
        {"shape": [10**6, 4]},
        {"dtype": "F8_E4M3"},
    ],
)
def test_a_header_that_does_not_fit_the_file(tmp_path, change):
    path = tmp_path / "model"
    write_model_folder(path, manifest={}, arrays={"a/x": np.ones((3, 4), np.float32)})
    entry = {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]} | change
    header = json.dumps({"a/x": entry}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(48)
    (path / "a.safetensors").write_bytes(content)

    def record_it(body):
        body["files"]["a.safetensors"] = {
            "size": len(content),
            "sha256": "",
            "header_sha256": hashlib.sha256(header).hexdigest(),
        }

    rewrite_manifest(path, record_it)
    with pytest.raises(ModelFolderError, match="does not fit"):
        ModelFolder.open(path)


def test_a_missing_file(model):
    (model / "tokens.safetensors").unlink()
    with pytest.raises(ModelFolderError, match=r"tokens\.safetensors is missing"):
        ModelFolder.open(model)


def test_a_file_from_another_model(model):
    other = model.parent / "other"
    arrays = {name.replace("labels/v", "labels/w"): array for name, array in ARRAYS.items()}
    write_model_folder(other, manifest={}, arrays=arrays)
    shutil.copy(other / "labels.safetensors", model / "labels.safetensors")
    with pytest.raises(ModelFolderError, match="does not belong"):
        ModelFolder.open(model)


def test_a_changed_document_is_noticed_at_once(model):
    path = model / "training.json"
    path.write_text(path.read_text().replace("1.5", "2.5"))
    with pytest.raises(ModelFolderError, match=r"training\.json is damaged: its checksum differs"):
        ModelFolder.open(model)


def test_a_document_that_is_not_there(model):
    with pytest.raises(ModelFolderError, match=r"It has: training\.json"):
        ModelFolder.open(model).document("other.json")


FILES = ["manifest.json", "labels.safetensors", "tokens.safetensors", "training.json"]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(FILES), part=st.floats(0, 1, exclude_max=True))
def test_truncation_anywhere_is_noticed(model, name, part):
    whole = (model / name).read_bytes()
    (model / name).write_bytes(whole[: int(part * (len(whole) - 1))])
    try:
        with pytest.raises(ModelFolderError, match=name):
            ModelFolder.open(model)
    finally:
        (model / name).write_bytes(whole)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(FILES), part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(model, name, part, bit):
    whole = (model / name).read_bytes()
    damaged = bytearray(whole)
    damaged[int(part * len(whole))] ^= 1 << bit
    (model / name).write_bytes(bytes(damaged))
    try:
        # A flip in the manifest's white space is the one that changes nothing.
        if name != "manifest.json" or not is_same_json(whole, bytes(damaged)):
            with pytest.raises(ModelFolderError):
                ModelFolder.open(model, verify=True)
    finally:
        (model / name).write_bytes(whole)


@pytest.mark.parametrize("name", ["labels.safetensors", "tokens.safetensors"])
def test_damage_to_arrays_can_be_looked_for_after_opening(model, name):
    opened = ModelFolder.open(model)
    opened.check_arrays()
    whole = (model / name).read_bytes()
    (model / name).unlink()  # the map of what was opened stays
    (model / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    opened.check_arrays()
    with pytest.raises(ModelFolderError, match=rf"{name} is damaged.* train it again"):
        ModelFolder.open(model).check_arrays()


def is_same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize("n_rows", [0, 1, 5, 8])
def test_large_arrays_begin_on_cache_lines_and_others_read_the_files(tmp_path, n_rows):
    arrays = {
        "a/odd": np.arange(7, dtype=np.uint8),
        "a/codes": np.arange(160 * n_rows, dtype=np.uint8).reshape(n_rows, 160),
        "a/rows": np.ones((n_rows, 64), np.int8),
        "a/floats": np.ones((n_rows + 1, 3), np.float32),
        "a/long": np.arange(n_rows, dtype=np.int64),
        "a/half": np.ones(3, np.float16),
        "a/is": np.ones(3, bool),
    }
    write_model_folder(tmp_path / "model", manifest={}, arrays=arrays)
    opened = ModelFolder.open(tmp_path / "model", verify=True).arrays
    elsewhere = load_file(tmp_path / "model" / "a.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(opened[name], array)
        np.testing.assert_array_equal(elsewhere[name], array)
        assert opened[name].ctypes.data % (64 if name in ("a/codes", "a/rows") else 1) == 0
        assert opened[name].flags.aligned


def test_all_files_can_be_read_by_whom_the_folder_lets_in(tmp_path):
    write_model_folder(tmp_path / "model", manifest={}, arrays={"a/b": np.ones(3, np.float32)})
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert len(modes) == 1


def test_whoever_interrupts_the_renaming_finds_the_old_model(tmp_path, monkeypatch):
    arrays = {"labels/vectors": np.eye(2, dtype=np.float32)}
    write_model_folder(tmp_path / "model", manifest={"age": "old"}, arrays=arrays)
    rename = Path.rename

    def interrupted(self, target):
        if ".partial-" in self.name:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_model_folder(tmp_path / "model", manifest={"age": "new"}, arrays=arrays)
    assert ModelFolder.open(tmp_path / "model").manifest == {"age": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_opened_folder_tells_its_own_documents_once_it_is_replaced(tmp_path):
    arrays = {"labels/vectors": np.eye(2, dtype=np.float32)}

    def write(age):
        documents = {"training.json": {"age": age}}
        path = tmp_path / "model"
        write_model_folder(path, manifest={"age": age}, arrays=arrays, documents=documents)

    write("old")
    opened = ModelFolder.open(tmp_path / "model")
    write("new")
    assert opened.manifest == {"age": "old"}
    assert opened.documents() == {"training.json": {"age": "old"}}
    opened.document("training.json")["age"] = "changed by who asked"
    assert opened.document("training.json") == {"age": "old"}
