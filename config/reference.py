#!/usr/bin/python3
"""Writes the list of all keys in config/README.md, from the descriptions in bellhop.schema.json.

    config/reference.py            writes it
    config/reference.py --check    says whether it is up to date (exit code 1: no)

A description is `What it means. Default: its default.`; a key that is required has no default.
"""

import json
import pathlib
import re
import sys
import textwrap

FOLDER = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- written by config/reference.py -->\n", "<!-- end -->\n"


class Key:
    """One key: `path` as in `stores.NAME.path`, and which of several forms of its section it belongs to (else "")."""

    def __init__(self, path, schema, required, form):
        self.path, self.required, self.form = path, required, form
        self.meaning, _, default = schema.get("description", "").partition(" Default: ")
        self.default = default.removesuffix(".")
        # A value as it is written in a file, not words.
        self.choices = schema.get("enum", [])
        self.is_literal = self.default in self.choices or bool(re.fullmatch(r'"\d+"|/\S+|\d\w*|true|false', self.default))

    def line(self):
        note = "required" if self.required else ""
        if self.default:
            note = f"default `{self.default}`" if self.is_literal else f"default: {self.default}"
        text = f"- `{self.path}`" + (f" ({note})" if note else "") + f": {self.meaning}"
        # An angle bracket would begin HTML, and an asterisk emphasis.
        text = re.sub(r"[<*]", lambda found: "\\" + found.group(), text)
        return textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def keys(schema):
    """All keys of the schema in its order. A definition that is used twice is walked through where it stands first."""
    found, seen = [], set()

    def resolve(node):
        while "$ref" in node and "properties" not in node:
            name = node["$ref"].rsplit("/", 1)[1]
            node = {**schema["definitions"][name], "definition": name}
        return node

    def walk(path, node, form, is_choice=False):
        node = resolve(node)
        name = node.get("definition")
        if "properties" in node and name in seen:
            return
        if name is not None and "properties" in node:
            seen.add(name)
        for key, value in node.get("properties", {}).items():
            here = f"{path}.{key}" if path else key
            entry = Key(here, {**resolve(value), **value}, key in node.get("required", []) and not is_choice, form)
            found.append(entry)
            walk(here, value, form)
        if isinstance(node.get("items"), dict):
            walk(path + "[]", node["items"], form)
        if isinstance(node.get("additionalProperties"), dict):
            walk(path + ".NAME", node["additionalProperties"], form)
        for each in node.get("oneOf", []):
            variant = resolve(each)
            kind = variant.get("properties", {}).get("type", {}).get("enum", [form])[0]
            walk(path, each, kind, is_choice=kind == form)

    walk("", schema, "")
    return found


def reference(schema):
    """The text between the marks: a heading for each top key, and one for each form of a store."""
    lines, top, form = [], None, ""
    for key in keys(schema):
        first = re.split(r"[.\[]", key.path)[0]
        if first != top:
            top, form = first, ""
            lines.append(f"\n### `{top}`\n")
        if key.form != form:
            form = key.form
            lines.append(f"\n#### Stores with `type: {form}`\n")
        if key.meaning:
            lines.append(key.line())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines) + "\n\n")


def main():
    readme = FOLDER / "README.md"
    text = readme.read_text(encoding="utf-8")
    schema = json.loads((FOLDER / "bellhop.schema.json").read_text(encoding="utf-8"))
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + reference(schema) + END + after
    if sys.argv[1:] == ["--check"]:
        if wanted != text:
            sys.exit("config/README.md does not have the keys of config/bellhop.schema.json: run config/reference.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        readme.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
