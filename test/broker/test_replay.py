"""`bellhop replay`: messages out of parked and dead-letter queues go back to where they came from, and none is lost or forgotten."""

import json
import os
import pty
import subprocess
import time

import pytest

from support import amqp, slips
from support.bellhop import Bellhop, binary, run_cli
from support.claims import MISSING, Consumer, Marker, Side, body_of, claim, put_object
from support.publishing import KIB
from support.rabbitmq import version, wait_until

LOGIN = {"username": "guest", "password": "guest"}


class Replay:
    """A configuration with a store and no daemon. `replay(queue, ...)` runs the command and reads its report."""

    def __init__(self, rabbit, folder, **more):
        self.store = folder / "claims"
        self.store.mkdir(exist_ok=True)
        (self.store / ".bellhop-store").write_text("a store\n")
        config = {"broker": {"url": rabbit.url, **LOGIN}, "stores": {"claims": {"type": "filesystem", "path": str(self.store)}}, **more}
        self.config = Bellhop(config, folder=folder / "etc", start=False).config_path

    def run(self, queue, *args):
        return run_cli("replay", queue, "--config", self.config, *args, timeout=120)

    def __call__(self, queue, *args, code=0):
        done = self.run(queue, "--json", *args)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)


@pytest.fixture
def replay(rabbit, tmp_path):
    return Replay(rabbit, tmp_path)


@pytest.fixture
def side(broker, name):
    """A queue and its parked one."""
    side = Side(broker, name())
    side.channel.declare(side.parked, arguments={"x-expires": 120000})
    return side


def taken(side, queue=None):
    """Everything in the queue, off it."""
    got = []
    while message := side.channel.get(queue or side.queue, no_ack=True):
        got.append(message)
    return got


# -- there and back


def test_what_bellhop_parked_comes_back_and_its_consumer_gets_the_payload(publishing, broker):
    """The whole story: a store is away too long, its claim is parked; the store is back, the operator replays, the service gets its bytes."""
    queue, direct, daemon, up = publishing({"broker": LOGIN, "consume": {"hold_max": "1s"}})
    payload = body_of(100 * KIB)
    store = Marker(daemon)
    up.channel.publish("", queue, payload, expiration="600000", message_id="m-1", headers={"tenant": "a"})
    up.channel.expect("basic.ack", delivery_tag=1)
    [key] = [each.name for each in daemon.store_path.iterdir() if len(each.name) == 36]
    (daemon.store_path / key).rename(daemon.folder / key)
    store.remove()
    consumer = Consumer(daemon, queue)
    side = Side(broker, queue, durable=False, arguments={})
    side.wait_parked(1)
    run = ("replay", side.parked, "--config", daemon.config_path)
    waits = run_cli(*run)
    assert waits.returncode == 1 and "is unavailable" in waits.stdout and side.count(side.parked) == 1

    (daemon.folder / key).rename(daemon.store_path / key)
    store.restore()
    done = run_cli(*run)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout == f"1 message replayed\n  1 to queue '{queue}'\n"
    got = consumer.deliver()
    assert got.body == payload and got.properties["message_id"] == "m-1" and got.properties["expiration"] == "600000"
    assert got.headers.pop("acemq-replayed-at").startswith("20")
    assert got.headers == {"tenant": "a", "acemq-replayed-from": side.parked, "acemq-replay-count": 1}
    consumer.client.close()
    for name in (queue, side.parked):
        side.channel.call("queue.delete", queue=name)


def test_a_slip_leads_to_the_step_that_it_says(rabbit, broker, name, tmp_path):
    line = slips.Line(broker.channel(), name("line"), "validate", "reserve")
    replay = Replay(rabbit, tmp_path, pipelines=line.config())
    side = Side(broker, line.queue("reserve"), arguments=slips.SHORT_LIVED)
    dead = slips.short_lived(side.channel, name("dead"))
    side.send(b"declared", queue=dead, headers=slips.declared(line.steps, 1, run="r-1"))
    side.send(b"carried", queue=dead, headers=slips.itinerary(slips.stop(line.name, "reserve")))
    said = replay(dead)
    assert said["destinations"] == [{"exchange": line.name, "routing_key": "reserve", "messages": 2}]
    first, second = taken(side)
    assert (first.body, second.body) == (b"declared", b"carried") and first.headers[slips.RUN] == "r-1"
    assert slips.ITINERARY in second.headers


def test_a_pipeline_without_an_exchange_is_sent_to_by_its_queues(rabbit, broker, name, tmp_path):
    pipeline = name("line")
    replay = Replay(rabbit, tmp_path, pipelines={pipeline: {"steps": ["one"]}})
    side = Side(broker, pipeline + ".one")
    dead = slips.short_lived(side.channel, pipeline + ".one.dlq")
    side.send(b"x", queue=dead, headers=slips.declared(["one"]))
    assert replay(dead)["destinations"] == [{"exchange": "", "routing_key": pipeline + ".one", "messages": 1}]
    assert [each.body for each in taken(side)] == [b"x"]


def test_what_died_goes_back_to_the_queue_in_which_it_died(replay, broker, name):
    dead = name("common-dead-letters")
    side = Side(broker, name(), arguments={"x-expires": 120000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    slips.short_lived(side.channel, dead)
    side.send(b"rejected", headers={"a": 1})
    got = side.channel.get_wait(side.queue, no_ack=False)
    side.channel.send("basic.reject", delivery_tag=got.delivery_tag, requeue=False)
    side.wait_count(1, dead)
    assert replay(dead)["replayed"] == 1
    [back] = taken(side)
    assert back.body == b"rejected" and back.headers["a"] == 1 and not [each for each in back.headers if "death" in each]


def test_expiration_cc_and_bcc_are_as_they_were_before_the_park(replay, side, broker, name):
    copies, hidden = (slips.short_lived(side.channel, name(word)) for word in ("copies", "hidden"))
    kept = {"bellhop-expiration": "60000", "bellhop-cc": [copies], "bellhop-bcc": [hidden], "x-acemq-error": "why", "a": amqp.Typed("s", 5)}
    side.send(b"x", queue=side.parked, headers=kept, delivery_mode=2, priority=3)
    replay(side.parked)
    [back] = taken(side)
    assert back.properties["expiration"] == "60000" and back.properties["priority"] == 3 and back.properties["delivery_mode"] == 2
    assert {k: v for k, v in back.headers.items() if not k.startswith("acemq-replay")} == {"CC": [copies], "a": 5}
    assert (side.count(copies), side.count(hidden)) == (1, 1)

    side.send(b"y", queue=side.parked, headers=kept)
    replay(side.parked, "--without-cc")
    [back] = taken(side)
    assert "CC" not in back.headers and back.headers["bellhop-cc"] == [copies]
    assert (side.count(copies), side.count(hidden)) == (1, 1)


def test_to_another_place_a_limit_and_a_match(replay, side, name):
    other = slips.short_lived(side.channel, name("other"))
    for number in range(6):
        side.send(b"%d" % number, queue=side.parked, headers={"tenant": "a" if number % 2 else "b"})
    said = replay(side.parked, "--to", "/" + other, "--match", "tenant=a", "--limit", "2")
    assert said["replayed"] == 2 and said["destinations"] == [{"exchange": "", "routing_key": other, "messages": 2}]
    assert [each.body for each in taken(side, other)] == [b"1", b"3"]
    said = replay(side.parked, "--match", "tenant=a")
    assert (said["replayed"], said["without_match"]) == (1, 3)
    assert [each.body for each in taken(side)] == [b"5"]
    assert [each.body for each in taken(side, side.parked)] == [b"0", b"2", b"4"]


def test_a_dry_run_says_where_each_would_go_and_moves_none(replay, side):
    side.send(b"1", b"2", claim(MISSING), queue=side.parked)
    done = replay.run(side.parked, "--dry-run")
    assert done.returncode == 1 and done.stdout.splitlines()[:3] == ["2 messages would be replayed", f"  2 to queue '{side.queue}'",
                                                                    f"1 message would stay in '{side.parked}':"]
    assert side.count() == 0
    assert [each.body for each in taken(side, side.parked)] == [b"1", b"2", claim(MISSING)]


# -- what stays


def test_what_has_no_object_or_no_queue_stays_and_is_listed(replay, side, name):
    key = put_object(replay.store, b"here")
    side.send(claim(key), queue=side.parked)
    side.send(claim(MISSING), queue=side.parked, message_id="gone")
    side.send(claim(key), queue=side.parked, message_id="short", headers={"bellhop-claim-key": key, "bellhop-claim-size": 5})
    done = replay.run(side.parked)
    assert done.returncode == 1 and done.stdout.startswith(f"1 message replayed\n  1 to queue '{side.queue}'\n2 messages stay in '{side.parked}':\n")
    assert f"message 2, message-id gone: claim {MISSING}: no store has its object" in done.stdout
    assert f"message 3, message-id short: claim {key}: its object has 4 bytes, the message says 5" in done.stdout
    assert [each.properties["message_id"] for each in taken(side, side.parked)] == ["gone", "short"]

    exchange = name("nowhere")
    side.send(b"1", b"2", queue=side.parked)
    said = replay(side.parked, "--to", exchange + "/k", code=1)
    assert {each["reason"] for each in said["stay"]} == {f"exchange '{exchange}' is not there"}
    side.channel.call("exchange.declare", exchange=exchange, type="direct", auto_delete=True)
    said = replay(side.parked, "--to", exchange + "/k", code=1)
    assert said["replayed"] == 0 and "no queue takes it" in said["stay"][0]["reason"] and "312 NO_ROUTE" in said["stay"][0]["reason"]
    assert [each.body for each in taken(side, side.parked)] == [b"1", b"2"]
    side.channel.call("exchange.delete", exchange=exchange)


def test_a_queue_that_was_deleted_is_not_made_up_for_by_a_copy(replay, broker, name):
    """A message with CC would be taken by another queue, and the one that it is for is not there."""
    side = Side(broker, name("copies"))
    parked = slips.short_lived(side.channel, name("deleted") + ".parked")
    side.send(b"x", queue=parked, headers={"bellhop-cc": [side.queue], "x-acemq-error": "why"})
    said = replay(parked, code=1)
    assert f"queue '{parked.removesuffix('.parked')}' is not there" in said["stay"][0]["reason"]
    assert (side.count(), side.count(parked)) == (0, 1)


def test_a_place_that_the_user_may_not_write_to(rabbit, replay, side, name):
    user = name("user").replace(".", "")
    rabbit.add_user(user, "secret", write="^$")
    try:
        config = json.loads(replay.config.read_text())
        config["broker"].update(username=user, password="secret")
        replay.config.write_text(json.dumps(config))
        side.send(*(b"%d" % i for i in range(20)), queue=side.parked)
        said = replay(side.parked, code=1)
        assert said["staying"] == 20 and "403 ACCESS_REFUSED" in said["stay"][0]["reason"]
        side.wait_count(20, side.parked)
    finally:
        rabbit.delete_user(user)


def test_nothing_says_where_it_came_from(replay, side, name):
    queue = slips.short_lived(side.channel, name("some-queue"))
    side.send(b"x", queue=queue)
    assert "name it with --to" in replay(queue, code=1)["stay"][0]["reason"]
    assert "it came from this queue itself" in replay(queue, "--to", "/" + queue, code=1)["stay"][0]["reason"]
    assert side.count(queue) == 1


@pytest.mark.parametrize("arguments, words", [
    (["--to", "reports"], "--to: 'reports' has no '/'"),
    (["--match", "tenant"], "--match: 'tenant' is not HEADER=TEXT"),
    (["--rate", "5"], "--rate: '5' is not N/s"),
    (["--limit", "0"], "--limit"),
])
def test_wrong_usage_is_named(replay, side, arguments, words):
    done = replay.run(side.parked, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""


def test_a_queue_that_is_not_there_and_a_stream(replay, side, name):
    assert "is not there, in virtual host '/'" in replay.run(name("none")).stderr
    stream = name("stream")
    side.channel.call("queue.declare", queue=stream, durable=True, arguments={"x-queue-type": "stream"})
    done = replay.run(stream)
    assert done.returncode == 1 and "is a stream: nothing can be taken off it" in done.stderr
    side.channel.call("queue.delete", queue=stream)


@pytest.mark.skipif(version() >= (4, 3), reason="this broker does not count what is put back")
def test_what_stays_in_a_quorum_queue_is_not_dropped_by_its_delivery_limit(replay, broker, name):
    side = Side(broker, name())
    queue = name("worn") + ".parked"
    side.channel.declare(queue, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 2, "x-expires": 120000})
    side.send(claim(MISSING), queue=queue)
    for _ in range(6):
        replay(queue, "--to", "/" + side.queue, code=1)
        wait_until(lambda: side.count(queue) == 1, what="the message to be in its queue again")


# -- many


def filled(side, count):
    for number in range(count):
        side.channel.publish("", side.parked, b"%d" % number)
    side.sent += count
    side.channel.confirms(side.sent, timeout=60)


def test_a_rate_is_kept(replay, side):
    filled(side, 30)
    began = time.monotonic()
    assert replay(side.parked, "--rate", "20/s")["replayed"] == 30
    assert time.monotonic() - began > 1.3
    assert side.count() == 30


def test_ten_thousand_are_replayed_while_somebody_watches(replay, side):
    filled(side, 10000)
    watched, terminal = pty.openpty()
    done = subprocess.Popen([binary(), "replay", side.parked, "--config", replay.config], stdout=subprocess.PIPE, stderr=terminal, text=True)
    os.close(terminal)
    seen = b""
    try:
        while piece := os.read(watched, 65536):
            seen += piece
    except OSError:  # a terminal that everybody has left
        pass
    os.close(watched)
    assert done.stdout.read() == f"10,000 messages replayed\n  10000 to queue '{side.queue}'\n" and done.wait(60) == 0
    assert b" of 10000: " in seen and b"\r10000 of 10000: 10000 replayed, 0 stay" in seen
    assert [int(each.body) for each in taken(side)] == list(range(10000))


def test_killed_and_run_again_nothing_is_lost_and_few_come_twice(replay, side):
    filled(side, 10000)
    process = subprocess.Popen([binary(), "replay", side.parked, "--config", replay.config, "--rate", "20000/s"])
    wait_until(lambda: side.count() > 1000, what="a thousand replayed messages")
    process.kill()
    process.wait()
    wait_until(lambda: side.count() + side.count(side.parked) >= 10000, what="the messages of the killed one to be back")
    replayed = replay(side.parked)["replayed"]
    assert replayed < 9500 and side.count(side.parked) == 0
    numbers = [int(each.body) for each in taken(side)]
    assert set(numbers) == set(range(10000)) and len(numbers) - 10000 <= 256


def test_an_interrupt_ends_it_between_two_messages(replay, side):
    filled(side, 1000)
    process = subprocess.Popen([binary(), "replay", side.parked, "--config", replay.config, "--rate", "50/s"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: side.count() >= 10, what="ten replayed messages")
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "stopped; the rest is in the queue" in err and "messages replayed" in out
    side.wait_count(1000 - side.count(), side.parked)


def test_no_more_are_taken_than_were_there_at_the_start(bellhop, broker, name):
    """A consumer that parks everything at once again would keep a replay busy for ever."""
    daemon = bellhop({"broker": LOGIN})
    side = Side(broker, name())
    consumer = Consumer(daemon, side.queue)
    keys = [put_object(daemon, b"x") for _ in range(5)]
    for key in keys:  # there, but not what the message says: parked again
        side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-xxh128": "0" * 32})
    side.wait_parked(5)
    done = run_cli("replay", side.parked, "--config", daemon.config_path)
    assert done.returncode == 0 and done.stdout.startswith("5 messages replayed\n")
    side.wait_parked(5)
    consumer.client.close()
    side.channel.call("queue.delete", queue=side.parked)
