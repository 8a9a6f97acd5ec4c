"""What the program's --help names: its commands, and the options of each."""

import functools
import re

from .bellhop import run_cli


@functools.cache
def commands():
    text = run_cli("--help").stdout
    return re.findall(r"^  ([a-z][\w-]*)  ", text.split("Subcommands:")[1], flags=re.M)


@functools.cache
def options(*command):
    """As {"-h", "--help", "--version"}."""
    left = re.findall(r"^  (-\S+)", run_cli(*command, "--help").stdout, flags=re.M)
    return {name for names in left for name in names.split(",")}
