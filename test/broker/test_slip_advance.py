"""bellhop.next moves a slip on by one and sends the message to the step it is at then: what the broker gets, byte for byte."""

import datetime
import json
import re

import pytest

from support import amqp, slips
from support.amqp import Typed, encode_table
from support.rabbitmq import as_kept

RUN = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.fixture
def line(broker, name):
    return slips.Line(broker.channel(), name("fulfilment"), "validate", "reserve", "dispatch")


@pytest.fixture
def channel(bellhop, line):
    with amqp.connect(bellhop({"pipelines": line.config()}).socket) as client:
        yield slips.confirming(client)


def advance(channel, headers, key="", body=b"result", tag=1, answer="basic.ack", **properties):
    channel.publish("bellhop.next", key, body, headers=headers, **properties)
    channel.expect(answer, delivery_tag=tag)


def test_a_declared_route_moves_on_by_one_and_the_rest_stays_as_it_was(channel, broker, line):
    before = [("app", Typed("s", 7)), ("x-acemq-first-seen", Typed("l", 1757434689000))]
    after = [("nested", {"a": [1, "x", None], "d": 1.5}), ("when", Typed("T", 1757434689))]
    advance(channel, before + list(slips.declared(line.steps, 0, RUN).items()) + after)
    here = broker.channel().get_wait(line.queue("reserve"))
    assert here.headers_raw == as_kept(encode_table(before + after + list(slips.declared(line.steps, 1, RUN).items())))
    assert (here.exchange, here.routing_key, here.body) == (line.name, "reserve", b"result")


@pytest.mark.parametrize("position, to", [(Typed("b", 0), "reserve"), (Typed("I", 1), "dispatch"), (Typed("s", 1), "dispatch"), ("1", "dispatch"),
                                          ("soon", "reserve"), (Typed("l", -3), "reserve"), (None, "reserve")], ids=str)
def test_a_position_of_any_width_or_text_is_read_and_written_as_an_integer(channel, broker, line, position, to):
    advance(channel, {slips.ROUTE: " validate, reserve ,,dispatch", slips.POSITION: position, slips.RUN: RUN})
    here = broker.channel().get_wait(line.queue(to))
    assert here.headers_raw == as_kept(encode_table(slips.declared(line.steps, line.steps.index(to), RUN)))


def test_a_run_without_an_id_gets_one(channel, broker, line):
    advance(channel, {slips.ROUTE: "validate,reserve"})
    headers = broker.channel().get_wait(line.queue("reserve")).headers
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", headers[slips.RUN]) and headers[slips.POSITION] == 1


def test_an_itinerary_moves_its_first_stop_to_done_with_the_time(channel, broker, line):
    old = slips.stop("python", "k", "p", "2026-09-09T16:18:09.123456+00:00", took=[1.50, {"x": None}])
    here, there = slips.stop(line.name, "validate", "check", weight=2), slips.stop(line.name, "dispatch", note="ü")
    advance(channel, {"first": 1, **slips.itinerary(here, there, done=[old], trace={"id": "t"}), "last": 2})
    got = broker.channel().get_wait(line.queue("dispatch"))
    text = got.headers[slips.ITINERARY]
    completed = json.loads(text)["done"][1]["completedAt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", completed)
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.strptime(completed + "+0000", "%Y-%m-%dT%H:%M:%SZ%z")
    assert abs(age.total_seconds()) < 60
    assert text == ('{"steps":[{"exchange":"%s","routingKey":"dispatch","note":"\\u00fc"}],"done":[{"exchange":"python","routingKey":"k","name":"p",'
                    '"completedAt":"2026-09-09T16:18:09.123456+00:00","took":[1.5,{"x":null}]},{"exchange":"%s","routingKey":"validate",'
                    '"name":"check","completedAt":"%s","weight":2}],"trace":{"id":"t"}}' % (line.name, line.name, completed))
    assert got.headers_raw == as_kept(encode_table([(n, got.headers[n]) for n in ("first", "last", slips.ITINERARY)]))


def test_of_two_slips_the_itinerary_moves_and_the_other_stays(channel, broker, line):
    both = {**slips.declared(line.steps, 0, RUN), **slips.itinerary(*line.stops("validate", "dispatch"))}
    advance(channel, both)
    here = broker.channel().get_wait(line.queue("dispatch"))
    moved = {**slips.declared(line.steps, 0, RUN), slips.ITINERARY: here.headers[slips.ITINERARY]}
    assert here.headers_raw == as_kept(encode_table(moved))
    assert [s["routingKey"] for s in json.loads(here.headers[slips.ITINERARY])["steps"]] == ["dispatch"]


def test_what_belongs_to_the_last_step_does_not_go_to_the_next(channel, broker, line):
    advance(channel, {"x-death": [{"queue": "q", "count": Typed("l", 2)}], "x-acemq-error": "broke", "x-acemq-attempt": Typed("I", 4), "kept": 1,
                      "bellhop-claim-key": "k", "bellhop-claim-store": "s", "bellhop-claim-size": 5, "bellhop-claim-xxh128": "0" * 32,
                      **slips.declared(line.steps, 0, RUN)})
    headers = broker.channel().get_wait(line.queue("reserve")).headers
    assert headers == {"kept": 1, slips.ROUTE: "validate,reserve,dispatch", slips.POSITION: 1, slips.RUN: RUN, "x-acemq-attempt": 1}


def test_copies_and_a_foreign_user_are_kept_as_headers_only(channel, broker, line, name):
    above = broker.channel()
    spread = slips.short_lived(above, name("spread"))
    advance(channel, {"CC": [spread], "BCC": [spread, "x"], **slips.declared(line.steps, 0, RUN)}, user_id="somebody")
    here = above.get_wait(line.queue("reserve"))
    assert here.headers == {slips.ROUTE: "validate,reserve,dispatch", slips.POSITION: 1, slips.RUN: RUN, "bellhop-cc": [spread],
                            "bellhop-bcc": [spread, "x"], "bellhop-user-id": "somebody"}
    assert "user_id" not in here.properties and above.get(spread) is None


def test_the_other_properties_survive(channel, broker, line):
    properties = dict(message_id="m-1", correlation_id="c", type="Order", content_type="application/json", content_encoding="gzip", priority=3,
                      delivery_mode=1, timestamp=1757434689, reply_to="r", app_id="a", expiration="60000", user_id="guest")
    headers = slips.declared(line.steps, 1, RUN)
    advance(channel, headers, **properties)
    here = broker.channel().get_wait(line.queue("dispatch"))
    assert here.properties == {**properties, "headers": {slips.ROUTE: "validate,reserve,dispatch", slips.POSITION: 2, slips.RUN: RUN}}


def test_a_missing_id_and_delivery_mode_are_filled_in(channel, broker, line):
    advance(channel, slips.declared(line.steps, 0, RUN))
    here = broker.channel().get_wait(line.queue("reserve"))
    assert here.properties["delivery_mode"] == 2 and len(here.properties["message_id"]) == 36


# --- the end of the route

@pytest.mark.parametrize("form", ["declared", "past its end", "itinerary", "finished itinerary"])
def test_after_the_last_step_the_publish_is_confirmed_and_goes_nowhere(channel, broker, line, form):
    headers = {"declared": slips.declared(line.steps, 2), "past its end": slips.declared(line.steps, 9),
               "itinerary": slips.itinerary(*line.stops("dispatch")), "finished itinerary": slips.itinerary()}[form]
    advance(channel, headers, body=b"x" * 100000, mandatory=True)
    advance(channel, slips.declared(line.steps, 0), body=b"later", tag=2)
    above = broker.channel()
    assert above.get_wait(line.queue("reserve")).body == b"later"
    assert above.get(line.queue("validate")) is None and above.get(line.queue("dispatch")) is None


def test_the_objects_of_finished_routes_do_not_stay(bellhop, line):
    daemon = bellhop({"pipelines": line.config()})
    channel = slips.confirming(amqp.connect(daemon.socket))
    advance(channel, slips.declared(line.steps, 2), body=b"x" * 100000)
    slips.wait_until(lambda: daemon.objects() == [], what="an empty store")


# --- which pipeline

def test_the_routing_key_names_the_pipeline_else_the_only_one_with_the_step(bellhop, broker, name):
    above = broker.channel()
    first, second = slips.Line(above, name("first"), "a", "b", "c"), slips.Line(above, name("second"), "a", "b")
    channel = slips.confirming(amqp.connect(bellhop({"pipelines": {**first.config(), **second.config()}}).socket))
    advance(channel, slips.declared(["a", "b"], 0), key=second.name, body=b"named")
    assert above.get_wait(second.queue("b")).body == b"named"
    advance(channel, slips.declared(["b", "c"], 0), body=b"only one has c", tag=2)
    assert above.get_wait(first.queue("c")).body == b"only one has c"
    advance(channel, slips.declared(["a", "b"], 0), tag=3, answer="basic.nack")
    advance(channel, slips.declared(["b", "c"], 0), key=second.name, tag=4, answer="basic.nack")


def test_the_exchange_of_the_input_names_the_pipeline(bellhop, broker, name):
    above = broker.channel()
    first, second = slips.Line(above, name("first"), "a", "b"), slips.Line(above, name("second"), "a", "b")
    channel = slips.confirming(amqp.connect(bellhop({"pipelines": {**first.config(), **second.config()}}).socket))
    for tag, line in enumerate((second, first, second), 1):
        above.publish(line.name, "a", b"in", headers=slips.declared(line.steps, 0))
        slips.hop(channel, channel.get_wait(line.queue("a"), no_ack=False), line.name.encode())
        channel.expect("basic.ack", delivery_tag=tag)
        assert above.get_wait(line.queue("b")).body == line.name.encode()


# --- what cannot go on

BAD = {
    "no slip": {"app": 1},
    "no headers": None,
    "no names": {slips.ROUTE: " , "},
    "not json": {slips.ITINERARY: "steps"},
    "no object": {slips.ITINERARY: '"steps"'},
    "no steps": {slips.ITINERARY: '{"done":[]}'},
    "stop no object": {slips.ITINERARY: '{"steps":[{"exchange":"a","routingKey":"b"},7]}'},
    "too long": {slips.ITINERARY: '{"steps":[],"x":"' + "y" * 65536 + '"}'},
    "too deep": {slips.ITINERARY: '{"steps":[],"x":' + "[" * 16 + "]" * 16 + "}"},
    "not allowed": slips.itinerary(slips.stop("a", "b"), slips.stop("amq.fanout", "k")),
    "default exchange": slips.itinerary(slips.stop("a", "b"), slips.stop("", "k")),
    "bellhop's own": slips.itinerary(slips.stop("a", "b"), slips.stop("bellhop.next", "")),
    "long key": slips.itinerary(slips.stop("a", "b"), slips.stop("@", "k" * 256)),
    "no such step": slips.declared(["validate", "elsewhere"], 0),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_slip_that_cannot_go_on_is_a_nack_and_without_confirms_a_406(channel, line, kind):
    headers = BAD[kind]
    if headers and slips.ITINERARY in headers and isinstance(headers[slips.ITINERARY], str):
        headers = {slips.ITINERARY: headers[slips.ITINERARY].replace("@", line.name)}
    advance(channel, headers, answer="basic.nack")
    plain = channel.client.channel()
    plain.publish("bellhop.next", "", b"x", headers=headers)
    closed = plain.expect_close(406)
    assert "slip" in closed.reply_text and (closed.class_id, closed.method_id) == (60, 40)
    advance(channel, slips.declared(line.steps, 0), tag=2)


def test_a_hop_on_a_transactional_channel_is_refused(channel, line):
    tx = channel.client.channel()
    tx.call("tx.select")
    tx.publish("bellhop.next", "", b"x" * 70000, headers=slips.declared(line.steps, 0))
    assert "bellhop.next" in tx.expect_close(540).reply_text
    advance(channel, slips.declared(line.steps, 0))


def test_hops_without_confirms_are_quiet(channel, broker, line):
    plain = channel.client.channel()
    for body in (b"1", b"2"):
        plain.publish("bellhop.next", "", body, headers=slips.declared(line.steps, 0))
    above = broker.channel()
    assert [above.get_wait(line.queue("reserve")).body for _ in range(2)] == [b"1", b"2"]
    plain.expect_nothing(0.1)
