"""Tables with every type of field that RabbitMQ knows pass whole: in messages, in the arguments of declarations, bindings and consumers, and in
what client and broker say of themselves."""

import datetime
import decimal

import pytest

from support import amqp
from support.amqp import Typed

EVERY_TYPE = {
    "boolean": True, "no": False,
    "b": Typed("b", -128), "B": Typed("B", 255), "s": Typed("s", -32768), "u": Typed("u", 65535),
    "I": Typed("I", -2**31), "i": Typed("i", 2**32 - 1), "l": Typed("l", -2**63), "L": Typed("L", 2**63 - 1),
    "float": Typed("f", 0.5), "double": Typed("d", -1e300),
    "decimal": decimal.Decimal("3.14"), "negative decimal": decimal.Decimal("-0.001"), "whole decimal": decimal.Decimal(7),
    "string": "héllo", "empty": "", "bytes": b"\x00\xff\xce", "no bytes": Typed("x", b""),
    "timestamp": datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.timezone.utc), "void": None,
    "table": {"deep": {"deeper": {"deepest": [1, "two", {"three": None}]}}, "empty": {}},
    "array": [True, Typed("b", 1), "s", b"x", decimal.Decimal("0.1"), None, [], [[[]]], {"t": Typed("s", 1)}],
    "no array": [],
    "k" * 255: "a name of 255 bytes",
}
SINGLE = {k: {k: v} for k, v in EVERY_TYPE.items()}


@pytest.mark.parametrize("size", [0, 2, 1000, 200_000])
@pytest.mark.parametrize("which", ["all", "one by one"])
def test_in_the_headers_of_a_message(same, size, which):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("confirm.select")
        # Offloaded, an empty table and none are told apart by the order of the headers, which RabbitMQ 4 does not keep.
        empty = [{}] if ch.client.server_properties["version"][0] < "4" else []
        tables = [EVERY_TYPE, *empty] if which == "all" else SINGLE.values()
        for table in tables:
            ch.publish("", queue, b"x" * size, headers=table, content_type="t", timestamp=2**63, priority=255, delivery_mode=1)
        ch.confirms(len(tables))
        ch.call("basic.consume", queue=queue, no_ack=True, consumer_tag="c")
        for _ in tables:
            ch.deliver()


def test_every_property_alone_and_together(same):
    values = dict(content_type="text/plain", content_encoding="gzip", headers={"a": 1}, delivery_mode=1, priority=9, correlation_id="c" * 255,
                  reply_to="somewhere", expiration="60000", message_id="m", timestamp=1, type="t", user_id="guest", app_id="app",
                  cluster_id="cluster")
    assert {p for p, _ in amqp.PROPERTIES} == set(values)

    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("confirm.select")
        sets = [{k: v} for k, v in values.items()] + [values, {}, {"delivery_mode": 2}, {"message_id": ""}]
        for n, properties in enumerate(sets):
            ch.publish("", queue, b"%d" % n, **properties)
            ch.publish("", queue, b"%d" % n * 70_000, **properties)
        ch.confirms(2 * len(sets))
        for _ in range(2 * len(sets)):
            ch.get_wait(queue)


@pytest.mark.parametrize("field", EVERY_TYPE, ids=lambda field: field[:20])
def test_in_the_arguments_of_what_is_declared_and_bound(same, field):
    @same
    def program(run):
        ch = run.channel()
        queue, exchange = run.name("q"), run.name("x")
        arguments = {"x-unknown": EVERY_TYPE[field], **SINGLE[field]}
        ch.call("queue.declare", queue=queue, exclusive=True, arguments=arguments)
        ch.call("exchange.declare", exchange=exchange, type="headers", arguments=arguments)
        ch.call("exchange.declare", exchange=exchange, type="headers", arguments=arguments)
        ch.call("confirm.select")
        # A binding of a headers exchange compares the values, so that whatever changed on the way would not match.
        ch.call("queue.bind", queue=queue, exchange=exchange, arguments={"x-match": "all", **SINGLE[field]})
        ch.publish(exchange, "", b"matches", headers=SINGLE[field], mandatory=True)
        ch.publish(exchange, "", b"does not", headers={"other": 1}, mandatory=True)
        ch.confirms(2)
        ch.get(queue)
        ch.get(queue)
        ch.call("queue.unbind", queue=queue, exchange=exchange, arguments={"x-match": "all", **SINGLE[field]})
        ch.publish(exchange, "", b"no more", headers=SINGLE[field], mandatory=True)
        ch.confirms(3)
        ch.call("exchange.delete", exchange=exchange)
        ch.call("basic.consume", queue=queue, consumer_tag="c", arguments=arguments)
        ch.send("queue.declare", queue=queue, exclusive=True, arguments={**arguments, "x-max-length": Typed("s", 5)})
        ch.expect_close()


def test_what_the_broker_keeps_of_a_binding(same):
    """Read back by the broker's own tool: the arguments as they arrived."""
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("queue.bind", queue=queue, exchange="amq.headers", routing_key=run.name("k"), arguments=EVERY_TYPE)
        rows = run.node.rows("list_bindings", "routing_key", "arguments")
        mine = [row for row in rows if run.name("k") == row[0]]
        assert len(mine) == 1 and "deepest" in mine[0][1]
        run.note("bindings", mine)
        ch.call("queue.unbind", queue=queue, exchange="amq.headers", routing_key=run.name("k"), arguments=EVERY_TYPE)

    same(program, ["stamping"])


def test_in_what_a_client_says_of_itself(same):
    def program(run):
        properties = {**amqp.CLIENT_PROPERTIES, **EVERY_TYPE, "connection_name": run.name("shop")}
        client = run.connect(client_properties=properties)
        client.channel()
        rows = [row for row in run.node.rows("list_connections", "client_properties") if run.name("shop") in row[0]]
        assert len(rows) == 1 and "deepest" in rows[0][0]
        run.note("properties", rows)

    same(program, ["stamping"])
