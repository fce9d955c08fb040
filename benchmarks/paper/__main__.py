"""Run a table or figure of the DeepXML paper, and print it as a table.

python -m benchmarks.paper table4 --data FOLDER
python -m benchmarks.paper table6 --data FOLDER --points 15000 --dev --set dimension=256
python -m benchmarks.paper figure3 --data FOLDER --points 15000 --out figure3.svg
python -m benchmarks.paper table11 --data FOLDER --variants Astec Parabel
python -m benchmarks.paper table9 --data FOLDER --set image_shape=[3,64,64] weights='"FILE"'
python -m benchmarks.paper scale --shapes AmazonTitles-3M --share .01 --set epochs=1

FOLDER holds one file each called train.*, test.* and, if there is one, labels.*, in any format that
`longtail train` takes. Tables 1, 9, 10 and 11 show the paper's values for a folder that is called
as one of its data sets, such as AmazonTitles-670K; other published values are those on that one
(negatives: WikiTitles-500K) and say how parts compare, not what to reach on other data. `scale`
takes no data: it makes some of the shapes of Table 3. `starts` shows how far the vectors go that
Astec's tokens start from, untrained, and `pools` which hard negatives a batch holds by chance.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.command import chosen, parser_of, positive, run
from benchmarks.data_folder import file_in, labels_in, read_test, read_train
from longtail.cli.settings import parse_settings, setting_names
from longtail.data import InputWarning
from longtail.data.blocks import points_of
from longtail.data.split import held_out_split
from longtail.errors import InputError
from longtail.recipes.names import DEFAULT_RECIPE, RECIPES, recipe

from .cells import cells
from .comparisons import COMPARISONS, compared, propensity_of
from .figures import FIGURES
from .scale import SHAPES, report
from .starts import pools, starts
from .variants import OF_SHORTLISTS, TABLES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from longtail import Dataset

LOOKS = {"starts": starts, "pools": pools}
ON_DATA = (*TABLES, *FIGURES, *COMPARISONS, *LOOKS)
GOES_WITH = {
    "data": ON_DATA,
    "points": ON_DATA,
    "dev": ON_DATA,
    "variants": (*TABLES, *COMPARISONS),
    "out": (*FIGURES,),
    **dict.fromkeys(("shapes", "share", "recipe"), ("scale",)),
}
DEV_SHARE = 0.1
OF_IMAGES = ("image_shape", "weights")  # of the comparisons with a ResNet18


def main() -> None:
    """Print the lines of what was asked for, each as soon as it is there."""
    parser = argument_parser()
    arguments = parser.parse_args()
    check_options(parser, arguments)
    warnings.simplefilter("ignore", InputWarning)
    settings = settings_of(arguments)
    if arguments.what == "scale":
        lines = report(arguments.shapes, arguments.share, arguments.recipe, settings)
    elif arguments.data is None:
        parser.error(f"{arguments.what} needs --data FOLDER")
    else:
        lines = lines_of(arguments, settings, *data_for(arguments))
    for line in lines:
        print(line, flush=True)


def check_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End with an error where an option would be ignored."""
    for name, takers in GOES_WITH.items():
        is_given = getattr(arguments, name) != parser.get_default(name)
        if is_given and arguments.what not in takers:
            parser.error(f"{arguments.what} takes no --{name}, which goes with {', '.join(takers)}")


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what --set says: of the one recipe of `scale`, or of whatever a table trains."""
    settings: dict[str, Any] = {"random_state": arguments.seed}
    if arguments.what == "scale":
        return settings | parse_settings(recipe(arguments.recipe), arguments.settings)
    for setting in arguments.settings:
        key, _, value = setting.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError as error:
            raise InputError(
                f"--set takes key=value with a value in JSON, got {setting!r}. Write, for example, "
                "dimension=256, char_ngrams=[3,5] or a word in quotation marks."
            ) from error
    of_recipes = {key for name in RECIPES for key in setting_names(recipe(name))}
    there_are = of_recipes.union(OF_IMAGES, OF_SHORTLISTS)
    chosen([*settings], sorted(there_are), "setting")
    return settings


def argument_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("what", choices=[*ON_DATA, "scale"], help="what to print")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="needed by all but scale")
    parser.add_argument(
        "--points", type=positive(int), metavar="N", help="train on a random cut; all by default"
    )
    parser.add_argument("--dev", action="store_true", help="score a tenth of the training points")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="only these; all by default")
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="settings of recipes, those of them that have such; values as JSON",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--out", type=Path, metavar="SVG", help="where a figure is drawn")
    scale = parser.add_argument_group("scale")
    scale.add_argument(
        "--shapes",
        nargs="+",
        choices=SHAPES,
        default=[*SHAPES],
        metavar="SHAPE",
        help=f"only these; all by default: {', '.join(SHAPES)}",
    )
    scale.add_argument(
        "--share",
        type=positive(float),
        default=1.0,
        metavar="PART",
        help="of the points and labels (1)",
    )
    scale.add_argument(
        "--recipe",
        choices=RECIPES,
        default=DEFAULT_RECIPE,
        metavar="NAME",
        help=f"what is trained ({DEFAULT_RECIPE})",
    )
    return parser


def lines_of(
    arguments: argparse.Namespace, settings: dict[str, Any], train: Dataset, test: Dataset
) -> Iterator[str]:
    """Yield the lines of a table or figure."""
    name = arguments.data.resolve().name
    yield f"{train.n_points:,} training points, {test.n_points:,} scored points\n"
    if arguments.what in FIGURES:
        figure = FIGURES[arguments.what](
            lambda variant: variant.make(settings, train.n_points).fit_dataset(train), train, test
        )
        yield figure.table
        if arguments.out is not None:
            arguments.out.write_text(figure.svg, encoding="utf-8")
    elif arguments.what in LOOKS:
        yield from LOOKS[arguments.what](train, test, settings)
    elif arguments.what in COMPARISONS:
        yield from compared(arguments.what, name, train, test, settings, arguments.variants)
    else:
        variants = TABLES[arguments.what]
        only = chosen(arguments.variants, dict.fromkeys(v.name for v in variants), "variant")
        wanted = [variant for variant in variants if variant.name in only]
        yield from cells(wanted, settings, train, test, propensity_of(name))


def data_for(arguments: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return what is trained on, and what is scored: a part of the training data, or the test."""
    train = read_train(arguments.data)
    if arguments.points is not None:
        drawn = np.random.default_rng(0).permutation(train.n_points)[: arguments.points]
        train = train.take(np.sort(drawn))
    if arguments.dev:
        points = points_of(train)
        kept, scored = held_out_split(points, DEV_SHARE, 0)
        return train.take(kept), train.take(scored)
    return train, read_test(file_in(arguments.data, "test"), labels_in(arguments.data), train)


if __name__ == "__main__":
    run(main)
