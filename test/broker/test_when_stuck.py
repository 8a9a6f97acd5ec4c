"""The commands that deploy/README.md shows under "When something is stuck", run as they stand there but for names: a payload is gone, the
messages are parked, the operator looks, mends, and sends them back."""

import json
import re
import shlex
import subprocess

import pytest

from support.bellhop import binary
from support.claims import Consumer, Side, body_of
from support.documents import ROOT, blocks
from support.publishing import KIB, publisher
from support.slips import short_lived

KEY = "0f8fad5b-d9cb-469f-a165-70867728950e"


def shown(command):
    """The chapter's lines with this command, as lists of words."""
    lines = [line for block in blocks(ROOT / "deploy" / "README.md", "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"bellhop {command} ")]


@pytest.fixture
def stuck(publishing, broker, tmp_path):
    """Five parked messages whose payloads are gone, and `run` for a command's words."""
    class Stuck:
        def __init__(self):
            self.queue, _, self.daemon, up = publishing({"broker": {"username": "guest", "password": "guest"}})
            self.side = Side(broker, self.queue, durable=False, arguments={})
            self.payloads = [body_of(100 * KIB, seed) for seed in range(5)]
            for payload in self.payloads:
                up.channel.publish("", self.queue, payload, expiration="600000", headers={"tenant": "acme"})
            up.channel.confirms(5)
            self.aside = tmp_path / "aside"
            self.aside.mkdir()
            self.move(self.daemon.store_path, self.aside)
            self.consumer = Consumer(self.daemon, self.queue)
            self.side.wait_parked(5)

        def move(self, here, there):
            self.keys = [each.name for each in here.iterdir() if re.fullmatch("[0-9a-f-]{36}", each.name)]
            for key in self.keys:
                (here / key).rename(there / key)

        def run(self, words):
            names = {"bellhop": binary(), "bellhop.yaml": str(self.daemon.config_path), KEY: self.keys[0],
                     "reports.parked": self.side.parked, "/reports.acme": f"/{self.queue}.acme"}
            done = subprocess.run([names.get(word, word) for word in words], capture_output=True, text=True, cwd=tmp_path, timeout=60)
            print(words, done)
            return done
    stuck = Stuck()
    yield stuck
    stuck.consumer.client.close()
    for name in (stuck.queue, stuck.side.parked):
        stuck.side.channel.call("queue.delete", queue=name)


def test_what_the_chapter_shows_is_what_helps(stuck, tmp_path):
    first, programs, save = shown("peek")
    assert "ABSENT" in (said := stuck.run(first)).stdout and "parked because" in said.stdout and said.returncode == 0
    assert len(json.loads(stuck.run(programs).stdout)["shown"]) == 5
    saved = stuck.run(save)
    assert saved.returncode == 1 and "its payload is not saved" in saved.stderr and (tmp_path / "evidence" / "0001.json").exists()

    queue, key = shown("where")
    assert "5 claims, 5 of them not there or not right" in (said := stuck.run(queue)).stdout and said.returncode == 1
    assert "ABSENT" in (said := stuck.run(key)).stdout and said.returncode == 1

    dry, one, all_of_them, match = shown("replay")
    assert stuck.run(dry).returncode == 1
    stuck.move(stuck.aside, stuck.daemon.store_path)
    assert stuck.run(queue).returncode == 0 and stuck.run(key).returncode == 0
    assert stuck.run(dry).stdout == f"5 messages would be replayed\n  5 to queue '{stuck.queue}'\n" and stuck.side.count(stuck.side.parked) == 5

    assert stuck.run(one).stdout.startswith("1 message replayed")
    acme = short_lived(stuck.side.channel, f"{stuck.queue}.acme")
    assert stuck.run([*match, "--limit", "1"]).stdout.startswith("1 message replayed") and stuck.side.count(acme) == 1
    assert stuck.run(all_of_them).stdout.startswith("3 messages replayed")
    got = [stuck.consumer.deliver() for _ in range(4)]
    bodies = {each.body for each in got}  # the order is that of the parks
    assert len(bodies) == 4 and bodies < set(stuck.payloads)
    assert all(each.properties["expiration"] == "600000" and each.headers["tenant"] == "acme" for each in got)
