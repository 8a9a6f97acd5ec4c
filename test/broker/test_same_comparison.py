"""The comparison itself: it tells what differs, in every part of what a client sees, and does not take chance for a difference."""

import pytest

from support import amqp
from support.differential import Differential, differences


def talk(run, body=b"body", headers=None, arguments=None, more=None):
    ch = run.channel()
    queue = ch.declare(run.name("q"), exclusive=True, arguments=arguments)
    ch.call("confirm.select")
    ch.publish("", queue, body, headers=headers, type="t")
    ch.confirms(1)
    ch.get(queue)
    if more:
        more(ch, queue)


CHANGES = {
    "a body": dict(body=b"bodx"),
    "a large body": dict(body=b"x" * 100_000),
    "a header": dict(headers={"a": 1}),
    "a header's type": dict(headers={"a": amqp.Typed("l", 0)}),
    "the order of headers": dict(headers=[("b", 0), ("a", 0)]),
    "one method more": dict(more=lambda ch, queue: ch.call("queue.purge", queue=queue)),
    "a delivery more": dict(more=lambda ch, queue: ch.get(queue)),
    "a channel more": dict(more=lambda ch, queue: ch.client.channel()),
    "a confirm more": dict(more=lambda ch, queue: (ch.publish("", queue, b"x"), ch.confirms(2))),
    "an error": dict(more=lambda ch, queue: (ch.send("basic.ack", delivery_tag=9), ch.expect_close())),
    "an error of the connection": dict(more=lambda ch, queue: (ch.send("channel.open"), ch.client.until_closed())),
    "a return": dict(more=lambda ch, queue: (ch.publish("", "nobody", b"x", mandatory=True), ch.wait_for("basic.return"))),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_difference_is_found(same, rabbit, what):
    base = dict(headers={"a": 0}) if "type" in what else dict(headers=[("a", 0), ("b", 0)]) if "order" in what else {}
    if "order" in what and amqp.connect(rabbit.address).server_properties["version"][0] >= "4":
        pytest.skip("RabbitMQ 4 sorts the headers itself")
    once, again = same.run(lambda run: talk(run, **base)), same.run(lambda run: talk(run, **base))
    changed = same.run(lambda run: talk(run, **{**base, **CHANGES[what]}))
    for filled_in in (False, True):
        assert not differences(once, again, filled_in)
        assert differences(once, changed, filled_in)


def test_a_bellhop_that_changes_something_is_caught(rabbit):
    """A route that adds a header is a difference that the comparison must not forgive."""
    route = {"routes": [{"name": "all", "match": {"routing_key": "#"}, "headers": {"added": "by bellhop"}}]}
    with Differential(rabbit, route, ["stamping"]) as differential, pytest.raises(AssertionError, match="added=S:'by bellhop'"):
        differential(talk)


def test_what_bellhop_fills_in_is_seen_and_forgiven_only_there(rabbit):
    with Differential(rabbit) as differential:
        straight, through = differential.run(talk), differential.run(talk, "stamping")
        assert "delivery_mode" in differences(straight, through)
        assert not differences(straight, through, filled_in=True)


def test_a_program_that_sees_nothing_shows_nothing(same):
    with pytest.raises(AssertionError, match="saw nothing"):
        same(lambda run: None)
