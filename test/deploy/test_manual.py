"""The man pages: all that the program has, and nothing else; rendered without a warning."""

import re
import subprocess

import pytest

from support.bellhop import binary
from support.documents import ROOT
from support.help import commands, options

PAGES = [ROOT / "deploy" / "man" / name for name in ("bellhop.8", "bellhop.yaml.5")]


def rendered(page):
    return subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True, check=True,
                          env={"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c"})


def sections():
    """bellhop(8)'s text of each command, by its name."""
    text = re.sub(r".\x08", "", rendered(PAGES[0]).stdout)
    parts = re.split(r"^   (?:bellhop ([a-z-]+).*|Of every command)$", text.split("\nSIGNALS\n")[0], flags=re.M)[1:]
    return dict(zip(parts[0::2], parts[1::2]))


def options_in(text):
    heads = re.findall(r"^ {7}(-.*?)(?:  |$)", text, flags=re.M)
    return {name for head in heads for name in re.findall(r"(?<!\S)--?[a-z][\w-]*", head)}


def test_pages_and_completions_are_what_help_and_the_schema_say():
    done = subprocess.run([ROOT / "deploy" / "manual" / "write", "--check", "--bellhop", binary()], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_renders_without_a_warning(page):
    assert rendered(page).stderr == ""


def test_the_page_has_the_commands_of_the_program_and_no_others():
    assert [name for name in sections() if name] == commands()


@pytest.mark.parametrize("command", commands())
def test_the_page_has_the_options_of_a_command_and_no_others(command):
    found = sections()
    assert options_in(found[command]) | {"-h", "--help"} == options(command)
    assert options_in(found[None]) == options()


def test_every_key_of_the_configuration_is_in_its_page():
    text = re.sub(r".\x08", "", rendered(PAGES[1]).stdout)
    sample = (ROOT / "config" / "README.md").read_text()
    keys = set(re.findall(r"^- `([\w.\[\]]+)`", sample, flags=re.M))
    assert len(keys) > 80
    assert not {key for key in keys if not re.search(rf"^ {{7}}{re.escape(key)}(  |$| )", text, flags=re.M)}
