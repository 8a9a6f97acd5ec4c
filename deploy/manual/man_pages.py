"""bellhop.8 from the command line, bellhop.yaml.5 from the schema. What people wrote is in deploy/man/*.in; the rest comes where
these have @COMMANDS@ and @KEYS@."""

import importlib.util
import json
import pathlib
import re

from roff import bold, escape, italic, item, prose

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "deploy" / "man"
MARK = '.\\" Written by deploy/manual/write. What people wrote is in {}.\n'

_spec = importlib.util.spec_from_file_location("reference", ROOT / "config" / "reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)


def _filled(name, mark, text):
    template = TEMPLATES / f"{name}.in"
    before, after = template.read_text(encoding="utf-8").split(mark + "\n")
    return MARK.format(f"deploy/man/{template.name}") + before + text + after


def _usage(words):
    """`bellhop sweep [OPTIONS] STORE`: what is typed is bold, what stands for something is italic."""
    return " ".join(italic(word) if re.fullmatch(r"\[?[A-Z]+\]?", word) else bold(word) for word in words.split())


def _head(argument):
    names = ", ".join(bold(name) for name in argument.names)
    return " ".join(part for part in (names, italic(argument.value) if argument.value else "") if part)


def _meaning(argument):
    notes = []
    if argument.required and argument.names:
        notes.append("required")
    if argument.bounds:
        low, high = argument.bounds.split(" - ")
        # Beyond 32 bits the bound is the number's own.
        notes.append(f"{low} to {high}" if int(high) < 1 << 32 else f"{low} or more")
    if argument.default:
        notes.append(f"default: {argument.default}")
    return prose(argument.explanation) + (f"\n({', '.join(notes)})" if notes else "")


def commands_page(top, commands):
    """bellhop.8. --help is the same everywhere, so it stands once."""
    parts = []
    for command in commands.values():
        parts.append(f".SS {_usage(command.usage)}\n{prose(command.summary)}.\n")
        parts += [item(_head(argument), _meaning(argument)) for argument in command.arguments if "--help" not in argument.names]
        parts += [".PP\n" + prose(" ".join(paragraph)) + "\n" for paragraph in command.footer]
    parts.append(".SS Of every command\n")
    parts += [item(_head(option), _meaning(option)) for option in top.options]
    return _filled("bellhop.8", "@COMMANDS@", "".join(parts))


def configuration_page():
    """bellhop.yaml.5: each key, in the schema's order, below its section."""
    parts, section, form = [], None, ""
    for key in reference.keys(json.loads((ROOT / "config" / "bellhop.schema.json").read_text(encoding="utf-8"))):
        first = re.split(r"[.\[]", key.path)[0]
        if first != section:
            section, form = first, ""
            parts.append(f".SS {escape(section)}\n")
        if key.form != form:
            form = key.form
            parts.append(f".PP\nStores with {bold('type: ' + form)}:\n")
        if key.meaning:
            note = "Required." if key.required else f"Default: {bold(key.default) if key.is_literal else prose(key.default)}." if key.default else ""
            parts.append(item(bold(key.path), prose(key.meaning) + (f"\n{note}" if note else "")))
    return _filled("bellhop.yaml.5", "@KEYS@", "".join(parts))
