"""The client steps with pika (see ../README.md). Arguments: host:port prefix."""

import sys

import pika

address, prefix = sys.argv[1], sys.argv[2]
host, _, port = address.rpartition(":")
parameters = pika.ConnectionParameters(host, int(port), credentials=pika.PlainCredentials("guest", "guest"))

SMALL = b"hello bellhop"
LARGE = bytes(range(256)) * 4096


def same(a, b):
    return "yes" if a == b else "no"


def show(p):
    headers = "-" if p.headers is None else "{" + ",".join(f"{k}={v}" for k, v in sorted(p.headers.items())) + "}"
    return (f"content_type={p.content_type} headers={headers} delivery_mode={p.delivery_mode} message_id={p.message_id} "
            f"correlation_id={p.correlation_id} type={p.type}")


def properties(message_id, headers=None, **more):
    return pika.BasicProperties(content_type="text/plain", delivery_mode=2, message_id=message_id, headers=headers, **more)


connection = pika.BlockingConnection(parameters)
print("connected")

ch = connection.channel()
exchange, queue = prefix + ".events", prefix + ".q"
ch.exchange_declare(exchange, "topic", durable=True)
ch.queue_declare(queue, durable=True)
ch.queue_bind(queue, exchange, "order.#")
ch.confirm_delivery()
print("declared")

for word, body, headers in (("small", SMALL, {"region": "eu", "count": 7}), ("large", LARGE, None)):
    # In confirm mode pika's publish returns when the broker has confirmed, and raises otherwise.
    ch.basic_publish(exchange, f"order.{word}", body, properties(f"m-{word}", headers, correlation_id="c", type="order"))
    print(f"published {word} size={len(body)} ack")

ch.basic_qos(prefetch_count=10)
got = 0
for method, props, body in ch.consume(queue, inactivity_timeout=20):
    if method is None:
        sys.exit("no delivery within 20 s")
    expected = SMALL if method.routing_key == "order.small" else LARGE
    print(f"consumed key={method.routing_key} redelivered={method.redelivered} size={len(body)} same={same(body, expected)} "
          f"{show(props)}")
    ch.basic_ack(method.delivery_tag)
    got += 1
    if got == 2:
        break
ch.cancel()

returned = connection.channel()
returned.confirm_delivery()
try:
    returned.basic_publish(exchange, "nobody.wants.this", LARGE[:70000], properties("m-return", {"a": 1}), mandatory=True)
    print("return: none")
except pika.exceptions.UnroutableError as error:
    for m in error.messages:
        print(f"return code={m.method.reply_code} text={m.method.reply_text} exchange={m.method.exchange == exchange} "
              f"key={m.method.routing_key} size={len(m.body)} same={same(m.body, LARGE[:70000])} {show(m.properties)}")
returned.close()

ch.basic_publish("", queue, b"to be got", properties("m-get"))
method, props, body = ch.basic_get(queue)
print(f"get size={len(body)} same={same(body, b'to be got')} redelivered={method.redelivered} left={method.message_count} {show(props)}")
ch.basic_nack(method.delivery_tag, requeue=True)
method, props, body = ch.basic_get(queue)
print(f"get size={len(body)} same={same(body, b'to be got')} redelivered={method.redelivered}")
ch.basic_ack(method.delivery_tag)
print(f"get empty={'yes' if ch.basic_get(queue)[0] is None else 'no'}")

exclusive = ch.queue_declare("", exclusive=True).method.queue
print(f"exclusive named={'yes' if exclusive.startswith('amq.gen-') else 'no'}")
other = pika.BlockingConnection(parameters)
try:
    other.channel().queue_declare(exclusive, passive=True)
    print("exclusive: the other connection may use it")
except pika.exceptions.ChannelClosedByBroker as error:
    print(f"exclusive other connection: {error.reply_code}")
other.close()

tx = connection.channel()
tx.tx_select()


def count():
    return ch.queue_declare(queue, passive=True).method.message_count


tx.basic_publish("", queue, SMALL, properties("m-tx-1"))
tx.basic_publish("", queue, LARGE[:100000], properties("m-tx-2"))
print(f"tx before commit count={count()}")
tx.tx_commit()
print(f"tx committed count={count()}")
for expected in (SMALL, LARGE[:100000]):
    method, props, body = ch.basic_get(queue, auto_ack=True)
    print(f"tx got size={len(body)} same={same(body, expected)} message_id={props.message_id}")
tx.basic_publish("", queue, SMALL, properties("m-tx-3"))
tx.basic_publish("", queue, LARGE[:100000], properties("m-tx-4"))
tx.tx_rollback()
print(f"tx rolled back count={count()}")
tx.close()

rpc = connection.channel()
replies = []
rpc.basic_consume("amq.rabbitmq.reply-to", lambda c, m, p, b: replies.append((p.correlation_id, b)), auto_ack=True)
rpc.basic_publish("", queue, b"question", properties("m-rpc", reply_to="amq.rabbitmq.reply-to", correlation_id="rpc-1"))
method = None
while method is None:  # it was published on another channel, without a confirm: it may still be on its way
    method, props, body = ch.basic_get(queue)
ch.basic_publish("", props.reply_to, b"answer to " + body, pika.BasicProperties(correlation_id=props.correlation_id))
ch.basic_ack(method.delivery_tag)
while not replies:
    connection.process_data_events(time_limit=20)
print(f"rpc correlation_id={replies[0][0]} reply={replies[0][1].decode()}")
rpc.close()

broken = connection.channel()
try:
    broken.queue_declare(prefix + ".missing", passive=True)
except pika.exceptions.ChannelClosedByBroker as error:
    print(f"missing queue: {error.reply_code} {error.reply_text.replace(prefix, 'PREFIX')}")
print(f"the first channel is {'open' if ch.is_open else 'closed'}, count={count()}")

ch.queue_delete(queue)
connection.close()
print("closed")
