"""The client steps with kombu and a Celery task (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix,
a queue type."""

import datetime
import decimal
import hashlib
import os
import pathlib
import socket
import subprocess
import sys

import amqp
import kombu
import unix_transport  # noqa: F401  (the scheme amqpunix)

address, prefix, queue_type = sys.argv[1:]
queue_name = prefix + ".q"
sys.stdout.reconfigure(line_buffering=True)

SMALL = b"hello bellhop"
BINARY = b"\xac\x01\x01" + bytes(range(256))  # looks like a claim, and is none
LARGE = b"".join(b"%08d" % i for i in range(655360))  # 5 MiB

events = kombu.Exchange(prefix + ".events", "topic", durable=True)
orders = kombu.Queue(queue_name, events, "order.#", durable=True, queue_arguments={"x-queue-type": queue_type})


def connect():
    # confirm_publish makes each publish wait for its confirm.
    if address.startswith("/"):
        return kombu.Connection("amqpunix://guest:guest@//", transport_options={"host": address, "confirm_publish": True})
    return kombu.Connection(f"amqp://guest:guest@{address}//", transport_options={"confirm_publish": True})


def seen(body):
    body = bytes(body) if not isinstance(body, str) else body.encode()
    return f"bytes={len(body)} md5={hashlib.md5(body).hexdigest()}"


def yes(value):
    return "yes" if value else "no"


def show(m):
    return f"content_type={m.content_type} " + " ".join(f"{k}={m.properties.get(k)}" for k in ("delivery_mode", "message_id", "correlation_id", "type"))


def publish(producer, body, key, message_id, exchange="", **more):
    producer.publish(body, routing_key=key, exchange=exchange, content_type="application/octet-stream", content_encoding="binary",
                     message_id=message_id, **more)


def get(queue, **options):
    """A message, or None."""
    return queue.get(**options)


def consume(connection, channel, enough):
    """Hands each delivery to enough(), until that is true."""
    done = []
    with kombu.Consumer(channel, orders, on_message=lambda m: enough(m) and done.append(m), accept=None, auto_declare=False, prefetch_count=2):
        while not done:
            connection.drain_events(timeout=20)


connection = connect()
connection.connect()
print("connect: open")
print(f"limits: channel_max={connection.connection.channel_max} frame_max={connection.connection.frame_max}")

ch = connection.channel()
producer = kombu.Producer(ch, auto_declare=False)
queue = orders(ch)
queue.declare()
name, messages, consumers = ch.queue_declare(queue_name, passive=True)
print(f"declare: {name} messages={messages} consumers={consumers}")

for word, body in (("small", SMALL), ("binary", BINARY), ("large", LARGE)):
    publish(producer, body, f"order.{word}", f"m-{word}", exchange=events, correlation_id="c", type="order")
    print(f"publish: {word} {seen(body)} ack")


def consumed(m):
    info = m.delivery_info
    print(f"consume: key={info['routing_key']} tag={m.delivery_tag} redelivered={yes(info['redelivered'])} {seen(m.body)} {show(m)}")
    m.ack()
    return info["routing_key"] == "order.large"


consume(connection, ch, consumed)

ch.basic_publish(amqp.Message(SMALL), routing_key=queue_name)  # kombu's own producer always sets a delivery mode
m = get(queue, no_ack=True)
print(f"bare: delivery_mode={m.properties.get('delivery_mode', '-')} message_id={m.properties.get('message_id', '-')}")

headers = {
    "string": "grüß", "true": True, "int": -5, "big": 2**40, "decimal": decimal.Decimal("3.14"), "double": 2.5,
    "time": datetime.datetime(2024, 5, 17, 12, 0, 0), "table": {"a": {"b": "c"}}, "array": [1, "two", {"three": 3}], "void": None,
}
publish(producer, SMALL, "order.headers", "m-headers", exchange=events, headers=headers)
m = get(queue, no_ack=True)
for name, value in sorted(m.headers.items()):
    print(f"headers: {name}={type(value).__name__} {value!r}")

returned = []
ch.events["basic_return"].add(lambda error, exchange, key, m: returned.append((error, exchange, key, m)))
publish(producer, LARGE[:70000], "nobody.wants.this", "m-return", exchange=events, mandatory=True)
error, exchange, key, m = returned[0]
print(f"return: code={error.reply_code} text={error.reply_text} exchange={exchange} key={key} {seen(m.body)} message_id={m.properties['message_id']} then ack")


def requeued(m):
    redelivered = m.delivery_info["redelivered"]
    print(f"nack: redelivered={yes(redelivered)} {seen(m.body)}")
    m.ack() if redelivered else m.requeue()
    return redelivered


publish(producer, LARGE[:80000], queue_name, "m-nack")
consume(connection, ch, requeued)

publish(producer, LARGE[:90000], queue_name, "m-get")
m = get(queue)
print(f"get: redelivered={yes(m.delivery_info['redelivered'])} left={m.delivery_info['message_count']} {seen(m.body)} {show(m)}")
m.ack()
print(f"get: empty={yes(get(queue) is None)}")

with connect() as unconfirmed:  # a channel cannot confirm and be transactional
    unconfirmed.transport_options["confirm_publish"] = False
    tx = unconfirmed.channel()
    tx.tx_select()
    transactional = kombu.Producer(tx, auto_declare=False)
    publish(transactional, SMALL, queue_name, "m-tx-1")
    publish(transactional, LARGE[:100000], queue_name, "m-tx-2")
    print(f"transaction: before the commit empty={yes(get(queue) is None)}")
    tx.tx_commit()
    for _ in range(2):
        m = get(queue, no_ack=True)
        print(f"transaction: committed {m.properties['message_id']} {seen(m.body)}")
    publish(transactional, SMALL, queue_name, "m-tx-3")
    publish(transactional, LARGE[:100000], queue_name, "m-tx-4")
    tx.tx_rollback()
    print(f"transaction: rolled back empty={yes(get(queue) is None)}")

replies = []
reply_to = kombu.Queue("amq.rabbitmq.reply-to", no_ack=True)
with kombu.Consumer(ch, reply_to, on_message=replies.append, accept=None, auto_declare=False, no_ack=True):
    publish(producer, b"question", queue_name, "m-rpc", reply_to="amq.rabbitmq.reply-to", correlation_id="rpc-1")
    question = get(queue)
    publish(producer, b"answer to " + bytes(question.body), question.properties["reply_to"], "m-reply",
            correlation_id=question.properties["correlation_id"])
    question.ack()
    while not replies:
        connection.drain_events(timeout=20)
print(f"rpc: correlation_id={replies[0].properties['correlation_id']} {bytes(replies[0].body).decode()}")

# A Celery worker of its own, its task with a large argument, and the result by the rpc backend.
os.environ.update(CLIENT_ADDRESS=address, CLIENT_PREFIX=prefix)
import tasks  # noqa: E402

worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool", "solo", "--loglevel", "ERROR", "--without-gossip",
                           "--without-mingle", "--without-heartbeat", "-n", f"{prefix}@localhost"], cwd=pathlib.Path(__file__).parent,
                          stdout=subprocess.DEVNULL)
try:
    results = [tasks.digest.delay(text) for text in (LARGE[:5].decode(), LARGE.decode())]
    for result in results:
        size, md5 = result.get(timeout=40)
        print(f"celery: {result.state} bytes={size} md5={md5}")
finally:
    worker.terminate()
    worker.wait(20)
print(f"celery: worker ended {worker.returncode}")
tasks.app.backend.result_consumer.stop()
tasks.app.pool.force_close_all()
tasks.app.close()
ch.queue_delete(prefix + ".celery")

exclusive, _, _ = ch.queue_declare("", exclusive=True)
with connect() as other:
    try:
        other.channel().queue_declare(exclusive, passive=True)
    except amqp.exceptions.ResourceLocked as error:
        print(f"refused: {error.reply_code} {error.reply_text.replace(exclusive, 'EXCLUSIVE')}")
broken = connection.channel()
try:
    broken.queue_declare(prefix + ".missing", passive=True)
except amqp.exceptions.NotFound as error:
    print(f"refused: {error.reply_code} {error.reply_text}; the first channel is {'open' if ch.is_open else 'closed'}")

publish(producer, LARGE[:110000], queue_name, "m-kept")
print("ready for restart")
sys.stdin.readline()
try:
    while True:
        connection.drain_events(timeout=20)
except socket.timeout:
    sys.exit("the connection is still there")
except connection.connection_errors as error:
    print(f"lost: {getattr(error, 'reply_code', None) or '-'}")
sys.stdin.readline()
connection.ensure_connection(max_retries=50, interval_start=0.1, interval_max=0.5)
ch = connection.channel()
producer, queue = kombu.Producer(ch, auto_declare=False), orders(ch)
m = get(queue, no_ack=True)
print(f"restart: kept {m.properties['message_id']} {seen(m.body)}")


def after(m):
    print(f"restart: consumed {m.properties['message_id']} {seen(m.body)}")
    m.ack()
    return True


publish(producer, LARGE[:120000], queue_name, "m-after")
consume(connection, ch, after)
queue.delete()
connection.release()
print("close: clean")
