"""Sessions take turns for a store's requests: one that has more work than the store can take keeps no other waiting."""

import threading

import pytest

from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.rabbitmq import wait_until
from support.s3_proxy import UNAVAILABLE, Hang

MIB = 1 << 20
PAYLOAD = body_of(100_000)
HELD = body_of(70_001)
AT_ONCE = 16  # what a session has under way by default: limits.transfers_per_session


@pytest.fixture
def start(bellhop, name, plain_s3rver, proxy):
    """Starts a bellhop that waits for its store as long as the test does."""
    return lambda **limits: bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, prefix=name("turns") + "/",
                                                                             probe=False, timeout="10m")}, "limits": limits})


def is_held(request):
    return request.method == "PUT" and request.headers.get("content-length") == str(len(HELD))


def unanswered(proxy, method, part=""):
    return [r for r in proxy.seen(method, part) if r.status == 0]


def test_a_session_with_16_large_uploads_to_a_store_that_stands_still_delays_nobody(start, broker, name, proxy):
    daemon = start()
    meeting = threading.Barrier(AT_ONCE)

    def rule(request):
        """No part is ever answered. Small payloads are when sixteen are there at one time, so none of them may wait for a place."""
        if "partNumber" in request.target:
            return Hang()
        if request.method == "PUT":
            try:
                meeting.wait(60)
            except threading.BrokenBarrierError:
                return UNAVAILABLE
        return None
    proxy.rule = rule
    greedy = publisher(daemon)
    large = body_of(65 * MIB)  # five parts, four of them at a time
    for _ in range(AT_ONCE):
        greedy.channel.publish("", Side(broker, name("large")).queue, large)
    wait_until(lambda: len(proxy.seen("PUT", "partNumber")) >= 32, 120, "the large uploads have their share of the requests")

    side = Side(broker, name())
    other = publisher(daemon)
    for _ in range(AT_ONCE):
        other.channel.publish("", side.queue, PAYLOAD)
    assert set(other.channel.confirms(AT_ONCE, timeout=60).values()) == {"ack"}
    assert not meeting.broken
    assert Consumer(daemon, side.queue).bodies(AT_ONCE) == [PAYLOAD] * AT_ONCE
    assert len(unanswered(proxy, "PUT", "partNumber")) == len(proxy.seen("PUT", "partNumber")) == 32
    greedy.client.abort()


def test_a_session_that_has_nothing_under_way_finds_a_place_when_others_hold_all_for_publishes(start, broker, name, proxy):
    daemon = start(transfers_per_session=40)
    proxy.rule = lambda request: Hang() if is_held(request) else None
    side, held = Side(broker, name()), Side(broker, name("held"))
    greedy = [publisher(daemon) for _ in range(3)]
    # The first gets half of all, the second what publishes may have, and the third a place beyond that, because it has none.
    for each, places in zip(greedy, (32, 56, 57)):
        for _ in range(40):
            each.channel.publish("", held.queue, HELD)
        wait_until(lambda places=places: len(unanswered(proxy, "PUT")) >= places, 60, f"{places} requests for publishes")

    other = publisher(daemon)
    for tag in range(1, 4):
        other.channel.publish("", side.queue, PAYLOAD)
        other.channel.expect("basic.ack", delivery_tag=tag, timeout=60)
    assert Consumer(daemon, side.queue).bodies(3) == [PAYLOAD] * 3
    assert len(unanswered(proxy, "PUT")) == len(proxy.seen("PUT")) - 3 == 57

    proxy.rule = None
    proxy.hang_over()
    for each in greedy:
        assert set(each.channel.confirms(40, timeout=120).values()) == {"ack"}


def test_publishes_do_not_wait_for_fetches(start, broker, name, proxy):
    daemon = start(transfers_per_session=40)
    side, held = Side(broker, name()), Side(broker, name("held"))
    up = publisher(daemon)
    for _ in range(80):
        up.channel.publish("", held.queue, HELD)
    up.channel.confirms(80, timeout=120)
    proxy.rule = lambda request: Hang() if request.method == "GET" else None
    consumers = [Consumer(daemon, held.queue, prefetch=40) for _ in range(2)]
    wait_until(lambda: len(unanswered(proxy, "GET")) >= 56, 60, "the fetches have all places that they may have")

    up.channel.publish("", side.queue, PAYLOAD)
    up.channel.confirms(81, timeout=60)
    assert len(unanswered(proxy, "GET")) == len(proxy.seen("GET")) == 56

    proxy.rule = None
    proxy.hang_over()
    for consumer in consumers:
        assert [consumer.deliver(timeout=60).body for _ in range(40)] == [HELD] * 40
