"""The client steps with aio-pika (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type."""

import asyncio
import datetime
import decimal
import hashlib
import logging
import re
import sys

import aio_pika

address, prefix, queue_type = sys.argv[1:]
exchange_name, queue_name = prefix + ".events", prefix + ".q"
sys.stdout.reconfigure(line_buffering=True)
logging.disable(logging.CRITICAL)  # the loss of the connection is no news here

SMALL = b"hello bellhop"
BINARY = b"\xac\x01\x01" + bytes(range(256))  # looks like a claim, and is none
LARGE = b"".join(b"%08d" % i for i in range(655360))  # 5 MiB


class UnixLoop(asyncio.SelectorEventLoop):
    """aio-pika opens TCP connections only, by its event loop: this one connects to the Unix socket instead."""

    async def create_connection(self, factory, host=None, port=None, **_):
        return await self.create_unix_connection(factory, address)


def connect():
    where = "localhost" if address.startswith("/") else address
    return aio_pika.connect_robust(f"amqp://guest:guest@{where}/?reconnect_interval=0.1")


def seen(body):
    return f"bytes={len(body)} md5={hashlib.md5(body).hexdigest()}"


def yes(value):
    return "yes" if value else "no"


def show(m):
    mode = m.delivery_mode.value if m.delivery_mode else None
    return f"content_type={m.content_type} delivery_mode={mode} message_id={m.message_id} correlation_id={m.correlation_id} type={m.type}"


def message(body, message_id, **more):
    return aio_pika.Message(body, content_type="text/plain", delivery_mode=2, message_id=message_id, **more)


async def consume(queue, enough):
    """Hands each delivery to enough(), until that is true."""
    async with queue.iterator(timeout=20) as deliveries:
        async for m in deliveries:
            if await enough(m):
                break


async def publish(exchange, body, key, **options):
    result = await exchange.publish(body, key, **options)
    return result.name.rpartition(".")[2].lower() if result is not None else "-"


async def transaction(connection, queue):
    channel = await connection.channel(publisher_confirms=False)
    tx = channel.transaction()
    await tx.select()
    await channel.default_exchange.publish(message(SMALL, "m-tx-1"), queue_name)
    await channel.default_exchange.publish(message(LARGE[:100000], "m-tx-2"), queue_name)
    print(f"transaction: before the commit empty={yes(await queue.get(fail=False) is None)}")
    await tx.commit()
    for _ in range(2):
        m = await queue.get(no_ack=True)
        print(f"transaction: committed {m.message_id} {seen(m.body)}")
    await tx.select()
    await channel.default_exchange.publish(message(SMALL, "m-tx-3"), queue_name)
    await channel.default_exchange.publish(message(LARGE[:100000], "m-tx-4"), queue_name)
    await tx.rollback()
    print(f"transaction: rolled back empty={yes(await queue.get(fail=False) is None)}")
    await channel.close()


async def rpc(connection, ch, queue):
    asking = await connection.channel(publisher_confirms=False)
    reply_to = await asking.get_queue("amq.rabbitmq.reply-to", ensure=False)
    answer = asyncio.get_running_loop().create_future()
    await reply_to.consume(answer.set_result, no_ack=True)
    await asking.default_exchange.publish(message(b"question", "m-rpc", reply_to="amq.rabbitmq.reply-to", correlation_id="rpc-1"), queue_name)
    question = None
    while question is None:  # published without a confirm: it may still be on its way
        question = await queue.get(fail=False)
    reply = aio_pika.Message(b"answer to " + question.body, correlation_id=question.correlation_id)
    await ch.default_exchange.publish(reply, question.reply_to, mandatory=False)  # RabbitMQ would return it: no queue takes it
    await question.ack()
    m = await asyncio.wait_for(answer, 20)
    print(f"rpc: correlation_id={m.correlation_id} {m.body.decode()}")
    await asking.close()


async def refused(connection, name, shown_as):
    ch = await connection.channel()
    try:
        await ch.get_queue(name, ensure=True)
    except (aio_pika.exceptions.ChannelClosed, aio_pika.exceptions.ChannelPreconditionFailed) as error:
        print(f"refused: {type(error).__name__} {str(error).replace(name, shown_as)}")


async def line():
    """The next line of standard input, while the connection goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def restart(connection, ch, queue):
    """aio-pika reconnects by itself: the connection, its channels and queues are the same objects afterwards."""
    lost = asyncio.get_running_loop().create_future()
    connection.close_callbacks.add(lambda _connection, error: lost.done() or lost.set_result(error))
    print("ready for restart")
    await line()
    error = await asyncio.wait_for(lost, 20)
    code = error.args[0] if getattr(error, "args", None) else "-"
    print(f"lost: {code if isinstance(code, int) else '-'}")
    await line()
    await asyncio.wait_for(connection.connected.wait(), 20)
    await ch.reopen() if ch.is_closed else None
    m = await queue.get(no_ack=True)
    print(f"restart: kept {m.message_id} {seen(m.body)}")
    await publish(ch.default_exchange, message(LARGE[:120000], "m-after"), queue_name)

    async def enough(m):
        print(f"restart: consumed {m.message_id} {seen(m.body)}")
        await m.ack()
        return True

    await consume(queue, enough)


async def main():
    connection = await connect()
    tuned = connection.transport.connection.connection_tune
    print("connect: open")
    print(f"limits: channel_max={tuned.channel_max} frame_max={tuned.frame_max}")

    ch = await connection.channel(on_return_raises=True)
    exchange = await ch.declare_exchange(exchange_name, "topic", durable=True)
    queue = await ch.declare_queue(queue_name, durable=True, arguments={"x-queue-type": queue_type})
    await queue.bind(exchange, "order.#")
    declared = queue.declaration_result
    print(f"declare: {queue.name} messages={declared.message_count} consumers={declared.consumer_count}")

    for word, body in (("small", SMALL), ("binary", BINARY), ("large", LARGE)):
        outcome = await publish(exchange, message(body, f"m-{word}", correlation_id="c", type="order"), f"order.{word}")
        print(f"publish: {word} {seen(body)} {outcome}")

    await ch.set_qos(prefetch_count=2)

    async def consumed(m):
        print(f"consume: key={m.routing_key} tag={m.delivery_tag} redelivered={yes(m.redelivered)} {seen(m.body)} {show(m)}")
        await m.ack()
        return m.routing_key == "order.large"

    await consume(queue, consumed)

    await publish(ch.default_exchange, aio_pika.Message(SMALL), queue_name)
    m = await queue.get(no_ack=True)
    own_id = m.message_id and re.fullmatch("[0-9a-f]{32}", m.message_id)  # aio-pika fills it in itself
    print(f"bare: delivery_mode={m.properties.delivery_mode or '-'} message_id={'filled in by aio-pika' if own_id else m.message_id or '-'}")

    headers = {
        "string": "grüß", "bytes": bytearray(b"\x00\xff"), "true": True, "byte": 7, "short": -300, "ushort": 60000, "int": -70000,
        "long": 2**40, "decimal": decimal.Decimal("3.14"), "float": 0.5, "time": datetime.datetime(2024, 5, 17, 12, 0, 0),
        "table": {"a": {"b": "c"}}, "array": [1, "two", {"three": 3}], "void": None,
    }
    await publish(exchange, message(SMALL, "m-headers", headers=headers), "order.headers")
    m = await queue.get(no_ack=True)
    for name, value in sorted(m.headers.items()):
        print(f"headers: {name}={type(value).__name__} {value!r}")

    try:
        await publish(exchange, message(LARGE[:70000], "m-return"), "nobody.wants.this", mandatory=True)
    except aio_pika.exceptions.PublishError as error:
        returned, p = error.message, error.message.header.properties
        r = returned.delivery
        print(f"return: code={r.reply_code} text={r.reply_text} exchange={r.exchange} key={r.routing_key} {seen(returned.body)} "
              f"content_type={p.content_type} delivery_mode={p.delivery_mode} message_id={p.message_id}")

    async def requeued(m):
        print(f"nack: redelivered={yes(m.redelivered)} {seen(m.body)}")
        await (m.ack() if m.redelivered else m.nack(requeue=True))
        return m.redelivered

    await publish(ch.default_exchange, message(LARGE[:80000], "m-nack"), queue_name)
    await consume(queue, requeued)

    await publish(ch.default_exchange, message(LARGE[:90000], "m-get"), queue_name)
    m = await queue.get()
    print(f"get: redelivered={yes(m.redelivered)} left={m.message_count} {seen(m.body)} {show(m)}")
    await m.ack()
    print(f"get: empty={yes(await queue.get(fail=False) is None)}")

    await transaction(connection, queue)
    await rpc(connection, ch, queue)
    exclusive = await ch.declare_queue("", exclusive=True)
    other = await connect()
    await refused(other, exclusive.name, "EXCLUSIVE")
    await other.close()
    await refused(connection, prefix + ".missing", prefix + ".missing")

    await publish(ch.default_exchange, message(LARGE[:110000], "m-kept"), queue_name)
    await restart(connection, ch, queue)
    await queue.delete(if_unused=False, if_empty=False)
    await connection.close()
    print("close: clean")


loop = UnixLoop() if address.startswith("/") else asyncio.new_event_loop()
loop.run_until_complete(main())
