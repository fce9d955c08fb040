"""Data sets that nothing was tuned for, made of what a Debian mirror has.

    apt-get update
    apt-get download mythes-fr unicode-cldr-core
    for package in *.deb; do dpkg -x $package unpacked; done
    curl -O http://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-en.xz
    python -m benchmarks.debian_sets OUT --unpacked unpacked --descriptions Translation-en.xz

Two of the six are of texts of 65 words, and these two are there as features, too. Each is a folder
as `benchmarks.peers --data` takes it; a random fifth of the points is the test set. The packages'
index moves, so a later one differs.
"""

from __future__ import annotations

import lzma
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.command import parser_of, run
from benchmarks.set_files import distinct, write, write_features
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.set_files import Points


def main() -> None:
    """Write all of them."""
    parser = parser_of(__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--unpacked",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where the packages above are unpacked",
    )
    parser.add_argument(
        "--descriptions",
        type=Path,
        required=True,
        metavar="FILE",
        help="descriptions of packages, as a Debian mirror has them",
    )
    arguments = parser.parse_args()
    share = arguments.unpacked / "usr" / "share"
    long = descriptions(arguments.descriptions)
    entries = list(package_entries())
    sets = {
        "debtags": [(text_of(e), tags_of(e["Tag"])) for e in entries if "Tag" in e],
        "maintainers": [(text_of(e), [e["Maintainer"].split(" <")[0]]) for e in entries],
        "thesaurus-fr": synonyms(share / "mythes" / "thes_fr.dat"),
        "emoji": character_names(share / "unicode" / "cldr" / "common" / "annotations"),
    }
    described = [entry for entry in entries if entry["Package"] in long]
    long_sets = {
        "long-tags": [(long[e["Package"]], tags_of(e["Tag"])) for e in described if "Tag" in e],
        "long-depends": [(long[e["Package"]], packages_named_by(e)) for e in described],
    }
    for name, points in {**sets, **long_sets}.items():
        write(arguments.out / name, distinct(points))
    for name in long_sets:
        words = TfidfVectorizer(min_df=2, sublinear_tf=True)
        write_features(arguments.out / name, arguments.out / f"{name}-features", words)


def package_entries() -> Iterator[dict[str, str]]:
    """Yield the fields of each package."""
    command = ["apt-cache", "dumpavail"]
    index = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for block in index.split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in block.split("\n"):
            if line.startswith(" "):
                fields[key] += line
            elif ": " in line:
                key, fields[key] = line.split(": ", 1)
        if {"Package", "Description", "Maintainer"} <= fields.keys():
            yield fields


def text_of(entry: dict[str, str]) -> str:
    """Return the name and the summary of a package."""
    return f"{entry['Package']} : {entry['Description']}"


def tags_of(field: str) -> list[str]:
    """Return the tags of a package; ``a::{b,c}`` stands for two."""
    found = set()
    for facet, braced, plain in re.findall(r"([^\s,{}]+::)(?:\{([^}]*)\}|([^\s,{}]+))", field):
        found |= {facet + tag.strip() for tag in (braced or plain).split(",")}
    return sorted(found)


def packages_named_by(entry: dict[str, str]) -> list[str]:
    """Return the packages that a package depends on, recommends or suggests."""
    fields = [entry.get(name, "") for name in ("Depends", "Recommends", "Suggests")]
    names = (re.split(r"[\s(:]", word.strip())[0] for word in re.split("[,|]", ",".join(fields)))
    return sorted(set(filter(None, names)))


def descriptions(path: Path) -> dict[str, str]:
    """Return the title and the whole description of each package."""
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return described_in(file.read(), end_of_title=".")
    except lzma.LZMAError as error:
        raise InputError(f"{path} is not compressed by xz. Pass Translation-en.xz.") from error


def described_in(text: str, end_of_title: str = "") -> dict[str, str]:
    """Return what a mirror's file of descriptions says of each package.

    Examples
    --------
    >>> from benchmarks.debian_sets import described_in
    >>> described_in("Package: a\\nmd5: 0\\nDescription-en: Title\\n Long\\n .\\n text.")
    {'a': 'Title Long text.'}
    """
    found = {}
    for block in text.split("\n\n"):
        first, *rest = block.split("\n")
        if len(rest) > 1:
            title = rest[1].partition(": ")[2] + end_of_title
            lines = [title, *(line.strip() for line in rest[2:])]
            found[first.partition(": ")[2]] = " ".join(line for line in lines if line != ".")
    return found


def synonyms(path: Path) -> Points:
    """Return words and their synonyms, without the remarks in brackets."""
    lines = iter(path.read_text(encoding="utf-8").split("\n")[1:])
    found: defaultdict[str, set[str]] = defaultdict(set)
    for entry in filter(None, lines):
        word, n_meanings = entry.rsplit("|", 1)
        for _ in range(int(n_meanings)):
            said = (re.sub(r"\s*\([^)]*\)", "", s).strip() for s in next(lines).split("|")[1:])
            found[word] |= {synonym for synonym in said if synonym not in {"", word}}
    return [(word, sorted(labels)) for word, labels in found.items() if word]


def character_names(folder: Path) -> Points:
    """Return the names of characters in all languages, and their English keywords."""
    keywords = {
        one.get("cp"): [word.strip() for word in str(one.text).split("|")]
        for one in remarks_in(folder / "en.xml")
        if one.get("type") != "tts"
    }
    return [
        (str(one.text), keywords[one.get("cp")])
        for path in sorted(folder.glob("*.xml"))
        if "_" not in path.stem
        for one in remarks_in(path)
        if one.get("type") == "tts" and one.get("cp") in keywords and one.text not in {None, "↑↑↑"}
    ]


def remarks_in(path: Path) -> Iterator[ET.Element]:
    """Return what a file of the CLDR says of characters."""
    return ET.parse(path).iter("annotation")  # noqa: S314 - a file of a Debian package


if __name__ == "__main__":
    run(main)
