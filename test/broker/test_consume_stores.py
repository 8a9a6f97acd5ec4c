"""Which store a claim is redeemed from, and several bellhops on one directory."""

import os
import uuid

import pytest

from support import amqp
from support.claims import Consumer, Side, body_of, claim, put_object


def two_stores(bellhop, tmp_path, default="claims", archive=None, **more):
    for name in ("claims", "archive"):
        (tmp_path / name).mkdir()
    stores = {name: {"type": "filesystem", "path": str(tmp_path / name)} for name in ("claims", "archive")}
    stores["archive"].update(archive or {})
    return bellhop({"stores": stores, "claim_check": {"store": default},
                    "routes": [{"name": "archived", "match": {"exchange": "amq.topic"}, "claim_check": {"store": "archive"}}], **more})


def test_a_key_is_found_in_the_second_store_by_search(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path)
    side = Side(broker, name())
    side.send(claim(put_object(tmp_path / "archive", b"in the archive")))
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"in the archive"


def test_a_key_is_asked_of_the_store_that_its_header_names_first(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path)
    side = Side(broker, name())
    key = put_object(tmp_path / "archive", b"in the archive")
    put_object(tmp_path / "claims", b"another object", key)
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-store": "archive"})
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-store": "unknown"})
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(2) == [b"in the archive", b"another object"]


def test_a_routed_large_body_is_restored_from_its_store_after_a_dead_letter(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path)
    dead = Side(broker, name("dead"))
    side = Side(broker, name(), arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.queue, "x-expires": 120000})
    side.channel.call("queue.bind", queue=side.queue, exchange="amq.topic", routing_key=side.queue)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    payload = body_of(100_000)
    channel.publish("amq.topic", side.queue, payload, headers={"a": 1})
    channel.expect("basic.ack")
    assert len(list((tmp_path / "archive").glob("[0-9a-f]*"))) == 1
    consumer = Consumer(daemon, side.queue)
    got = consumer.deliver()
    assert got.body == payload
    consumer.channel.send("basic.reject", delivery_tag=got.delivery_tag)
    consumer = Consumer(daemon, dead.queue)
    got = consumer.deliver()
    assert got.body == payload and got.headers["a"] == 1 and got.headers["x-death"][0]["queue"] == side.queue
    assert not any(h.startswith("bellhop-") for h in got.headers)


def test_a_key_that_one_store_lacks_while_another_is_away_is_held_and_not_parked(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path)
    side = Side(broker, name())
    marker = tmp_path / "archive" / ".bellhop-store"
    text = marker.read_bytes()
    marker.unlink()
    late = str(uuid.uuid4())
    side.send(claim(late))
    consumer = Consumer(daemon, side.queue)
    assert "archive" in daemon.wait_log(r".*delivery held.*").group(0)
    put_object(tmp_path / "archive", b"was there all along", late)
    marker.write_bytes(text)
    assert consumer.deliver().body == b"was there all along"
    assert not side.exists(side.parked)


def test_a_key_that_no_store_has_is_parked(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path)
    side = Side(broker, name())
    nowhere = str(uuid.uuid4())
    side.send(claim(nowhere))
    consumer = Consumer(daemon, side.queue)
    assert nowhere in side.take().headers["x-acemq-error"]


def test_a_name_that_nobody_issued_is_a_key_only_of_the_store_whose_configuration_says_so(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path, archive={"keys": "any"})
    side = Side(broker, name())
    put_object(tmp_path / "archive", b"an order", "order-17.json")
    put_object(tmp_path / "claims", b"a private key", "id_rsa")
    side.send(claim("id_rsa"), claim("order-17.json"), claim(".bellhop-store"))
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"an order"
    # The second store may have issued it, and has not (or not any more); a hidden file is nobody's key.
    reasons = {}
    for _ in range(2):
        parked = side.take()
        reasons[parked.body[3:].decode()] = parked.headers["x-acemq-error"]
    assert "retention" in reasons["id_rsa"] and "is not a key this store issued" in reasons[".bellhop-store"]


def test_a_file_that_nobody_issued_as_a_key_is_not_read_out_of_a_store(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    put_object(daemon, b"a private key", "id_rsa")
    side.send(claim("id_rsa"), claim(put_object(daemon, b"payload")))
    assert Consumer(daemon, side.queue).deliver().body == b"payload"
    parked = side.take()
    assert parked.body == claim("id_rsa") and "is not a key this store issued" in parked.headers["x-acemq-error"]


def test_a_file_with_a_second_name_is_parked(bellhop, broker, name, tmp_path):
    daemon = bellhop()
    side = Side(broker, name())
    key = str(uuid.uuid4())
    (tmp_path / "secret").write_bytes(b"of somebody else")
    os.link(tmp_path / "secret", daemon.store_path / key)
    side.send(claim(key), claim(put_object(daemon, b"payload")))
    assert Consumer(daemon, side.queue).deliver().body == b"payload"
    assert "2 names (hard links)" in side.take().headers["x-acemq-error"]


def test_a_store_that_consume_does_not_list_is_never_asked(bellhop, broker, name, tmp_path):
    daemon = two_stores(bellhop, tmp_path, consume={"stores": ["claims"]})
    side = Side(broker, name())
    named, unnamed, unknown = (put_object(tmp_path / "archive", b"of another tenant") for _ in range(3))
    side.send(claim(named), headers={"bellhop-claim-key": named, "bellhop-claim-store": "archive"})
    side.send(claim(unnamed))
    side.send(claim(unknown), headers={"bellhop-claim-key": unknown, "bellhop-claim-store": "elsewhere"})
    key = put_object(tmp_path / "claims", b"ours")
    # Were it asked for anything, this one would wait for it.
    (tmp_path / "archive" / ".bellhop-store").unlink()
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-store": "claims"})
    side.send(claim(key))
    assert Consumer(daemon, side.queue).bodies(2) == [b"ours", b"ours"]
    reasons = {}
    for _ in range(3):
        parked = side.take()
        reasons[parked.body[3:].decode()] = parked.headers["x-acemq-error"]
    assert "names store 'archive', which consume.stores does not list" in reasons[named] and named in reasons[named]
    assert "names store 'elsewhere', which consume.stores does not list" in reasons[unknown]
    assert "store 'claims' has no such object" in reasons[unnamed]


@pytest.mark.parametrize("headers", [None, {"bellhop-claim-store": "archive"}])
def test_what_a_client_publishes_comes_back_from_a_store_that_consume_does_not_list(bellhop, broker, name, tmp_path, headers):
    daemon = two_stores(bellhop, tmp_path, consume={"stores": ["claims"]})
    channel = amqp.connect(daemon.socket).channel()
    body = body_of(100_000)
    channel.publish("amq.topic", name(), body, mandatory=True, headers=headers)
    assert channel.expect("basic.return").body == body


def pair(bellhop, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    stores = {"stores": {"claims": {"type": "filesystem", "path": str(folder)}}}
    daemons = [bellhop(stores), bellhop(stores)]
    for daemon in daemons:
        daemon.store_path = folder
    return daemons


def test_what_one_bellhop_offloads_another_restores(bellhop, broker, name, tmp_path):
    here, there = pair(bellhop, tmp_path)
    side = Side(broker, name())
    client = amqp.connect(here.socket)
    channel = client.channel()
    channel.call("confirm.select")
    bodies = [body_of(100_000, n) for n in range(20)]
    for body in bodies:
        channel.publish("", side.queue, body)
    channel.confirms(20)
    consumer = Consumer(there, side.queue)
    assert consumer.bodies(20) == bodies


def test_a_bellhop_that_restarts_leaves_the_live_uploads_of_another_alone(bellhop, broker, name, tmp_path):
    here, there = pair(bellhop, tmp_path)
    side = Side(broker, name())
    client = amqp.connect(here.socket)
    channel = client.channel()
    channel.call("confirm.select")
    payload = body_of(5 << 20)
    frames = channel.publish_frames("", side.queue, payload)
    for f in frames[:len(frames) // 2]:
        client.send_raw(f)
    there.restart()
    for f in frames[len(frames) // 2:]:
        client.send_raw(f)
    channel.expect("basic.ack", delivery_tag=1)
    consumer = Consumer(there, side.queue)
    assert consumer.deliver().body == payload


def test_an_object_that_may_not_be_read_holds_the_delivery_and_names_owner_and_mode(bellhop, broker, name):
    if os.geteuid() == 0:
        return  # root reads everything
    daemon = bellhop()
    side = Side(broker, name())
    key = put_object(daemon, b"payload")
    path = daemon.store_path / key
    path.chmod(0)
    side.send(claim(key))
    consumer = Consumer(daemon, side.queue)
    assert "mode" in daemon.wait_log(r".*delivery held.*").group(0)
    path.chmod(0o600)
    assert consumer.deliver().body == b"payload"


def test_a_folder_that_only_other_programs_write_needs_no_marker_when_the_configuration_says_so(bellhop, broker, name, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    daemon = bellhop({"stores": {"theirs": {"type": "filesystem", "path": str(folder), "marker": "optional"}}})
    (folder / ".bellhop-store").unlink(missing_ok=True)
    side = Side(broker, name())
    side.send(claim(put_object(folder, b"theirs")), claim(str(uuid.uuid4())))
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"theirs"
    assert "retention" in side.take().headers["x-acemq-error"]
