"""A bellhop whose S3 store is behind a proxy (s3_proxy.py), with a queue and a publisher: what tests of a service's faults begin with."""

from .claims import Side
from .publishing import publisher


class S3Setting:
    """`keys` are the store's, beside those that make it reach `s3` through `proxy`."""

    def __init__(self, bellhop, broker, name, s3, proxy, **keys):
        self.prefix = name("objects") + "/"
        self.s3, self.proxy = s3, proxy
        self.daemon = bellhop({"stores": {"archive": s3.store(endpoint=proxy.endpoint, prefix=self.prefix, probe=False, **keys)}})
        self.side = Side(broker, name())
        self.up = publisher(self.daemon)
        self.tag = 0

    def send(self, body):
        self.tag += 1
        self.up.channel.publish("", self.side.queue, body)

    def refused(self):
        """What the log says of the publish that was nacked."""
        return self.daemon.wait_log(r"publish refused .*code=541 reason=\"(.*)\"").group(1)
