"""The project's own sources, as the tests of style see them."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources(*folders):
    """Every C and C++ file below the folders, by its path in the repository."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c"):
                yield path.relative_to(ROOT)
