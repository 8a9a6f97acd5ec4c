"""Every reference to the manual resolves: `FILE.md, "Heading"` in sources and documents, links and anchors in documents."""

import re

from support.documents import ROOT, anchor, blocks, documents, files, headings, joined, shown, text_of, without_code

# proto/README.md, "Claim frame"   or with more than one heading:   proto/README.md, "Claim frame" and "Claim headers"
REFERENCE = re.compile(r'`?([\w./-]+\.md)`?, ("[^"\n]+"(?:(?:,| and) "[^"\n]+")*)')
FILE = re.compile(r"[\w./-]*\w\.md\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def wrong_references(path, text):
    for found in REFERENCE.finditer(joined(text)):
        document = ROOT / found[1]
        if not document.is_file():
            yield f"{shown(path)}: {found[0]}: there is no {found[1]} (a path from the root of the repository)"
            continue
        for heading in re.findall(r'"([^"]+)"', found[2]):
            if heading not in headings(document):
                yield f"{shown(path)}: {found[1]} has no heading \"{heading}\""


def wrong_files(path, text):
    for name in FILE.findall(re.sub(r"https?://\S+", "", text)):
        if not any((base / name).is_file() for base in (ROOT, path.parent)):
            yield f"{shown(path)}: there is no {name}, neither from the root nor beside this file"


def wrong_links(path, text):
    for target in LINK.findall(without_code(re.sub(r"\s+", " ", text))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        document = (path.parent / name).resolve() if name else path
        if not document.exists():
            yield f"{shown(path)}: link to {target}: there is no such file"
        elif fragment and fragment not in map(anchor, headings(document)):
            yield f"{shown(path)}: link to {target}: no heading has this anchor"


def others():
    """All files but this one, whose examples below are wrong on purpose."""
    return [path for path in files() if shown(path) != "test/documents/test_references.py"]


def test_every_named_section_of_the_manual_is_there():
    seen = sum(len(REFERENCE.findall(joined(text_of(path)))) for path in others())
    assert seen >= 25, f"only {seen} references were found: is their form still known?"
    assert not [problem for path in others() for problem in wrong_references(path, text_of(path))]


def test_every_named_document_is_there():
    assert not [problem for path in others() for problem in wrong_files(path, text_of(path))]


def test_every_link_leads_somewhere():
    assert not [problem for path in documents() for problem in wrong_links(path, text_of(path))]


def test_every_source_file_that_a_document_names_is_there():
    """`ops/backoff.h`, or `wire/link.*` for a header and its source: the end of a path from the root."""
    sources = [shown(path) for path in files() if path.suffix in (".h", ".cpp", ".py")]
    missing, seen = [], 0
    for path in documents():
        for name in re.findall(r"`([a-z][\w/]*\.(?:h|cpp|py|\*))[`:]", text_of(path)):
            seen += 1
            pattern = re.compile(r"(^|/)" + re.escape(name).replace(r"\*", r"(h|cpp)") + "$")
            if not any(pattern.search(source) for source in sources):
                missing.append(f"{shown(path)}: there is no {name}")
    assert seen > 40
    assert not missing


def test_every_file_that_a_command_names_is_there():
    """`deploy/image`, `test/run`: what a reader is told to run or to hand over, from the root of the repository."""
    named = [(shown(path), name) for path in documents() for block in blocks(path, "sh")
             for name in re.findall(r"(?<![\w./-])(?:\./)?((?:deploy|test|config)/[\w./-]*\w)", block)]
    assert len(named) > 10
    assert not [(path, name) for path, name in named if not (ROOT / name).exists()]


def test_no_comment_cites_what_is_not_in_the_repository():
    outside = re.compile(r"wire[- ]contract|\bdesign(?: section|:? decision|\.md)|failure table", re.I)
    assert not [f"{shown(path)}: {found[0]}" for path in others() for found in outside.finditer(joined(text_of(path)))]


def test_what_does_not_resolve_is_found():
    here = ROOT / "test" / "documents" / "x.h"
    assert list(wrong_references(here, '// as in proto/README.md, "Claim\n// frame"')) == []
    assert list(wrong_references(here, '// proto/README.md, "Claim frame" and "Claim headers"')) == []
    assert len(list(wrong_references(here, '// as in proto/README.md, "Claim\n// fram"'))) == 1
    assert len(list(wrong_references(here, '// proto/README.md, "Claim frame" and "Claim header"'))) == 1
    assert len(list(wrong_references(here, '// proto/READ.md, "Claim frame"'))) == 1
    assert len(list(wrong_files(here, "see notes.md"))) == 1
    assert len(list(wrong_links(ROOT / "README.md", "[a](nowhere.md) [b](proto/README.md#no-such) [c](proto/README.md#claim-frame)"))) == 2
