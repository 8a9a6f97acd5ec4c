"""Includes point one way. What a folder may include stands in the table here; what the table does not allow fails.

A file belongs to the innermost folder of the table that holds it, so a folder that is split gets a line for each part: two halves that must not
know each other are two lines that do not name each other."""

import pathlib
import re

from tree import ROOT, sources

AMQP = ["proto", "config", "daemon/ops", "daemon/wire", "daemon/claims", "daemon/snapshot", "daemon/broker", "daemon/message", "daemon/pipeline"]
# The two halves of a session do not know each other; what they share does not know them.
MAY_INCLUDE = {
    "proto": [],
    "config": ["proto"],
    "daemon/ops": ["proto", "config"],
    "daemon/claims": ["proto", "config", "daemon/ops"],
    "daemon/claims/filesystem": ["proto", "config", "daemon/ops", "daemon/claims"],
    "daemon/claims/s3": ["proto", "config", "daemon/ops", "daemon/claims"],
    "daemon/wire": ["proto", "config", "daemon/ops"],
    "daemon/snapshot": ["proto", "config", "daemon/ops", "daemon/claims", "daemon/wire"],
    "daemon/broker": ["proto", "config", "daemon/ops", "daemon/wire"],
    "daemon/message": ["proto", "config", "daemon/ops", "daemon/claims"],
    "daemon/pipeline": ["proto", "config", "daemon/ops", "daemon/claims", "daemon/broker", "daemon/message"],
    "daemon/door/amqp": AMQP,
    "daemon/door/amqp/up": [*AMQP, "daemon/door/amqp"],
    "daemon/door/amqp/down": [*AMQP, "daemon/door/amqp"],
    "daemon/door/amqp/session": [*AMQP, "daemon/door/amqp", "daemon/door/amqp/up", "daemon/door/amqp/down"],
    "daemon/door": ["proto", "config", "daemon/ops", "daemon/door/amqp", "daemon/door/amqp/session"],
    "daemon/admin": ["proto", "config", "daemon/ops"],
    "daemon/cli": ["proto", "config", "daemon/ops", "daemon/claims", "daemon/claims/filesystem", "daemon/claims/s3", "daemon/wire", "daemon/snapshot",
                   "daemon/broker", "daemon/door", "daemon/admin"],
    "daemon/cli/inspect": ["proto", "config", "daemon/ops", "daemon/claims", "daemon/claims/filesystem", "daemon/claims/s3", "daemon/broker",
                           "daemon/pipeline"],
    "daemon": ["daemon/ops", "daemon/cli", "daemon/cli/inspect"],
}


def folder_of(path):
    """The innermost folder of the table that holds the file, or None."""
    return next((str(parent) for parent in path.parents if str(parent) in MAY_INCLUDE), None)


def includes(path):
    """What a file includes of the project, with the line that does so."""
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, pathlib.Path(found[1])


def wrong_includes(files):
    """One line for each include that the table does not allow."""
    for path in files:
        folder = folder_of(path)
        for number, included in includes(path):
            target = folder_of(included)
            if target is None or not (ROOT / included).is_file():
                yield f"{path}:{number}: {included} is no file of proto/, config/ or daemon/ (write the path from the root)"
            elif target != folder and target not in MAY_INCLUDE[folder]:
                yield f"{path}:{number}: {folder}/ must not include {target}/ ({included})"


def first_cycle(table):
    """A list of folders, each of which may include the next and the last the first; None when there is no such list."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):]
        if folder in done:
            return None
        path.append(folder)
        for target in table.get(folder, []):
            cycle = visit(target)
            if cycle:
                return cycle
        path.pop()
        done.add(folder)
        return None

    return next(filter(None, map(visit, table)), None)


def test_every_include_is_one_that_the_table_allows():
    assert list(wrong_includes(sources("proto", "config", "daemon"))) == []


def test_every_line_of_the_table_is_about_something_that_is_there():
    for folder, others in MAY_INCLUDE.items():
        assert (ROOT / folder).is_dir(), folder
        assert set(others) <= set(MAY_INCLUDE), folder


def test_the_table_has_no_cycle():
    assert first_cycle(MAY_INCLUDE) is None
    assert first_cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c"]


def test_a_wrong_include_is_told(monkeypatch):
    monkeypatch.setitem(MAY_INCLUDE, "config", [])
    assert any("config/ must not include proto/" in line for line in wrong_includes(sources("config")))
