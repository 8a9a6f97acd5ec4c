"""`bellhop where`, `peek` and `replay` with payloads in a bucket."""

import json

import pytest

from support.bellhop import Bellhop, run_cli
from support.claims import MISSING, Side, body_of, claim
from support.publishing import publisher
from support.xxh128 import xxh128

LOGIN = {"username": "guest", "password": "guest"}


@pytest.fixture
def archive(bellhop, broker, name, s3):
    """Two payloads in a bucket and their messages in a queue: a small one and one of 20 MiB."""
    class Archive:
        prefix = name("look") + "/"
        payloads = [body_of(100_000), body_of(20 << 20, 1)]

        def __init__(self):
            self.server = s3
            # s3rver removes the folder with the probe's object, and what is being put there at that moment is lost.
            self.daemon = bellhop({"broker": LOGIN, "stores": {"archive": s3.store(prefix=self.prefix, probe=False)}})
            self.side = Side(broker, name())
            up = publisher(self.daemon)
            for payload in self.payloads:
                up.channel.publish("", self.side.queue, payload)
            up.channel.confirms(2, timeout=60)
            self.keys = [each.removeprefix(self.prefix) for each in s3.names(self.prefix)]

        def run(self, *args):
            return run_cli(*args, "--config", self.daemon.config_path)
    return Archive()


def test_where_they_are_and_whether_they_are_right(archive):
    done = archive.run("where", "--queue", archive.side.queue, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["claims"]
    assert [(each["object"], each["size_bytes"], each["checksum"]["state"]) for each in said] == [
        ("present", len(payload), "right") for payload in archive.payloads]
    for each in said:
        assert each["type"] == "s3" and each["place"].endswith("/" + archive.prefix + each["key"]) and 0 <= each["age_s"] < 600
    one = json.loads(archive.run("where", said[1]["key"], "--json").stdout)["stores"][0]
    assert one["checksum"] == {"state": "unknown", "xxh128": xxh128(archive.payloads[1])}


def test_an_object_that_is_not_there_and_a_bucket_that_is_not(archive):
    done = archive.run("where", MISSING)
    assert done.returncode == 1 and "ABSENT: removed by retention, or stored elsewhere" in done.stdout
    config = json.loads(archive.daemon.config_path.read_text())
    config["stores"]["archive"]["bucket"] = "no-such-bucket"
    other = Bellhop(config, folder=archive.daemon.folder / "other", start=False)
    done = run_cli("where", MISSING, "--config", other.config_path)
    assert done.returncode == 1 and "UNKNOWN: store 'archive' is unavailable" in done.stdout and "NoSuchBucket" in done.stdout


def test_they_are_saved_and_replayed(archive, tmp_path, name):
    done = archive.run("peek", archive.side.queue, "-n", "2", "--save", tmp_path / "saved")
    assert done.returncode == 0, done.stderr
    for number, payload in enumerate(archive.payloads, 1):
        assert (tmp_path / "saved" / f"{number:04}.payload").read_bytes() == payload
    archive.side.send(claim(MISSING))
    other = name("other")
    archive.side.channel.declare(other, arguments={"x-expires": 120000})
    done = archive.run("replay", archive.side.queue, "--to", "/" + other)
    assert done.returncode == 1 and done.stdout.startswith("2 messages replayed\n") and MISSING in done.stdout
    assert (archive.side.count(other), archive.side.count()) == (2, 1)
