"""A Celery application of one task, for client.py and for the worker that it starts: CLIENT_ADDRESS and CLIENT_PREFIX say where and under which names."""

import hashlib
import os

import unix_transport  # noqa: F401  (the scheme amqpunix)
from celery import Celery

address, prefix = os.environ["CLIENT_ADDRESS"], os.environ["CLIENT_PREFIX"]
over_unix = address.startswith("/")

app = Celery("tasks", broker="amqpunix://guest:guest@//" if over_unix else f"amqp://guest:guest@{address}//", backend="rpc://")
app.conf.update(
    broker_transport_options={"host": address} if over_unix else {},
    broker_connection_retry_on_startup=True,
    task_default_queue=f"{prefix}.celery",
    worker_prefetch_multiplier=1,
    result_expires=60,
)


@app.task
def digest(text):
    """Bytes and MD5 of a text."""
    return len(text), hashlib.md5(text.encode()).hexdigest()
