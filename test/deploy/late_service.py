"""A service that goes on working after SIGTERM, as one does that finishes what it has begun: for LATE_S seconds it publishes and consumes as
before. Then it takes what is left in its queue, and ends. What it did is the last line of its output, as JSON."""

import json
import os
import signal
import sys
import time

sys.path.insert(0, "/service")
import pika_unix  # noqa: E402

LATE_S = float(os.environ["LATE_S"])
QUEUE = os.environ["QUEUE"]

told_at = None


def told_to_end(*_):
    global told_at
    told_at = told_at or time.monotonic()


signal.signal(signal.SIGTERM, told_to_end)

connection = pika_unix.connect("/run/bellhop/bellhop.sock")
channel = connection.channel()
channel.confirm_delivery()
channel.queue_declare(QUEUE, durable=True)
channel.basic_qos(prefetch_count=5)

published, late, wrong = 0, 0, 0
taken = set()


def body_of(number):
    return f"{number:08d}".encode() * 25_000  # 200 kB: its payload goes to the store


def take(_channel, method, _properties, body):
    global wrong
    number = int(body[:8])
    wrong += body != body_of(number)
    taken.add(number)
    channel.basic_ack(method.delivery_tag)


channel.basic_consume(QUEUE, take)
print("working", flush=True)
while told_at is None or time.monotonic() < told_at + LATE_S:
    channel.basic_publish("", QUEUE, body_of(published), mandatory=True)  # returns when it is confirmed, and raises if it is not
    published += 1
    late += told_at is not None
    connection.process_data_events(time_limit=0.02)
while len(taken) < published:
    connection.process_data_events(time_limit=1)
connection.close()
print(json.dumps({"published": published, "late": late, "taken": len(taken), "wrong": wrong}), flush=True)
