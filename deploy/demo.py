"""The journey of two messages through bellhop, each stage shown and checked. deploy/demo does the set-up and runs this.

A shop publishes a small order and a large one (with a scan of 2 MiB) to its local socket. It knows nothing of claims or routing
slips, and neither does the worker that validates orders: it answers to the exchange `bellhop.next`, that is all.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "deploy")]

import pika  # noqa: E402
import pika_unix  # noqa: E402
from support.rabbitmq import Node, wait_until  # noqa: E402

CONFIG = """\
listen:
  - unix: {dir}/bellhop.sock
broker:
  url: {broker}
  username: guest
  password: guest
stores:
  claims: {{ {store} }}
claim_check: {{ store: claims, threshold: 64KiB }}
pipelines:
  fulfilment: {{ steps: [validate, dispatch], declare: true }}
routes:
  - name: orders
    match: {{ exchange: orders, routing_key: "order.#" }}
    slip: {{ pipeline: fulfilment }}
"""

SMALL = b'{"order": 1, "item": "umbrella"}'
# 2 MiB that look like a scan and are the same in every run.
LARGE = hashlib.shake_256(b"scan of order 2").digest(2 << 20)

colour = sys.stdout.isatty()


def bold(text):
    return f"\033[1m{text}\033[0m" if colour else text


def stage(number, text):
    print(f"\n{bold(f'{number}. {text}')}", flush=True)


def line(label, value):
    print(f"   {label:<26} {value}", flush=True)


def check(what, is_true):
    """Every statement that the demo makes is checked; the first false one ends it."""
    print(f"   {'ok  ' if is_true else 'NOT '}{what}", flush=True)
    if not is_true:
        raise SystemExit(f"\nThe demo failed: {what}: not so.")


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def show(data):
    return repr(data) if len(data) < 80 else f"{len(data)} bytes, sha256 {digest(data)}..."


def take(channel, queue, count):
    """Takes `count` messages as a worker does: consume, acknowledge later."""
    taken = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=20):
        if method is None:
            raise SystemExit(f"\nThe demo failed: no delivery from {queue} within 20 s.")
        taken.append((method, properties, body))
        if len(taken) == count:
            break
    return taken


def peek(node, queue, count):
    """What RabbitMQ itself holds: read on a direct connection, and left in the queue."""
    with pika.BlockingConnection(pika.URLParameters(node.url)) as direct:
        channel = direct.channel()
        taken = []
        for _ in range(count):
            taken.append(wait_until(lambda: (lambda got: got if got[0] else None)(channel.basic_get(queue)),
                                    what=f"a message in {queue}"))
        channel.basic_nack(taken[-1][0].delivery_tag, multiple=True, requeue=True)
    return taken


class FolderStore:
    """A filesystem store, and a look into it past bellhop."""

    def __init__(self, folder):
        self.path = folder / "claims"
        self.path.mkdir()
        self.config = f"type: filesystem, path: {self.path}"
        self.shown = str(self.path)
        self.env = {}

    def objects(self):
        return {p.name: p.read_bytes() for p in self.path.iterdir() if not p.name.startswith(".")}

    def stop(self):
        pass


class BucketStore:
    """A bucket of a real S3 server, https with a private CA, and a look into it past bellhop."""

    PREFIX = "orders/"

    def __init__(self, folder):
        from support.s3 import S3rver, certificates
        (folder / "s3").mkdir()
        self.server = S3rver(folder / "s3", tls=certificates(folder / "s3" / "tls"))
        self.server.put(self.PREFIX + ".keep", b"")  # s3rver removes a prefix with its last object, and the probe's is the first
        # The keys come from the environment.
        self.config = f"type: s3, endpoint: '{self.server.endpoint}', bucket: {self.server.bucket}, prefix: {self.PREFIX}"
        self.shown = f"bucket '{self.server.bucket}' at {self.server.endpoint}, prefix '{self.PREFIX}'"
        self.env = {"AWS_ACCESS_KEY_ID": self.server.access_key, "AWS_SECRET_ACCESS_KEY": self.server.secret_key,
                    "AWS_CA_BUNDLE": str(self.server.ca)}

    def objects(self):
        return {name.removeprefix(self.PREFIX): self.server.get(name) for name in self.server.names(self.PREFIX)
                if not name.startswith(self.PREFIX + ".")}

    def stop(self):
        self.server.stop()


def journey(node, daemon_socket, store):
    stage(3, "The shop publishes two orders to its local socket (pika, unchanged, publisher confirms)")
    shop = pika_unix.connect(daemon_socket)
    channel = shop.channel()
    channel.confirm_delivery()
    for number, body in ((1, SMALL), (2, LARGE)):
        channel.basic_publish("orders", "order.new", body,
                              pika.BasicProperties(content_type="application/octet-stream", headers={"order": number}))
        line(f"order {number}", f"{show(body)} -> exchange 'orders', key 'order.new': confirmed")
    shop.close()

    stage(4, "What RabbitMQ holds (read on a direct connection, queue fulfilment.validate)")
    (m1, p1, b1), (m2, p2, b2) = peek(node, "fulfilment.validate", 2)
    for number, m, p, b in ((1, m1, p1, b1), (2, m2, p2, b2)):
        line(f"order {number}, routed to", f"exchange '{m.exchange}', key '{m.routing_key}'")
        line("  body", f"{len(b)} bytes: {b!r}")
        line("  delivery mode, id", f"{p.delivery_mode}, {p.message_id}")
        for k, v in sorted(p.headers.items()):
            line(f"  {k}", v)
    key = b2[3:].decode()
    check("the small order travels as it is", b1 == SMALL)
    check("the large one is a claim: AC 01 01 and the key of the object", b2[:3] == b"\xac\x01\x01")
    check("both carry a routing slip that stands at its first step",
          all(p.headers["x-acemq-route"] == "validate,dispatch" and p.headers["x-acemq-route-position"] == 0 for p in (p1, p2)))
    check("both are persistent and have a message id", all(p.delivery_mode == 2 and p.message_id for p in (p1, p2)))

    stage(5, "What the store holds")
    line("it is", store.shown)
    objects = store.objects()
    for name, contents in objects.items():
        line("object", name)
        line("  contents", f"{len(contents)} bytes, sha256 {digest(contents)}...")
    check("exactly one object, named by the key, with the original bytes", objects == {key: LARGE})

    stage(6, "A worker on the socket consumes fulfilment.validate")
    worker = pika_unix.connect(daemon_socket)
    channel = worker.channel()
    channel.confirm_delivery()
    deliveries = take(channel, "fulfilment.validate", 2)
    for method, properties, body in deliveries:
        line(f"order {properties.headers['order']}", f"{show(body)}")
    by_number = {p.headers["order"]: (m, p, b) for m, p, b in deliveries}
    check("it got the original bytes of both", by_number[1][2] == SMALL and by_number[2][2] == LARGE)
    check("bellhop's own claim headers are gone", not any(k.startswith("bellhop-") for k in by_number[2][1].headers))

    stage(7, "It publishes its results to 'bellhop.next': the slip says where they go, and the input is acknowledged with it")
    for method, properties, body in deliveries:
        headers = dict(properties.headers)
        headers["validated"] = True
        headers["bellhop-ack"] = method.delivery_tag
        channel.basic_publish("bellhop.next", "", body, pika.BasicProperties(headers=headers, message_id=properties.message_id))
        line(f"order {headers['order']}", "published with the headers it came with: confirmed")
    worker.close()
    for m, p, b in peek(node, "fulfilment.dispatch", 2):
        line(f"order {p.headers['order']} in RabbitMQ", f"queue fulfilment.dispatch, {len(b)} bytes")
        for k, v in sorted(p.headers.items()):
            line(f"  {k}", v)
        check(f"order {p.headers['order']} stands at step 1 of the same run",
              p.headers["x-acemq-route-position"] == 1 and
              p.headers["x-acemq-route-id"] == by_number[p.headers["order"]][1].headers["x-acemq-route-id"])
    check("fulfilment.validate is empty: both inputs were acknowledged",
          wait_until(lambda: node.queues().get("fulfilment.validate") == 0, what="an empty queue"))

    stage(8, "The last step's worker consumes fulfilment.dispatch")
    worker = pika_unix.connect(daemon_socket)
    channel = worker.channel()
    for method, properties, body in take(channel, "fulfilment.dispatch", 2):
        line(f"order {properties.headers['order']}", show(body))
        check("the original bytes, two hops later", body == (SMALL if properties.headers["order"] == 1 else LARGE))
        channel.basic_ack(method.delivery_tag)
    worker.close()
    check("all queues are empty", wait_until(lambda: not any(node.queues().values()), what="empty queues"))


def usage(node, socket_path, store, config):
    print(f"""
{bold('Everything is still running.')} Ctrl-C or SIGTERM ends it and removes it.

   the socket      {socket_path}   (AMQP 0-9-1; any user and password)
   RabbitMQ        {node.url}   (guest, guest)
   the store       {store.shown}
   configuration   {config}

   Publish to exchange 'orders', key 'order.new', on the socket; in Python for example:

       cd {ROOT}/deploy && /usr/bin/python3
       >>> import pika_unix; c = pika_unix.connect("{socket_path}"); ch = c.channel()
       >>> ch.basic_publish("orders", "order.new", b"x" * 1000000)
       >>> ch.basic_get("fulfilment.validate", auto_ack=True)
""", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="deploy/demo", description="The main job of bellhop, shown and checked.")
    parser.add_argument("--bellhop", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help="leave everything running, and say how to use it")
    parser.add_argument("--s3", action="store_true", help="the store is a bucket of an S3 server on this host, not a folder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    folder = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-demo-"))
    socket_path, log_path = folder / "bellhop.sock", folder / "bellhop.log"
    node = daemon = store = None
    try:
        stage(1, "A private RabbitMQ")
        node = Node.start(folder / "rabbitmq")
        line("listening at", node.address)
        store = BucketStore(folder) if options.s3 else FolderStore(folder)
        if options.s3:
            line("and an S3 server at", store.server.endpoint)

        stage(2, "bellhop, with this configuration")
        config = folder / "bellhop.yaml"
        config.write_text(CONFIG.format(dir=folder, broker=node.url, store=store.config))
        print("\n".join("   | " + text for text in config.read_text().splitlines()))
        with open(log_path, "wb") as log:
            daemon = subprocess.Popen([options.bellhop, "run", "--config", str(config)], stdin=subprocess.DEVNULL, stderr=log, env={**os.environ, **store.env})
        wait_until(lambda: b"listening" in log_path.read_bytes() or daemon.poll() is not None, what="bellhop's start")
        check("bellhop listens", daemon.poll() is None)
        # The pipeline's exchange and queues are declared once a broker is reached.
        wait_until(lambda: "fulfilment.dispatch" in node.queues(), what="the declared pipeline")
        check("it has declared the pipeline's queues fulfilment.validate and fulfilment.dispatch", True)

        journey(node, str(socket_path), store)
        print(f"\n{bold('All of it is as it should be.')}", flush=True)
        if options.keep:
            usage(node, socket_path, store, config)
            try:
                threading.Event().wait()
            except (KeyboardInterrupt, SystemExit):  # Ctrl-C, SIGTERM
                print()
    except BaseException as error:
        if log_path.exists() and not isinstance(error, KeyboardInterrupt):
            print(f"\nbellhop's log:\n{log_path.read_text(errors='replace')[-5000:]}", file=sys.stderr)
        raise
    finally:
        if daemon is not None and daemon.poll() is None:
            daemon.terminate()
            try:
                daemon.wait(40)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if store is not None:
            store.stop()
        if node is not None:
            node.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if daemon.returncode != 0:
        raise SystemExit(f"bellhop did not end well: exit code {daemon.returncode}")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
