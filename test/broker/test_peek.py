"""`bellhop peek`: what it shows of the messages in front of a queue, and that the queue holds what it held, in its order."""

import json

import pytest

from support import amqp, slips
from support.bellhop import Bellhop, run_cli
from support.claims import MISSING, Side, body_of, claim, put_object
from support.rabbitmq import version, wait_until

LOGIN = {"username": "guest", "password": "guest"}
KINDS = {"classic": {"x-expires": 120000}, "quorum": {"x-queue-type": "quorum", "x-expires": 120000},
         "stream": {"x-queue-type": "stream"}}
COUNTS_RETURNS = version() < (4, 3)
LIMITED = {"x-queue-type": "quorum", "x-delivery-limit": 8, "x-expires": 120000}


class Peek:
    """A configuration with a store and no daemon. `peek(queue, ...)` asks."""

    def __init__(self, rabbit, folder):
        self.store = folder / "claims"
        self.store.mkdir()
        (self.store / ".bellhop-store").write_text("a store\n")
        config = {"broker": {"url": rabbit.url, **LOGIN}, "stores": {"claims": {"type": "filesystem", "path": str(self.store)}}}
        self.config = Bellhop(config, folder=folder / "etc", start=False).config_path

    def __call__(self, queue, *args, code=0):
        done = run_cli("peek", queue, "--config", self.config, *args)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def json(self, queue, *args):
        return json.loads(self(queue, "--json", *args).stdout)


@pytest.fixture
def peek(rabbit, tmp_path):
    return Peek(rabbit, tmp_path)


@pytest.fixture(params=list(KINDS))
def side(request, broker, name):
    side = Side(broker, name(), arguments=KINDS[request.param])
    side.kind = request.param
    yield side
    if request.param == "stream":
        side.channel.call("queue.delete", queue=side.queue)


def all_of(side):
    """Everything that the queue holds: (body, headers without those that the broker counts in), read to its end."""
    own = ("x-delivery-count", "x-acquired-count", "x-stream-offset")
    channel, got = side.channel.client.channel(), []
    if side.kind == "stream":
        channel.call("basic.qos", prefetch_count=100)
        channel.call("basic.consume", queue=side.queue, arguments={"x-stream-offset": "first"})
        got = [channel.deliver() for _ in range(side.sent)]
        channel.expect_nothing()
    else:
        wait_until(lambda: side.count() == side.sent, what="all messages to be back in their queue")
        while message := channel.get(side.queue):
            got.append(message)
    return [(each.body, {k: v for k, v in (each.properties.get("headers") or {}).items() if k not in own}) for each in got]


def test_the_queue_holds_what_it_held_in_its_order(peek, side):
    bodies = [b"m%d" % i for i in range(9)]
    for number, body in enumerate(bodies):
        side.send(body, headers={"n": number})
    for look in (1, 4, 9, 100):
        said = peek.json(side.queue, "-n", str(look))
        assert said["type"] == side.kind
        assert [each["headers"]["n"] for each in said["shown"]] == list(range(min(look, 9)))
    assert all_of(side) == [(body, {"n": number}) for number, body in enumerate(bodies)]


def test_everything_that_is_known_of_a_parked_claim(peek, side):
    key = put_object(peek.store, body_of(100000))
    headers = {**slips.declared(["validate", "reserve", "dispatch"], 1, run="8d0f6c0e-6c8f-4f0b-9d3e-3f1c2b1a0e55"),
               "x-acemq-error": "store unavailable", "bellhop-claim-key": key, "bellhop-claim-size": 100000, "tries": 3}
    side.send(claim(key), headers=headers, content_type="image/tiff", message_id="m-1", priority=4, timestamp=1796094000)
    out = peek(side.queue).stdout
    for line in ("parked because    store unavailable", "slip              validate -> [reserve] -> dispatch (step 2 of 3, run 8d0f6c0e",
                 f"claim             {key}", "object          present", f"place           {peek.store}/{key}",
                 "size            100.0 kB (100000 bytes)", "content_type      image/tiff", "message_id        m-1", "priority          4",
                 "timestamp         2026-12-01T03:00:00Z", "tries: 3"):
        assert line in out, f"{line!r} is not in\n{out}"
    [shown] = peek.json(side.queue)["shown"]
    assert shown["slip"] == {"form": "route", "steps": ["validate", "reserve", "dispatch"], "position": 1, "current": "reserve",
                             "run_id": "8d0f6c0e-6c8f-4f0b-9d3e-3f1c2b1a0e55"}
    assert shown["claim"]["object"] == "present" and shown["claim"]["size_bytes"] == 100000


def test_an_object_that_is_gone_or_has_another_size_is_said_so(peek, broker, name):
    side = Side(broker, name())
    key = put_object(peek.store, b"short")
    side.send(claim(MISSING))
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-size": 9})
    out = peek(side.queue, "-n", "2").stdout
    assert "ABSENT: removed by retention, or stored elsewhere" in out and "5 bytes: WRONG, the message says 9 bytes" in out


def test_how_often_and_where_a_message_died(peek, broker, name):
    dead, side = name("dead"), Side(broker, name(), arguments={"x-expires": 120000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("dead")})
    side.channel.declare(dead, arguments={"x-expires": 120000})
    side.send(b"rejected")
    got = side.channel.get_wait(side.queue, no_ack=False)
    side.channel.send("basic.reject", delivery_tag=got.delivery_tag, requeue=False)
    side.wait_count(1, dead)
    assert f"died              1 x rejected in {side.queue}, first 20" in peek(dead).stdout
    [shown] = peek.json(dead)["shown"]
    [death] = shown["deaths"]
    assert (death["queue"], death["reason"], death["count"]) == (side.queue, "rejected", 1)


def test_an_itinerary_and_one_that_cannot_be_read(peek, broker, name):
    side = Side(broker, name())
    stops = [slips.stop("orders", "order.charge", "charge"), slips.stop("", "out")]
    done = [slips.stop("orders", "order.check", "check", completed="2026-09-09T16:18:09Z")]
    side.send(b"", headers={slips.ITINERARY: json.dumps({"steps": stops, "done": done})})
    side.send(b"", headers={slips.ITINERARY: "{"})
    out = peek(side.queue, "-n", "2").stdout
    assert "check -> [charge] -> out (step 2 of 3)" in out and "slip              UNREADABLE: " in out


def test_the_payload_as_text_as_bytes_and_from_the_store(peek, broker, name):
    side = Side(broker, name())
    key = put_object(peek.store, "grüße\n".encode() * 2000)
    side.send("line one\nline\x1b[2J two".encode(), b"\x00\x01\xff", b"\xac\x01\x00\xac\x01\x01 escaped", claim(key), claim(MISSING))
    done = peek(side.queue, "-n", "5", "--body", code=1)
    assert "    line one\n    line\\x1b[2J two\n" in done.stdout and "    000000  00 01 ff\n" in done.stdout
    assert "    grüße\n    grüße\n" in done.stdout and "bytes more; --save keeps all of it)" in done.stdout
    assert "11 bytes, in the message (framed inline)" in done.stdout
    assert "message 5: its payload cannot be shown" in done.stderr and MISSING in done.stdout


def test_payloads_are_saved_whole_and_nothing_is_overwritten(peek, broker, name, tmp_path):
    side = Side(broker, name())
    payload = body_of(3 << 20)
    key = put_object(peek.store, payload)
    side.send(b"small", claim(key))
    folder = tmp_path / "saved"
    peek(side.queue, "-n", "2", "--save", folder)
    assert (folder / "0001.payload").read_bytes() == b"small" and (folder / "0002.payload").read_bytes() == payload
    assert json.loads((folder / "0002.json").read_text())["claim"]["key"] == key
    (folder / "0001.payload").write_bytes(b"mine")
    assert "0001.payload: File exists" in peek(side.queue, "--save", folder, code=1).stderr
    assert (folder / "0001.payload").read_bytes() == b"mine"


def test_a_stream_is_read_from_an_offset(peek, broker, name):
    side = Side(broker, name(), arguments=KINDS["stream"])
    try:
        side.send(*(b"%d" % i for i in range(5)))
        shown = peek.json(side.queue, "--offset", "3", "-n", "9")["shown"]
        assert [each["headers"]["x-stream-offset"] for each in shown] == [3, 4]
        assert peek.json(side.queue, "--offset", "next")["shown"] == []
    finally:
        side.channel.call("queue.delete", queue=side.queue)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_an_empty_queue_and_one_that_is_not_there(peek, broker, name, kind):
    side = Side(broker, name(), arguments=KINDS[kind])
    done = peek(side.queue)
    assert done.stdout.splitlines()[0].startswith(f"{kind} queue '{side.queue}' at amqp") and "0 messages, 0 consumers" in done.stdout
    assert done.stderr == ""
    assert "is not there, in virtual host '/'" in peek(side.queue + "x", code=1).stderr
    assert not side.exists(side.queue + "x")


# -- what a look costs on a quorum queue


@pytest.fixture
def limited(broker, name):
    return Side(broker, name(), arguments=LIMITED)


def come_back(side, times):
    """The first message comes back so often, each time as one that a consumer could not handle."""
    for _ in range(times):
        channel = side.channel.client.channel()
        channel.get_wait(side.queue, no_ack=False)
        channel.close()
        side.wait_count(side.sent)


@pytest.mark.skipif(not COUNTS_RETURNS, reason="this broker does not count what is put back")
def test_a_quorum_queue_says_before_what_a_look_costs(peek, limited):
    limited.send(b"a", b"b")
    done = peek(limited.queue)
    assert f"quorum queue '{limited.queue}': to look at a message counts as a delivery of it (after 8 of them the broker drops" in done.stderr
    assert limited.channel.get_wait(limited.queue).headers["x-delivery-count"] == 1


@pytest.mark.skipif(COUNTS_RETURNS, reason="this broker counts what is put back")
def test_a_quorum_queue_that_does_not_count_is_looked_at_for_nothing(peek, limited):
    limited.send(b"a")
    for _ in range(10):
        assert peek(limited.queue).stderr == ""
    assert "x-delivery-count" not in limited.channel.get_wait(limited.queue).headers


@pytest.mark.skipif(not COUNTS_RETURNS, reason="this broker does not count what is put back")
def test_close_to_the_delivery_limit_a_message_is_not_shown_without_force(peek, limited):
    limited.send(b"worn", headers={"n": 1})
    come_back(limited, 6)
    done = peek(limited.queue, code=1)
    assert "message 1 came back 6 times of 8: it is not shown; --force shows it" in done.stderr and "then 1 more are left" in done.stderr
    assert "n: 1" not in done.stdout
    assert limited.count() == 1
    assert "n: 1" in peek(limited.queue, "--force").stdout
    assert limited.count() == 1


@pytest.mark.skipif(not COUNTS_RETURNS, reason="this broker does not count what is put back")
@pytest.mark.parametrize("force, code", [([], 1), (["--force"], 0)])
def test_a_message_that_could_not_come_back_once_more_is_not_lost(peek, limited, force, code):
    limited.send(b"worn", message_id="w", headers={"n": 1, "CC": ["nowhere"]})
    limited.send(b"fresh")
    come_back(limited, 8)
    done = peek(limited.queue, *force, code=code)
    assert "put it to the end of the queue" in done.stderr
    limited.wait_count(2)
    assert limited.channel.get_wait(limited.queue).body == b"fresh"
    worn = limited.channel.get_wait(limited.queue)
    assert worn.body == b"worn" and worn.properties["message_id"] == "w" and worn.headers["n"] == 1
    assert worn.headers.get("x-delivery-count", 0) == 0


@pytest.mark.skipif(not COUNTS_RETURNS, reason="this broker does not count what is put back")
def test_with_a_limit_of_one_nothing_is_looked_at_without_force(peek, broker, name):
    side = Side(broker, name(), arguments={**LIMITED, "x-delivery-limit": 1})
    side.send(b"once")
    assert "so low that nothing is looked at without --force" in peek(side.queue, code=1).stderr
    got = side.channel.get_wait(side.queue)
    assert got.body == b"once" and (got.headers or {}).get("x-delivery-count", 0) == 0


# -- who asks


def test_a_user_who_may_only_read_can_look(rabbit, peek, broker, name):
    user = name("reader").replace(".", "")
    rabbit.add_user(user, "secret", configure="^$", write="^$")
    try:
        side = Side(broker, name())
        side.send(b"seen")
        config = json.loads(peek.config.read_text())
        config["broker"].update(username=user, password="secret")
        peek.config.write_text(json.dumps(config))
        done = peek(side.queue, "--body")
        assert "    seen\n" in done.stdout
        assert ("what kind of queue it is cannot be asked" in done.stderr) == COUNTS_RETURNS
    finally:
        rabbit.delete_user(user)


def test_a_stream_whose_kind_cannot_be_asked_is_one_when_an_offset_is_named(rabbit, peek, broker, name):
    user = name("reader").replace(".", "")
    rabbit.add_user(user, "secret", configure="^$", write="^$")
    side = Side(broker, name(), arguments=KINDS["stream"])
    try:
        side.send(b"seen")
        config = json.loads(peek.config.read_text())
        config["broker"].update(username=user, password="secret")
        peek.config.write_text(json.dumps(config))
        assert "--offset first reads it" in run_cli("peek", side.queue, "--config", peek.config).stderr
        assert "    seen\n" in peek(side.queue, "--body", "--offset", "first").stdout
    finally:
        side.channel.call("queue.delete", queue=side.queue)
        rabbit.delete_user(user)


def test_a_configuration_without_credentials_is_a_wrong_configuration(peek, name):
    config = json.loads(peek.config.read_text())
    del config["broker"]["username"], config["broker"]["password"]
    peek.config.write_text(json.dumps(config))
    assert "the file has no credentials for it" in peek(name(), code=2).stderr


def test_a_broker_that_cannot_be_reached_is_named(peek, name):
    config = json.loads(peek.config.read_text())
    config["broker"]["url"] = "amqp://127.0.0.1:1"
    config["broker"].pop("tls", None)
    peek.config.write_text(json.dumps(config))
    assert "amqp://127.0.0.1:1 cannot be reached" in peek(name(), code=1).stderr


def test_another_virtual_host(rabbit, peek, name):
    vhost = name("other")
    rabbit.add_vhost(vhost)
    try:
        rabbit.set_permissions("guest", vhost=vhost)
        client = amqp.connect(rabbit.address, vhost=vhost)
        side = Side(client, name())
        side.send(b"over there")
        assert "is not there, in virtual host '/'" in peek(side.queue, code=1).stderr
        assert "    over there\n" in peek(side.queue, "--vhost", vhost, "--body").stdout
        client.abort()
    finally:
        rabbit.delete_vhost(vhost)
