"""P12: whether one session that is handed very large bodies keeps the others from a filesystem store."""

import os
import subprocess
import sys
import time
import uuid

from .client import fresh_queue
from .report import line, verdict
from .services import bellhop_with_store

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import amqp  # noqa: E402

GIB = 1 << 30
LARGE_COUNT, LARGE_BYTES, SMALL_BYTES = 16, 4 * GIB, 100_000
CLAIM = b"\xac\x01\x01"
HOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hog.py")


def put_object(store, size):
    """A sparse object; its key."""
    key = str(uuid.uuid4())
    with open(os.path.join(store, key), "wb") as file:
        file.truncate(size)
    return key


def publish_ms(channel, tag, queue):
    began = time.monotonic()
    channel.publish("", queue, b"z" * SMALL_BYTES)
    channel.wait_for("basic.ack", timeout=120, delivery_tag=tag)
    return 1000 * (time.monotonic() - began)


def fetch_ms(channel, queue):
    began = time.monotonic()
    body = channel.get(queue, no_ack=True, timeout=120).body
    if len(body) != SMALL_BYTES:
        raise RuntimeError(f"a body of {len(body)} bytes came")
    return 1000 * (time.monotonic() - began)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show(what, values, judged=False):
    middle, late = percentile(values, 0.5), percentile(values, 0.99)
    line("P12", "unix, one at a time, classic", what,
         f"median {middle:.1f} ms, 99th percentile {late:.1f} ms, most {max(values):.1f} ms",
         verdict(late <= 50, "99th percentile <= 50 ms") if judged else "")


def p12(bench):
    """100 kB published and fetched by other sessions while one is handed 16 x 4 GiB."""
    if not bench.bellhop_binary:
        return
    store, bellhop = bellhop_with_store(bench)
    socket = bellhop.unix.removeprefix("unix:")
    count = 40 * bench.pairs
    direct = amqp.connect(f"127.0.0.1:{bench.broker.port}", heartbeat=0).channel()
    small, large, unheard = (direct.declare(fresh_queue()) for _ in range(3))
    for _ in range(2 * count):
        direct.publish("", small, CLAIM + put_object(store, SMALL_BYTES).encode())
    keys = [put_object(store, LARGE_BYTES) for _ in range(LARGE_COUNT)]
    publisher = amqp.connect(socket, heartbeat=0).channel()
    publisher.call("confirm.select")
    fetcher = amqp.connect(socket, heartbeat=0).channel()

    def both(first_tag):
        published, fetched = [], []
        for tag in range(first_tag, first_tag + count):
            published.append(publish_ms(publisher, tag, unheard))
            fetched.append(fetch_ms(fetcher, small))
        return published, fetched

    published, fetched = both(1)
    show("100 kB published and confirmed, alone", published)
    show("100 kB fetched, alone", fetched)
    for key in keys:
        direct.publish("", large, CLAIM + key.encode())
    # A process of its own: it takes some GiB a second.
    with subprocess.Popen([sys.executable, "-B", HOG, socket, large, str(LARGE_COUNT), str(LARGE_BYTES)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as hog:
        if hog.stdout.readline() != "consuming\n":
            raise RuntimeError("the session with the large bodies could not begin")
        published, fetched = both(count + 1)
        hog.stdin.close()
        taken_gib = int(hog.stdout.readline()) / GIB
    show(f"published beside {LARGE_COUNT} x {LARGE_BYTES // GIB} GiB ({taken_gib:.1f} GiB taken)", published, judged=True)
    show(f"fetched beside {LARGE_COUNT} x {LARGE_BYTES // GIB} GiB", fetched, judged=True)
    for queue in (small, large, unheard):
        direct.call("queue.delete", queue=queue)
    bellhop.stop()
