"""The form of the documents, and what their examples say when they are tried."""

import os
import subprocess

import pytest

from support.bellhop import binary
from support.documents import ROOT, blocks, documents, shown, text_of

LINE_CHARACTERS_MAX = 120
README_LINES_MAX = 130


@pytest.mark.parametrize("path", documents(), ids=shown)
def test_lines_are_short_enough_to_read(path):
    assert not [f"{shown(path)}:{number}: {len(line)} characters" for number, line in enumerate(text_of(path).splitlines(), 1)
                if len(line) > LINE_CHARACTERS_MAX]


def test_the_readme_is_short():
    assert len(text_of(ROOT / "README.md").splitlines()) <= README_LINES_MAX


def configurations():
    """The YAML examples that are whole files."""
    return [pytest.param(text, id=f"{shown(path)}-{number}") for path in documents()
            for number, text in enumerate(blocks(path, "yaml")) if "broker:" in text]


@pytest.mark.parametrize("text", configurations())
def test_an_example_of_a_configuration_is_good(text, tmp_path):
    file = tmp_path / "bellhop.yaml"
    file.write_text(text)
    result = subprocess.run([binary(), "check", file], capture_output=True, text=True, env=os.environ)
    assert (result.returncode, result.stderr) == (0, "")


def test_there_are_examples():
    assert len(configurations()) >= 2
