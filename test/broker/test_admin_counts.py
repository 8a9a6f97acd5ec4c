"""Each counter changes by exactly what was done, and by nothing else."""

import pytest

from support import amqp, slips
from support.admin import Admin, Changes
from support.claims import MISSING, Consumer, Marker, Side, claim, put_object
from support.proxy import Proxy
from support.publishing import declare, publisher
from support.rabbitmq import wait_until

PUBLISHES = "bellhop_publishes_total"
KIB = 1024
LATER = "22222222-2222-4333-8444-555555555555"


def settled(changes, wanted, *names):
    """Waits until the counters changed by just that: the last of it may still be on its way."""
    last = {}

    def same():
        last.update(seen=changes(*names))
        return last["seen"] == wanted
    try:
        wait_until(same, 20, "the counters")
    except AssertionError:
        assert last["seen"] == wanted


@pytest.fixture
def daemon(bellhop, name):
    return bellhop({"routes": [{"name": "orders", "match": {"routing_key": "orders.#"}}, {"name": "idle", "match": {"exchange": "idle"}}],
                    "limits": {"message_bytes": "1MiB"}})


@pytest.fixture
def admin(daemon):
    return Admin(daemon.admin_socket)


def test_publishes_by_route_and_outcome(daemon, admin, broker, name):
    queue, other = name("orders"), name("other")
    direct = declare(broker, queue)
    direct.declare(other)
    up = publisher(daemon)
    changes = Changes(admin)
    for _ in range(5):
        up.channel.publish("", queue, b"x" * 100)
    for _ in range(2):
        up.channel.publish("", other, b"y" * 100)
    up.channel.confirms(7)
    up.channel.publish("", name("orders.nowhere"), b"z", mandatory=True)
    up.channel.expect("basic.return")
    up.channel.confirms(8)
    wanted = {(PUBLISHES, "outcome=confirmed,route=orders"): 5, (PUBLISHES, "outcome=confirmed,route=(no route)"): 2,
              (PUBLISHES, "outcome=returned,route=orders"): 1}
    settled(changes, wanted, PUBLISHES)
    counts = changes("bellhop_publish_seconds_count")
    assert counts == {("bellhop_publish_seconds_count", "route=orders"): 6, ("bellhop_publish_seconds_count", "route=(no route)"): 2}
    assert {route["name"]: route["bytes"] for route in admin.status()["routes"]} == {"orders": 501, "idle": 0, "(no route)": 200}

    without = publisher(daemon, confirm=False)
    without.channel.publish("", queue, b"nobody asks")
    wanted[PUBLISHES, "outcome=unconfirmed,route=orders"] = 1
    settled(changes, wanted, PUBLISHES)
    up.channel.publish("", queue, b"w" * (2 * KIB * KIB))
    up.channel.expect_close(406)
    wanted[PUBLISHES, "outcome=refused,route=orders"] = 1
    settled(changes, wanted, PUBLISHES)
    up.client.close()
    without.client.close()
    wait_until(lambda: not admin.status()["sessions"], 20, "the sessions' ends")
    assert changes(PUBLISHES) == wanted, "what a session counted stays"


def test_a_queue_that_refuses_is_a_nack(daemon, admin, broker, name):
    queue = name("orders")
    declare(broker, queue, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    up = publisher(daemon)
    changes = Changes(admin)
    for _ in range(4):
        up.channel.publish("", queue, b"x")
    assert sorted(up.channel.confirms(4).values()) == ["ack", "nack", "nack", "nack"]
    settled(changes, {(PUBLISHES, "outcome=confirmed,route=orders"): 1, (PUBLISHES, "outcome=nacked,route=orders"): 3}, PUBLISHES)


def test_payloads_into_the_store_and_out_of_it(daemon, admin, broker, name):
    queue = name("orders")
    declare(broker, queue)
    up = publisher(daemon)
    changes = Changes(admin)
    for _ in range(3):
        up.channel.publish("", queue, b"x" * (100 * KIB))
    up.channel.publish("", queue, b"\xac\x01\x00escaped")
    up.channel.publish("", queue, b"small")
    up.channel.confirms(5)
    for _ in range(5):
        up.channel.get_wait(queue)
    settled(changes, {("bellhop_offloads_total", "result=ok,store=claims"): 3,
                      ("bellhop_offload_bytes_total", "store=claims"): 300 * KIB,
                      ("bellhop_restores_total", "result=ok,store=claims"): 3,
                      ("bellhop_deliveries_total", "kind=restored"): 3, ("bellhop_deliveries_total", "kind=inline"): 1,
                      ("bellhop_deliveries_total", "kind=relayed"): 1,
                      ("bellhop_store_seconds_count", "operation=upload,store=claims"): 3,
                      ("bellhop_store_seconds_count", "operation=fetch,store=claims"): 3},
            "bellhop_offload", "bellhop_restores", "bellhop_deliveries", "bellhop_store_seconds_count")


def test_held_and_released(daemon, admin, broker, name):
    side = Side(broker, name())
    marker = Marker(daemon)
    marker.remove()
    side.send(claim(LATER))
    consumer = Consumer(daemon, side.queue)
    wait_until(lambda: admin.metrics()["bellhop_held_deliveries", ""] == 1, 20, "the held delivery")
    assert [session["held"] for session in admin.status()["sessions"]] == [1]
    put_object(daemon, b"an object", LATER)
    marker.restore()
    assert consumer.deliver().body == b"an object"
    assert admin.metrics()["bellhop_held_deliveries", ""] == 0
    metrics = admin.metrics()
    assert metrics["bellhop_restores_total", "result=unavailable,store=claims"] >= 1
    assert metrics["bellhop_restores_total", "result=ok,store=claims"] == 1


def test_parked_by_reason(daemon, admin, broker, name):
    side = Side(broker, name())
    changes = Changes(admin)
    side.send(claim(MISSING), claim(MISSING), b"\xac\x01\x01../../etc/passwd", b"plain")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"plain"
    settled(changes, {("bellhop_parked_total", "reason=missing"): 2, ("bellhop_parked_total", "reason=bad key"): 1}, "bellhop_parked")


def test_hops_by_the_step_whose_result_they_are(bellhop, broker, name):
    line = slips.Line(broker.channel(), name("fulfilment"), "validate", "dispatch")
    admin = Admin(bellhop({"pipelines": line.config()}).admin_socket)
    changes = Changes(admin)
    with amqp.connect(admin.place.replace("admin.sock", "bellhop.sock")) as client:
        channel = slips.confirming(client)
        channel.publish("bellhop.next", "", b"r", headers=slips.declared(line.steps, 0))
        channel.publish("bellhop.next", "", b"r", headers=slips.declared(line.steps, 1))
        channel.confirms(2)
        settled(changes, {("bellhop_hops_total", f"outcome=forwarded,pipeline={line.name},step=validate"): 1,
                          ("bellhop_hops_total", f"outcome=finished,pipeline={line.name},step=dispatch"): 1,
                          ("bellhop_slips_finished_total", f"pipeline={line.name}"): 1}, "bellhop_hops", "bellhop_slips", PUBLISHES)


def test_sessions_and_how_they_end(daemon, admin):
    changes = Changes(admin)
    polite = amqp.connect(daemon.socket, client_properties={"connection_name": "shop"})
    rude = amqp.connect(daemon.socket)
    polite.channel()
    polite.channel()
    wait_until(lambda: [(each["client"], each["channels"]) for each in admin.status()["sessions"]][0] == ("shop", 2), 20, "the channels")
    assert admin.metrics()["bellhop_sessions", "door=unix"] == 2
    assert admin.metrics()["bellhop_broker_up", ""] == 1
    polite.close()
    rude.abort()
    settled(changes, {("bellhop_sessions_closed_total", "door=unix,reason=closed by the client"): 1,
                      ("bellhop_sessions_closed_total", "door=unix,reason=client lost"): 1,
                      ("bellhop_broker_connects_total", "result=ok"): 2}, "bellhop_sessions_closed", "bellhop_broker_connects")
    assert admin.metrics()["bellhop_sessions", "door=unix"] == 0


def test_the_broker_is_gone_and_comes_back(bellhop, rabbit):
    with Proxy(rabbit.upstream) as proxy:
        daemon = bellhop({"broker": {"url": f"{rabbit.url.split('://')[0]}://{proxy.address}", "connect_timeout": "1s"}})
        admin = Admin(daemon.admin_socket)
        client = amqp.connect(daemon.socket)
        wait_until(lambda: admin.metrics()["bellhop_broker_up", ""] == 1, 20, "the broker")
        changes = Changes(admin)
        proxy.refuse()
        proxy.cut()
        client.expect_close(320)
        client.abort()
        wait_until(lambda: admin.metrics()["bellhop_broker_up", ""] == 0, 20, "the broker's end")
        assert admin.get("/readyz").status == 503
        settled(changes, {("bellhop_sessions_closed_total", "door=unix,reason=broker lost"): 1}, "bellhop_sessions_closed")
        proxy.accept()
        wait_until(lambda: admin.get("/readyz").status == 200, 40, "bellhop's own look at the broker")
