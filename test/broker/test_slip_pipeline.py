"""Pipelines that bellhop declares, and one worked through end to end by three workers with an ordinary client library."""

import hashlib
import threading

import pika
import pytest

from support import amqp, slips
from support.proxy import Proxy
from support.rabbitmq import free_port

STEPS = ["validate", "reserve", "dispatch"]
LOGIN = {"username": "guest", "password": "guest"}  # bellhop declares with credentials of its own


@pytest.fixture
def pipeline(broker, name):
    """A pipeline's name; what was declared for it is deleted at the end."""
    pipeline = name("fulfilment")
    yield pipeline
    channel = broker.channel()
    for step in STEPS:
        for suffix in ("", ".dlq", ".parked"):
            channel.call("queue.delete", queue=f"{pipeline}.{step}{suffix}")
    channel.call("exchange.delete", exchange=pipeline)


def config(pipeline, **more):
    return {"broker": LOGIN, "pipelines": {pipeline: {"steps": STEPS, "declare": True}},
            "routes": [{"name": "orders", "match": {"exchange": "orders"}, "slip": {"pipeline": pipeline}}], **more}


def source_arguments(queue):
    return {"x-queue-type": "quorum", "x-dead-letter-exchange": "acemq.dlx", "x-dead-letter-routing-key": queue + ".dlq"}


def test_a_pipeline_is_declared_as_the_manual_says(bellhop, broker, pipeline):
    daemon = bellhop(config(pipeline))
    daemon.wait_log(r"pipelines declared .*items=24 refused=0")
    channel = broker.channel()
    # A declaration that differs in anything would be refused.
    for exchange in (pipeline, "acemq.dlx", "acemq.retry"):
        channel.call("exchange.declare", exchange=exchange, type="direct", durable=True)
    for step in STEPS:
        queue = f"{pipeline}.{step}"
        channel.call("queue.declare", queue=queue, passive=True)
        channel.call("queue.declare", queue=queue, durable=True, arguments=source_arguments(queue))
        channel.call("queue.declare", queue=queue + ".dlq", durable=True)
        channel.call("queue.declare", queue=queue + ".parked", durable=True)
        for exchange, key, target in ((pipeline, step, queue), ("acemq.retry", queue, queue), ("acemq.dlx", queue + ".dlq", queue + ".dlq"),
                                      ("acemq.dlx", queue + ".parked", queue + ".parked")):
            channel.publish(exchange, key, key.encode())
            assert channel.get_wait(target).body == key.encode()
    channel.publish(pipeline, "reserve", b"rejected")
    rejected = channel.get_wait(f"{pipeline}.reserve", no_ack=False)
    channel.send("basic.reject", delivery_tag=rejected.delivery_tag, requeue=False)
    assert channel.get_wait(f"{pipeline}.reserve.dlq").body == b"rejected"


def test_declaring_again_changes_nothing(bellhop, broker, pipeline):
    daemon = bellhop(config(pipeline))
    daemon.wait_log(r"pipelines declared .*refused=0")
    channel = broker.channel()
    channel.call("confirm.select")
    channel.publish(pipeline, "validate", b"waits", delivery_mode=2)
    channel.expect("basic.ack")
    begin = len(daemon.log)
    daemon.restart()
    daemon.wait_log(r"pipelines declared .*items=24 refused=0", begin=begin)
    assert channel.get_wait(f"{pipeline}.validate").body == b"waits"


def test_a_broker_that_comes_later_gets_the_declarations_then(rabbit, bellhop, broker, pipeline):
    with Proxy(rabbit.upstream) as proxy:
        proxy.refuse()
        daemon = bellhop({**config(pipeline), "broker": {"url": proxy.url, **LOGIN}})
        daemon.wait_log(r"(?i)warn.*declar")
        assert "pipelines declared" not in daemon.log
        proxy.accept()
        daemon.wait_log(r"pipelines declared .*items=24 refused=0")
        broker.channel().call("queue.declare", queue=f"{pipeline}.dispatch", passive=True)


# --- end to end

class Worker(threading.Thread):
    """Consumes its step with pika, and publishes to bellhop.next with the headers that it received. The last step's results are kept."""

    def __init__(self, port, pipeline, step, count):
        super().__init__(daemon=True)
        self.port, self.queue, self.step, self.count = port, f"{pipeline}.{step}", step, count
        self.seen, self.error = [], None

    def run(self):
        try:
            self.work()
        except Exception as error:  # shown by the test
            self.error = error

    def work(self):
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))
        channel = connection.channel()
        channel.basic_qos(prefetch_count=4)
        channel.confirm_delivery()
        for method, properties, body in channel.consume(self.queue, inactivity_timeout=60 * amqp.TIME_FACTOR):
            assert method is not None, f"{self.step}: nothing came"
            self.seen.append((properties, body))
            headers = {**properties.headers, "bellhop-ack": method.delivery_tag, self.step: "done"}
            # Returns once bellhop has confirmed the hop and acknowledged the input.
            channel.basic_publish("bellhop.next", "", body + b"|" + self.step.encode(),
                                  pika.BasicProperties(headers=headers, message_id=properties.message_id, type=properties.type))
            if len(self.seen) == self.count:
                break
        connection.close()


def test_three_workers_pass_small_and_large_orders_down_a_line(bellhop, broker, pipeline):
    port = free_port()
    daemon = bellhop(config(pipeline, listen=[{"unix": "{socket}"}, {"tcp": f"127.0.0.1:{port}", "anonymous": True}]))
    daemon.wait_log("pipelines declared")
    bodies = [hashlib.sha256(b"%d" % n).digest() * (1 if n % 3 else 20000 + n) for n in range(15)]
    workers = [Worker(port, pipeline, step, len(bodies)) for step in STEPS]
    for worker in workers:
        worker.start()
    shop = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()
    shop.confirm_delivery()
    for n, body in enumerate(bodies):
        shop.basic_publish("orders", "order.new", body, pika.BasicProperties(message_id=f"order-{n}", type="Order", headers={"n": n}))
    shop.connection.close()
    for worker in workers:
        worker.join(90 * amqp.TIME_FACTOR)
        assert worker.error is None and not worker.is_alive(), f"{worker.step}: {worker.error}"

    last = {properties.headers["n"]: (properties, body) for properties, body in workers[2].seen}
    first = {properties.headers["n"]: properties for properties, _ in workers[0].seen}
    assert len(last) == len(workers[2].seen) == len(bodies)
    for n, body in enumerate(bodies):
        properties, result = last[n]
        assert result == body + b"|validate|reserve"
        assert (properties.message_id, properties.type, properties.delivery_mode) == (f"order-{n}", "Order", 2)
        run = first[n].headers[slips.RUN]
        assert properties.headers == {"n": n, "validate": "done", "reserve": "done", slips.ROUTE: ",".join(STEPS), slips.POSITION: 2, slips.RUN: run}
    assert len({properties.headers[slips.RUN] for properties, _ in last.values()}) == len(bodies)
    channel = broker.channel()
    for step in STEPS:
        assert channel.call("queue.declare", queue=f"{pipeline}.{step}", passive=True).message_count == 0
    # Of a large order an object each for the start and two hops; of its end none.
    slips.wait_until(lambda: len(daemon.objects()) == 3 * 5, what="the objects")
