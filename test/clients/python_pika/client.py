"""The client steps with pika (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type."""

import datetime
import decimal
import hashlib
import pathlib
import sys

import pika

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "deploy"))
import pika_unix  # noqa: E402  pika opens TCP only; this short subclass hands it a Unix socket

address, prefix, queue_type = sys.argv[1:]
exchange, queue = prefix + ".events", prefix + ".q"
sys.stdout.reconfigure(line_buffering=True)

SMALL = b"hello bellhop"
BINARY = b"\xac\x01\x01" + bytes(range(256))  # looks like a claim, and is none
LARGE = b"".join(b"%08d" % i for i in range(655360))  # 5 MiB


def connect():
    if address.startswith("/"):
        return pika_unix.connect(address, credentials=pika.PlainCredentials("guest", "guest"))
    host, _, port = address.rpartition(":")
    return pika.BlockingConnection(pika.ConnectionParameters(host, int(port), credentials=pika.PlainCredentials("guest", "guest")))


def seen(body):
    return f"bytes={len(body)} md5={hashlib.md5(body).hexdigest()}"


def yes(value):
    return "yes" if value else "no"


def show(p):
    return f"content_type={p.content_type} delivery_mode={p.delivery_mode} message_id={p.message_id} correlation_id={p.correlation_id} type={p.type}"


def properties(message_id, **more):
    return pika.BasicProperties(content_type="text/plain", delivery_mode=2, message_id=message_id, **more)


def received(ch):
    """Each delivery of the queue, until the caller has enough."""
    for method, props, body in ch.consume(queue, inactivity_timeout=20):
        if method is None:
            sys.exit("no delivery within 20 s")
        yield method, props, body


def get(ch, **options):
    """A message that is already confirmed, or None."""
    method, props, body = ch.basic_get(queue, **options)
    return None if method is None else (method, props, body)


connection = connect()
tuned = connection._impl.params
print("connect: open")
print(f"limits: channel_max={tuned.channel_max} frame_max={tuned.frame_max}")

ch = connection.channel()
ch.exchange_declare(exchange, "topic", durable=True)
declared = ch.queue_declare(queue, durable=True, arguments={"x-queue-type": queue_type}).method
ch.queue_bind(queue, exchange, "order.#")
ch.confirm_delivery()
print(f"declare: {declared.queue} messages={declared.message_count} consumers={declared.consumer_count}")

for word, body in (("small", SMALL), ("binary", BINARY), ("large", LARGE)):
    # In confirm mode pika's publish returns when the broker has confirmed, and raises otherwise.
    ch.basic_publish(exchange, f"order.{word}", body, properties(f"m-{word}", correlation_id="c", type="order"))
    print(f"publish: {word} {seen(body)} ack")

ch.basic_qos(prefetch_count=2)
for method, props, body in received(ch):
    print(f"consume: key={method.routing_key} tag={method.delivery_tag} redelivered={yes(method.redelivered)} {seen(body)} {show(props)}")
    ch.basic_ack(method.delivery_tag)
    if method.routing_key == "order.large":
        break
ch.cancel()

ch.basic_publish("", queue, SMALL)
method, props, body = get(ch, auto_ack=True)
print(f"bare: delivery_mode={props.delivery_mode or '-'} message_id={props.message_id or '-'}")

headers = {
    "string": "grüß", "bytes": b"\x00\xff", "true": True, "byte": 7, "int": -5, "big": 2**40, "decimal": decimal.Decimal("3.14"),
    "time": datetime.datetime(2024, 5, 17, 12, 0, 0), "table": {"a": {"b": "c"}}, "array": [1, "two", {"three": 3}], "void": None,
}
ch.basic_publish(exchange, "order.headers", SMALL, properties("m-headers", headers=headers))
_, props, _ = get(ch, auto_ack=True)
for name, value in sorted(props.headers.items()):
    print(f"headers: {name}={type(value).__name__} {value!r}")

returning = connection.channel()
returning.confirm_delivery()
try:
    returning.basic_publish(exchange, "nobody.wants.this", LARGE[:70000], properties("m-return"), mandatory=True)
except pika.exceptions.UnroutableError as error:
    for m in error.messages:
        print(f"return: code={m.method.reply_code} text={m.method.reply_text} exchange={m.method.exchange} key={m.method.routing_key} "
              f"{seen(m.body)} {show(m.properties)} then ack")
returning.close()

ch.basic_publish("", queue, LARGE[:80000], properties("m-nack"))
for method, props, body in received(ch):
    print(f"nack: redelivered={yes(method.redelivered)} {seen(body)}")
    if method.redelivered:
        ch.basic_ack(method.delivery_tag)
        break
    ch.basic_nack(method.delivery_tag, requeue=True)
ch.cancel()

ch.basic_publish("", queue, LARGE[:90000], properties("m-get"))
method, props, body = get(ch)
print(f"get: redelivered={yes(method.redelivered)} left={method.message_count} {seen(body)} {show(props)}")
ch.basic_ack(method.delivery_tag)
print(f"get: empty={yes(get(ch) is None)}")

tx = connection.channel()
tx.tx_select()
tx.basic_publish("", queue, SMALL, properties("m-tx-1"))
tx.basic_publish("", queue, LARGE[:100000], properties("m-tx-2"))
print(f"transaction: before the commit empty={yes(get(ch) is None)}")
tx.tx_commit()
for _ in range(2):
    method, props, body = get(ch, auto_ack=True)
    print(f"transaction: committed {props.message_id} {seen(body)}")
tx.basic_publish("", queue, SMALL, properties("m-tx-3"))
tx.basic_publish("", queue, LARGE[:100000], properties("m-tx-4"))
tx.tx_rollback()
print(f"transaction: rolled back empty={yes(get(ch) is None)}")
tx.close()

rpc = connection.channel()
replies = []
rpc.basic_consume("amq.rabbitmq.reply-to", lambda c, m, p, b: replies.append((p, b)), auto_ack=True)
rpc.basic_publish("", queue, b"question", properties("m-rpc", reply_to="amq.rabbitmq.reply-to", correlation_id="rpc-1"))
question = None
while question is None:  # published on another channel, without a confirm: it may still be on its way
    question = get(ch)
method, props, body = question
ch.basic_publish("", props.reply_to, b"answer to " + body, pika.BasicProperties(correlation_id=props.correlation_id))
ch.basic_ack(method.delivery_tag)
while not replies:
    connection.process_data_events(time_limit=20)
print(f"rpc: correlation_id={replies[0][0].correlation_id} {replies[0][1].decode()}")
rpc.close()

exclusive = ch.queue_declare("", exclusive=True).method.queue
other = connect()
try:
    other.channel().queue_declare(exclusive, passive=True)
except pika.exceptions.ChannelClosedByBroker as error:
    print(f"refused: {error.reply_code} {error.reply_text.replace(exclusive, 'EXCLUSIVE')}")
other.close()
broken = connection.channel()
try:
    broken.queue_declare(prefix + ".missing", passive=True)
except pika.exceptions.ChannelClosedByBroker as error:
    print(f"refused: {error.reply_code} {error.reply_text}; the first channel is {'open' if ch.is_open else 'closed'}")

ch.basic_publish("", queue, LARGE[:110000], properties("m-kept"))
print("ready for restart")
sys.stdin.readline()
try:
    while True:
        connection.process_data_events(time_limit=20)
except pika.exceptions.AMQPConnectionError as error:
    print(f"lost: {getattr(error, 'reply_code', '-')}")
sys.stdin.readline()
connection = connect()
ch = connection.channel()
ch.confirm_delivery()
method, props, body = get(ch, auto_ack=True)
print(f"restart: kept {props.message_id} {seen(body)}")
ch.basic_publish("", queue, LARGE[:120000], properties("m-after"))
for method, props, body in received(ch):
    print(f"restart: consumed {props.message_id} {seen(body)}")
    ch.basic_ack(method.delivery_tag)
    break
ch.cancel()

ch.queue_delete(queue)
connection.close()
print("close: clean")
