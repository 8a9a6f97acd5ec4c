"""Confirms of a broker that answers as it likes: the client's tags, `multiple` never across a tag that is not settled yet."""

import pytest

SLIP = {"x-acemq-route": "a,b", "x-acemq-route-position": 0, "x-acemq-route-id": "run"}
LARGE = b"x" * 100_000


@pytest.fixture
def session(stage):
    """(client, leg, daemon) with channel 1 in confirm mode, and a pipeline p with the steps a and b."""
    here = stage({"pipelines": {"p": {"steps": ["a", "b"]}}}, channels=(1,))
    here.client.send(1, "confirm.select")
    here.leg.answer("confirm.select", 1)
    here.client.wait_for("confirm.select-ok", 1)
    return here.client, here.leg, here.daemon


def acks(client, count):
    return [(e.name, e.delivery_tag, e.multiple) for e in (client.next_event() for _ in range(count))]


def test_a_multiple_ack_is_passed_on_as_it_is_while_the_tags_agree(session):
    client, leg, _ = session
    for body in (b"1", b"2", b"3"):
        client.publish(1, "", "q", body)
        leg.published()
    leg.send(1, "basic.ack", delivery_tag=3, multiple=True)
    assert acks(client, 1) == [("basic.ack", 3, True)]
    client.publish(1, "", "q", b"4")
    leg.published()
    leg.send(1, "basic.nack", delivery_tag=4)
    assert acks(client, 1) == [("basic.nack", 4, False)]


def test_tags_shift_behind_a_refused_publish_also_in_a_multiple(session):
    client, leg, daemon = session
    (daemon.store_path / ".bellhop-store").unlink()
    for body in (b"1", b"2", LARGE, b"4", LARGE, b"6"):
        client.publish(1, "", "q", body)
    assert [leg.published().body for _ in range(4)] == [b"1", b"2", b"4", b"6"]
    assert acks(client, 2) == [("basic.nack", 3, False), ("basic.nack", 5, False)]
    leg.send(1, "basic.ack", delivery_tag=2)
    assert acks(client, 1) == [("basic.ack", 2, False)]
    leg.send(1, "basic.ack", delivery_tag=4, multiple=True)
    settled = set()
    while settled != {1, 4, 6}:
        event = client.next_event()
        assert event.name == "basic.ack"
        settled |= {tag for tag in (1, 4, 6) if tag <= event.delivery_tag} if event.multiple else {event.delivery_tag}


@pytest.mark.parametrize("name", ["basic.ack", "basic.nack"])
def test_a_multiple_does_not_span_a_hop_that_is_under_way(session, name):
    client, leg, _ = session
    client.publish(1, "", "q", b"1")
    client.publish(1, "bellhop.next", "", b"2", headers=SLIP)
    client.publish(1, "", "q", b"3")
    client.publish(1, "", "q", b"4")
    opened = leg.answer("channel.open")
    leg.answer("confirm.select", opened.channel)
    asked = leg.answer("exchange.declare", opened.channel)
    assert (asked.exchange, asked.passive) == ("p", True)
    hop = leg.published(opened.channel)
    assert (hop.exchange, hop.routing_key, hop.body) == ("p", "b", b"2")
    assert [leg.published(1).body for _ in range(3)] == [b"1", b"3", b"4"]
    leg.send(1, name, delivery_tag=3, multiple=True)
    assert [(n, tag) for n, tag, multiple in acks(client, 3) if not (multiple and tag > 1)] == [(name, 1), (name, 3), (name, 4)]
    leg.send(opened.channel, "basic.ack", delivery_tag=1)
    assert acks(client, 1) == [("basic.ack", 2, False)]
    client.publish(1, "", "q", b"5")
    leg.published(1)
    leg.send(1, "basic.ack", delivery_tag=4)
    assert acks(client, 1) == [("basic.ack", 5, False)]


def test_tag_0_with_multiple_means_all_of_them(session):
    client, leg, _ = session
    for body in (b"1", b"2"):
        client.publish(1, "", "q", body, mandatory=True)
        leg.published()
    leg.send(1, "basic.ack", delivery_tag=0, multiple=True)
    settled = set()
    while settled != {1, 2}:
        event = client.next_event()
        settled |= {1, 2} if event.delivery_tag == 0 or event.multiple else {event.delivery_tag}


def test_a_tag_that_is_not_outstanding_is_ignored(session):
    client, leg, _ = session
    client.publish(1, "", "q", b"1", mandatory=True)
    leg.published()
    for tag in (7, 1):
        leg.send(1, "basic.ack", delivery_tag=tag)
    assert acks(client, 1) == [("basic.ack", 1, False)]
    client.expect_nothing(0.1)


def test_a_return_is_matched_to_its_publish_and_handed_back_before_its_ack(session):
    client, leg, daemon = session
    client.publish(1, "e", "k", LARGE, mandatory=True, headers={"mine": 1})
    client.publish(1, "e", "k", b"small", mandatory=True, headers={"mine": 2})
    offloaded, small = leg.published(), leg.published()
    leg.send_return(1, "e", "k", small.body, header=small.header)
    leg.send_return(1, "e", "k", offloaded.body, header=offloaded.header)
    leg.send(1, "basic.ack", delivery_tag=2, multiple=True)
    returned, acked = {}, set()
    while acked != {1, 2}:
        event = client.next_event()
        if event.name == "basic.return":
            returned[event.headers["mine"]] = event.body
            continue
        acked |= {1, event.delivery_tag} if event.multiple else {event.delivery_tag}
        assert acked <= returned.keys()
    assert returned == {1: LARGE, 2: b"small"}


def test_a_return_that_belongs_to_no_publish_is_handed_on(session):
    client, leg, _ = session
    leg.send_return(1, "e", "k", b"whose?", properties={"message_id": "x"})
    returned = client.expect("basic.return")
    assert (returned.exchange, returned.body, returned.properties) == ("e", b"whose?", {"message_id": "x"})
