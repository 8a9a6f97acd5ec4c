"""The repository's own texts: its files, its Markdown documents, their headings, links and code blocks."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("config", "daemon", "proto", "test", "deploy", ".ci")
SUFFIXES = (".h", ".cpp", ".c", ".py", ".md", ".sh", ".js", ".rb", ".php", ".pl", ".go", ".java", ".yaml", ".cmake", ".escript")


@functools.cache
def files():
    """Every text that people wrote: sources, scripts, documents."""
    found = [path for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".git")]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "corpus" not in path.parts
                  and "node_modules" not in path.parts and (path.suffix in SUFFIXES or path.suffix == "" or path.name == "CMakeLists.txt")]
    return sorted(found)


@functools.cache
def documents():
    return [path for path in files() if path.suffix == ".md"]


def shown(path):
    return str(path.relative_to(ROOT))


def text_of(path):
    return path.read_text(encoding="utf-8")


def without_code(text):
    """A document without its code blocks, which may have anything."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def headings(path):
    return re.findall(r"^#+ (.+?)\s*$", without_code(text_of(path)), flags=re.M)


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def blocks(path, language):
    """The code blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(path), flags=re.M | re.S)


def joined(text):
    """A source's comments as running text: a reference may be cut by the end of a line."""
    return re.sub(r"\s*\n\s*(//+|#+(?!#)|\*|%%)?\s*", " ", text)
