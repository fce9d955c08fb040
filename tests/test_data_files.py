"""Opening and replacing files."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import pytest

from command_line import stdin_of
from longtail import Dataset
from longtail.data.files import check_place, numbered_lines, raw_lines, replacing
from longtail.errors import DataFormatError, InputError


def test_gzip_is_told_by_content_not_name(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))  # two members
    assert list(numbered_lines(path)) == [(1, b"one"), (2, b"two")]


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\nthree")
    assert list(numbered_lines(path)) == [(1, b"one"), (2, b""), (3, b"three")]


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:40] + b"\0\0\0\0" + b[44:]])
def test_damaged_gzip_says_so(tmp_path, damage):
    path = tmp_path / "cut.gz"
    path.write_bytes(damage(gzip.compress(bytes(str(list(range(3000))), "ascii") + b"\n")))
    with pytest.raises(DataFormatError, match="gzip data end too early or are damaged"):
        list(raw_lines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one\ttwo\n".encode("utf-16"), "UTF-16, not plain text. Save the file as UTF-8"),
        ("one\ttwo\n".encode("utf-32"), "UTF-32, not plain text.* iconv -f UTF-32 -t UTF-8"),
        ("one\n".encode("utf-32-be").join([b"\0\0\xfe\xff", b""]), "UTF-32, not"),
        (
            "one\ttwo\n".encode("utf-16-le"),
            r"UTF-16LE \(its NUL bytes show it\).*-f UTF-16LE -t UTF-8",
        ),
        ("\r\none\ttwo\n".encode("utf-16-be"), "UTF-16BE"),
        (gzip.compress("длинное слово для пробы\n".encode("utf-16-le"), mtime=0), "UTF-16LE"),
        ("one\n".encode("utf-32-le"), "UTF-32LE"),
        ("one\n".encode("utf-32-be"), "UTF-32BE"),
        ("one\n".encode("utf-16-be").join([b"\xfe\xff", b""]), "UTF-16"),
        (bz2.compress(b"one\n"), "packed by bzip2, not plain text. Unpack it, or pack it by gzip"),
        (lzma.compress(b"one\n"), "packed by xz"),
        (b"\x28\xb5\x2f\xfd\x04", "packed by zstd"),
        (b"PK\x03\x04\x14", "a zip archive or a spreadsheet.*Unpack it, or save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old spreadsheet or document.*Save it as CSV"),
        (b"%PDF-1.7\n", "a PDF, not plain text. Save its text"),
        (b"\x93NUMPY\x01\x00", "an array of numpy.*Load it in Python"),
        (
            b"PAR1\x15\x04",
            "a Parquet file, not plain text. Points are read from it where it is named",
        ),
    ],
)
def test_files_that_are_no_plain_text_are_named(tmp_path, content, message):
    path = tmp_path / "train.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=message):
        list(numbered_lines(path))


@pytest.mark.parametrize(
    "content", [b"\0", b"a\0\0b\0\0cdefgh", b"\0\0\0" + b"a" * 900, b"", b"\xe4"]
)
def test_a_few_nul_bytes_are_signs_of_a_text(tmp_path, content):
    path = tmp_path / "odd.txt"
    path.write_bytes(content)
    assert list(raw_lines(path)) == ([content] if content else [])


def test_standard_input_is_a_file_called_minus(monkeypatch):
    for content in (b"\xef\xbb\xbfone\ntwo\n", gzip.compress(b"one\ntwo\n")):
        monkeypatch.setattr("sys.stdin", stdin_of(content))
        assert list(numbered_lines("-")) == [(1, b"one"), (2, b"two")]
    monkeypatch.setattr("sys.stdin", stdin_of(b"\xff\n"))
    with pytest.raises(InputError, match=r"cannot be guessed\. Pass format="):
        Dataset.read("-")
    with pytest.raises(DataFormatError, match="standard input, line 1: The line is not UTF-8"):
        Dataset.read("-", format="tsv")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="Standard input is closed"):
        list(raw_lines("-"))


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_what_cannot_be_opened(tmp_path, name):
    with pytest.raises(InputError, match="cannot be opened"):
        list(raw_lines(tmp_path / name))


def test_nothing_half_written(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("name", ["pipe", "pipe.gz"])
def test_a_pipe_is_written_to_and_not_replaced(tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(pipe) as stream:
            stream.write(b"all of it")
        assert pipe.is_fifo()
        found = os.read(reader, 1000)
    finally:
        os.close(reader)
    assert (gzip.decompress(found) if name.endswith(".gz") else found) == b"all of it"
    assert list(tmp_path.iterdir()) == [pipe]


def test_where_a_link_leads_is_replaced(tmp_path):
    target, link = tmp_path / "far" / "file.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_nowhere_is_told(tmp_path):
    link, ring = tmp_path / "link.txt", tmp_path / "ring.txt"
    link.symlink_to(tmp_path / "gone" / "file.txt")
    ring.symlink_to(ring)
    message = r"link\.txt .* a link to .*file\.txt, and there is no folder .*gone\. Create it"
    with pytest.raises(InputError, match=message), replacing(link):
        pass
    with pytest.raises(InputError, match="links lead round in a circle"), replacing(ring):
        pass
    (tmp_path / "gone").mkdir()
    with replacing(link) as stream:
        stream.write(b"new")
    assert (tmp_path / "gone" / "file.txt").read_text() == "new"


def test_same_content_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with replacing(tmp_path / name) as stream:
            stream.write(b"content")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"content"


def test_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(InputError, match="there is no folder"),
        replacing(tmp_path / "no" / "a.txt"),
    ):
        pass


def test_two_that_write_the_same_file_at_once_do_not_mix(tmp_path):
    target = tmp_path / "out.txt"
    with replacing(target) as one, replacing(target) as other:
        for i in range(1000):
            one.write(b"one\n")
            other.write(b"other %d\n" % i)
    assert target.read_bytes() == b"one\n" * 1000  # the last to end
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_the_same_content_is_compressed_to_the_same_bytes_whenever(tmp_path, monkeypatch):
    written = []
    for now in (0.0, 1e9):
        monkeypatch.setattr("gzip.time.time", lambda now=now: now)
        with replacing(tmp_path / "out.gz") as stream:
            stream.write(b"all of it")
        written.append((tmp_path / "out.gz").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "café", "labels": ["x"]}\n'),
        ("a.csv", "text,labels\ncafé,x\n"),
        ("a.ft", "__label__x café\n"),
    ],
)
def test_a_file_in_windows_1252_is_told_how_to_become_utf_8(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="windows-1252")
    with pytest.raises(DataFormatError, match=r"0xe9.* Windows-1252.*iconv -f WINDOWS-1252 -t UTF"):
        Dataset.read(tmp_path / name)


def test_a_home_folder_that_is_not_expanded_is_pointed_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/reader")
    for use in (Dataset.read, check_place):
        with pytest.raises(InputError, match=r"'~' of a home folder .*: pass /home/reader/a\.csv"):
            use("~/a.csv")
