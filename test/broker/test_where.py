"""`bellhop where`: where a payload is, and what state it is in. It needs no running bellhop, and changes nothing."""

import json
import os
import re
import time

import pytest

from support.bellhop import Bellhop, run_cli
from support.claims import MISSING, Side, claim, put_object
from support.publishing import KIB, key_of, pattern, sent_through
from support.xxh128 import xxh128

LOGIN = {"username": "guest", "password": "guest"}


@pytest.fixture
def stores(rabbit, tmp_path):
    """A configuration with two stores, `claims` (kept for 30 days) and `archive`, and no daemon. `stores.where(...)` asks."""
    class Stores:
        claims, archive = tmp_path / "claims", tmp_path / "archive"

        def __init__(self):
            for folder in (self.claims, self.archive):
                folder.mkdir()
                (folder / ".bellhop-store").write_text("a store\n")
            config = {"broker": {"url": rabbit.url, **LOGIN}, "claim_check": {"store": "claims"},
                      "stores": {"archive": {"type": "filesystem", "path": str(self.archive)},
                                 "claims": {"type": "filesystem", "path": str(self.claims), "retention": "30d"}}}
            self.config = Bellhop(config, folder=tmp_path / "etc", start=False).config_path

        def where(self, *args):
            return run_cli("where", *args, "--config", self.config)

        def state(self, *args):
            """(exit code, what it says of each store)"""
            done = self.where(*args, "--json")
            return done.returncode, {each["store"]: each for each in json.loads(done.stdout)["stores"]}
    return Stores()


def test_a_payload_that_was_published_is_found_with_all_that_is_known_of_it(publishing):
    queue, direct, daemon, _ = publishing({"broker": LOGIN})
    payload = pattern(100 * KIB)
    message = sent_through(daemon, direct, queue, payload)
    key = key_of(message)
    done = run_cli("where", key, "--config", daemon.config_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert lines[0] == ["claim", key]
    said = dict(line for line in lines if line)
    assert said["object"] == "present" and said["store"] == "claims (filesystem)" and said["place"] == f"{daemon.store_path}/{key}"
    assert said["size"] == "102.4 kB (102400 bytes)" and said["written"].endswith(" s ago")
    assert said["checksum"].startswith(f"XXH3-128 {xxh128(payload)}") and said["retention"].startswith("none")

    checked = run_cli("where", key, "--config", daemon.config_path, "--xxh128", message.headers["bellhop-claim-xxh128"])
    assert checked.returncode == 0 and "checksum  right" in checked.stdout


def test_each_store_is_looked_into(stores):
    key = put_object(stores.archive, b"old letters")
    code, said = stores.state(key)
    assert code == 0 and list(said) == ["claims", "archive"]  # as a delivery asks: the default one first
    assert said["claims"]["object"] == "missing" and "retention" in said["claims"]["reason"]
    assert said["archive"] == {"key": key, "object": "present", "store": "archive", "type": "filesystem", "place": f"{stores.archive}/{key}",
                               "size_bytes": 11, "written_at": said["archive"]["written_at"], "age_s": said["archive"]["age_s"],
                               "checksum": {"state": "unknown", "xxh128": xxh128(b"old letters")}}


def test_what_is_left_of_the_retention(stores):
    key = put_object(stores.claims, b"x")
    written = time.time() - 29 * 86400 - 20 * 3600 - 630  # ten minutes past the hour, so that a slow machine says the same
    os.utime(stores.claims / key, (written, written))
    done = stores.where(key)
    assert "written   " in done.stdout and "29 days 20 h ago" in done.stdout and re.search("3 h 4[0-9] min left of 30d", done.stdout)
    os.utime(stores.claims / key, (written - 86400, written - 86400))
    assert "OVER (30d): the next sweep removes it" in stores.where(key).stdout
    code, said = stores.state(key)
    assert code == 0 and said["claims"]["retention_s"] == 30 * 86400 and -74000 < said["claims"]["retention_left_s"] < -72000


def test_a_payload_that_somebody_changed_is_told_by_its_checksum(stores):
    key = put_object(stores.claims, b"as it was")
    right = xxh128(b"as it was")
    assert stores.state(key, "--xxh128", right)[0] == 0
    (stores.claims / key).write_bytes(b"as it is!")
    code, said = stores.state(key, "--xxh128", right)
    assert code == 1 and said["claims"]["checksum"]["state"] == "wrong"
    assert right in said["claims"]["checksum"]["problem"] and xxh128(b"as it is!") in said["claims"]["checksum"]["problem"]


def test_a_store_without_its_marker_does_not_say_that_a_payload_is_gone(stores):
    (stores.claims / ".bellhop-store").unlink()
    code, said = stores.state(MISSING)
    assert code == 1 and said["claims"]["object"] == "unavailable" and ".bellhop-store" in said["claims"]["reason"]
    assert said["archive"]["object"] == "missing"
    assert not (stores.claims / ".bellhop-store").exists(), "a look writes no marker"


def test_what_stands_under_a_key_and_is_no_payload(stores, tmp_path):
    (tmp_path / "passwords").write_text("secret")
    (stores.claims / MISSING).symlink_to(tmp_path / "passwords")
    code, said = stores.state(MISSING)
    assert code == 1 and said["claims"]["object"] == "no_object" and "checksum" not in said["claims"]


@pytest.mark.parametrize("arguments, words", [
    (["../../etc/passwd"], "is not a key this store issued"),
    ([], "where takes a KEY or --queue QUEUE, one of them"),
    (["k", "--queue", "q"], "where takes a KEY or --queue QUEUE, one of them"),
])
def test_wrong_usage_is_exit_code_2(stores, arguments, words):
    done = stores.where(*arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""


def test_the_claims_of_a_queue_are_all_looked_for(stores, broker, name):
    side = Side(broker, name())
    here, damaged = put_object(stores.claims, b"here"), put_object(stores.archive, b"dam4ged")
    side.send(b"no claim", claim(here), claim(MISSING))
    headers = {"bellhop-claim-key": damaged, "bellhop-claim-xxh128": xxh128(b"damaged"), "bellhop-claim-size": 7}
    side.send(claim(damaged), headers=headers)
    done = stores.where("--queue", side.queue)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.splitlines()[-1] == "4 messages looked at: 3 claims, 2 of them not there or not right"
    said = json.loads(stores.where("--queue", side.queue, "--json").stdout)
    assert [(each["number"], each["object"], each.get("checksum", {}).get("state")) for each in said["claims"]] == [
        (2, "present", "unknown"), (3, "missing", None), (4, "present", "wrong")]
    assert side.count() == 4
    assert stores.where("--queue", side.queue, "-n", "2").returncode == 0
