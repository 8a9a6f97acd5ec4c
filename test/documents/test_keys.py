"""One key stands in five places: the loader, the JSON schema, the sample bellhop.yaml, config/README.md, and what `bellhop check`
prints. Here they are held together. The defaults in the schema's descriptions are tried with the program."""

import importlib.util
import json
import re
import subprocess

import pytest
import yaml

from support.bellhop import binary
from support.documents import ROOT

_spec = importlib.util.spec_from_file_location("reference", ROOT / "config" / "reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

SCHEMA = json.loads((ROOT / "config" / "bellhop.schema.json").read_text())
KEYS = reference.keys(SCHEMA)
STORES = {"filesystem": {"type": "filesystem", "path": "/tmp"}, "s3": {"type": "s3", "bucket": "claims"}, "memory": {"type": "memory"}}


def check(tmp_path, config):
    file = tmp_path / "bellhop.yaml"
    file.write_text(json.dumps(config))
    return subprocess.run([binary(), "check", file], capture_output=True, text=True)


def with_every_section(store):
    """A file in which each section is there once, so that a key can be put into it."""
    return {
        "listen": [{"unix": "/run/bellhop/bellhop.sock"}, {"tcp": "127.0.0.1:5673"}],
        "broker": {"url": "amqps://localhost", "tls": {}},
        "stores": {"NAME": dict(STORES[store])},
        "claim_check": {}, "stamp": {}, "slip": {}, "consume": {}, "limits": {}, "admin": {}, "log": {},
        "pipelines": {"NAME": {"steps": ["a"]}},
        "routes": [{"name": "a", "match": {}}, {"name": "b", "to": {"exchange": "e"}},
                   {"name": "c", "slip": {"itinerary": [{"exchange": "e"}]}}],
    }


def sections(value, path=""):
    """Every mapping with fixed keys in such a file, with its path."""
    if isinstance(value, list):
        for item in value:
            yield from sections(item, path + "[]")
    elif isinstance(value, dict):
        if path not in ("stores", "pipelines"):
            yield path, value
        for key, item in list(value.items()):
            yield from sections(item, f"{path}.{key}" if path else key)


def test_the_reference_has_every_key_of_the_schema():
    result = subprocess.run([ROOT / "config" / "reference.py", "--check"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_key_is_explained():
    sections_of_keys = {re.sub(r"(\[\]|\.NAME)?\.\w+$", "", key.path) for key in KEYS}
    assert not [key.path for key in KEYS if not key.meaning and key.path not in sections_of_keys]


def test_the_loader_knows_the_keys_of_the_schema_and_no_others(tmp_path):
    loader = {}
    for store in STORES:
        config = with_every_section(store)
        for _, section in sections(config):
            section["nonsense"] = 1
        errors = check(tmp_path, config).stderr
        for path, allowed in re.findall(r": (\S*?)\.?nonsense: unknown key(?: \(.*\))?, allowed: (.*)$", errors, flags=re.M):
            form = store if path.startswith("stores") else ""
            loader.setdefault((re.sub(r"\[\d+\]", "[]", path), form), set()).update(allowed.split(", "))
    schema = {}
    for key in KEYS:
        section, _, name = key.path.rpartition(".")
        schema.setdefault((section, key.form), set()).add(name)
    assert loader == schema


def test_the_sample_shows_every_key():
    known = {key.path for key in KEYS}
    shown = set()

    def walk(value, path):
        for item in value if isinstance(value, list) else []:
            walk(item, path + "[]")
        for key, item in value.items() if isinstance(value, dict) else []:
            here = f"{path}.{key}" if path else key
            if here in known:
                shown.add(here)
                walk(item, here)
            else:
                walk(item, f"{path}.NAME")

    walk(yaml.safe_load((ROOT / "config" / "bellhop.yaml").read_text()), "")
    assert known - shown == set()


def another(key):
    """A value that is not the default, and allowed."""
    if key.default in ("true", "false"):
        return key.default != "true"
    if key.choices:
        return next(choice for choice in key.choices if choice != key.default)
    if re.match(r"\d", key.default):
        text = re.sub(r"^\d+", lambda number: str(int(number.group()) + 1), key.default)
        return int(text) if text.isdigit() else text
    return {'"0660"': "0600", '"0640"': "0600", "none": "AES256"}.get(key.default, key.default + "x")


def put(config, path, value):
    """Sets every place of `path` in a file with every section."""
    section, _, name = path.rpartition(".")
    for here, mapping in list(sections(config)):
        if here == section and not (here == "listen[]" and ("tcp" in mapping) != (name in ("tcp", "users", "anonymous"))):
            mapping[name] = value


@pytest.mark.parametrize("key", [key for key in KEYS if key.is_literal], ids=lambda key: f"{key.path}-{key.form}".strip("-"))
def test_a_default_is_the_loaders_and_check_shows_it(key, tmp_path):
    store = key.form or "filesystem"
    value = yaml.safe_load(key.default)

    def report(**changes):
        config = with_every_section(store)
        for path, text in changes.items():
            put(config, path, text)
        result = check(tmp_path, config)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert report(**{key.path: value}) == report()
    assert report(**{key.path: another(key)}) != report()
