"""The example's service: it sends an order with a scan of 1 MiB every five seconds, and does the work of both steps of the pipeline.
SIGTERM ends it."""

import hashlib
import os
import signal
import sys

import pika
import pika_unix

SECONDS_BETWEEN = float(os.environ.get("ORDERS_SECONDS", "5"))


def name_of(scan):
    return hashlib.sha256(scan).hexdigest()[:12]


def validate(channel, method, properties, scan):
    print(f"validate: {len(scan)} bytes, {name_of(scan)}", flush=True)
    # bellhop sends the result to the next step, and acknowledges the input with it.
    properties.headers["bellhop-ack"] = method.delivery_tag
    channel.basic_publish("bellhop.next", "", scan, properties)


def dispatch(channel, method, _properties, scan):
    print(f"dispatch: {len(scan)} bytes, {name_of(scan)}", flush=True)
    channel.basic_ack(method.delivery_tag)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    connection = pika_unix.connect(os.environ["BELLHOP_SOCKET"])
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=4)
    channel.exchange_declare("orders", durable=True)
    channel.basic_consume("fulfilment.validate", validate)
    channel.basic_consume("fulfilment.dispatch", dispatch)

    def send():
        scan = os.urandom(1 << 20)
        channel.basic_publish("orders", "order.new", scan, pika.BasicProperties(content_type="image/tiff"))
        print(f"sent: {len(scan)} bytes, {name_of(scan)}", flush=True)
        connection.call_later(SECONDS_BETWEEN, send)

    send()
    channel.start_consuming()


if __name__ == "__main__":
    main()
