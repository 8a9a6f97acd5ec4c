"""The commands that deploy/operations.md shows under "When something is stuck", run as they stand there but for names: a payload is gone, the
messages are parked, the operator looks, mends, and sends them back."""

import json
import re
import shlex
import subprocess

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import binary, run_cli
from support.claims import Consumer, Marker, Side, body_of
from support.documents import ROOT, blocks
from support.publishing import KIB
from support.rabbitmq import free_port, wait_until
from support.slips import short_lived

KEY = "0f8fad5b-d9cb-469f-a165-70867728950e"


def shown(command):
    """The chapter's lines with this command, as lists of words."""
    lines = [line for block in blocks(ROOT / "deploy/operations.md", "sh") for line in block.splitlines()]
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


# -- what `status` says first, by the rows of the chapter's table


def said_by_status(daemon, tmp_path):
    [words] = shown("status")
    names = {"bellhop": binary(), "bellhop.yaml": str(daemon.config_path)}
    done = subprocess.run([names.get(word, word) for word in words], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    return done.stdout + done.stderr


def row(word):
    """The chapter has a row for it: what an operator sees is what stands there."""
    assert f"| `{word}" in (ROOT / "deploy/operations.md").read_text(), word
    return word


def test_status_of_one_that_does_not_run(bellhop, tmp_path):
    daemon = bellhop()
    daemon.sigterm()
    assert daemon.wait() == 0
    assert "there is no admin socket" in said_by_status(daemon, tmp_path)


def test_status_without_a_broker(bellhop, tmp_path):
    daemon = bellhop({"broker": {"url": f"amqp://127.0.0.1:{free_port()}", "connect_timeout": "1s"}})
    with pytest.raises(amqp.AmqpError):
        amqp.connect(daemon.socket)
    assert said_by_status(daemon, tmp_path).startswith(row("NOT READY     broker"))
    assert "session gets no broker" in daemon.log


def test_status_while_a_store_fails_and_while_deliveries_are_held(publishing, broker, tmp_path):
    queue, _, daemon, up = publishing()
    side = Side(broker, queue, durable=False, arguments={})
    up.channel.publish("", queue, body_of(100 * KIB))
    up.channel.confirms(1)
    [key] = daemon.objects()
    marker = Marker(daemon)
    marker.remove()
    (daemon.store_path / key).rename(tmp_path / key)
    consumer = Consumer(daemon, queue)
    for tag in (2, 3, 4):
        up.channel.publish("", queue, body_of(100 * KIB))
        up.channel.expect("basic.nack", delivery_tag=tag)
    wait_until(lambda: row("HELD") in said_by_status(daemon, tmp_path), 20, "the held delivery")
    assert row("NOT READY     store") in said_by_status(daemon, tmp_path)
    assert daemon.store_path.name in daemon.log
    (tmp_path / key).rename(daemon.store_path / key)
    marker.restore()
    assert consumer.deliver(timeout=30).body == body_of(100 * KIB)
    assert row("HELD") not in said_by_status(daemon, tmp_path)
    assert side.count() == 0


def test_status_after_a_reload_that_failed_until_it_is_mended(bellhop, tmp_path):
    daemon = bellhop()
    good = daemon.config_path.read_text()
    daemon.config_path.write_text(good.replace('"broker"', '"brokr"'))
    asked = Admin(daemon.admin_socket)
    asked.post("/reload")
    wait_until(lambda: asked.status()["config"]["problems"], 20, "the failed reload")
    daemon.config_path.write_text(good)  # mended, and not reloaded yet
    said = said_by_status(daemon, tmp_path)
    assert row("RELOAD FAILED") in said and "brokr" in said
    assert run_cli("reload", "--config", daemon.config_path).returncode == 0
    said = said_by_status(daemon, tmp_path)
    assert row("RELOAD FAILED") not in said and said.startswith(row("ready"))


def test_the_log_tells_of_each_message_after_the_commands_of_the_chapter(publishing, tmp_path):
    queue, _, daemon, up = publishing()
    more, less = shown("log-level")
    names = {"bellhop": binary(), "bellhop.yaml": str(daemon.config_path)}

    def level(words):
        done = subprocess.run([names.get(word, word) for word in words], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done
        return len(daemon.log)

    level(more)
    up.channel.publish("", queue, body_of(100 * KIB))
    up.channel.confirms(1)
    daemon.wait_log("debug payload offloaded")
    begin = level(less)
    up.channel.publish("", queue, body_of(100 * KIB))
    up.channel.confirms(2)
    assert "payload offloaded" not in daemon.log[begin:]


def test_tap_shows_where_the_next_messages_go(publishing, tmp_path):
    queue, _, daemon, up = publishing()
    [words] = shown("tap")
    names = {"bellhop": binary(), "bellhop.yaml": str(daemon.config_path)}
    tap = subprocess.Popen([names.get(word, word) for word in words], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    daemon.wait_log("tap begins")
    for number in range(1, 21):
        up.channel.publish("", queue, body_of(100 * KIB))
        up.channel.confirms(number)
    lines = tap.communicate(timeout=60)[0].splitlines()
    assert tap.returncode == 0 and len(lines) == 20
    assert all(f"routing_key={queue}" in line and "store=claims" in line for line in lines)


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
