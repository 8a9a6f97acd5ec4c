"""One function for each id of the targets: it measures, prints its lines, and says with each whether its target is reached."""

import os
import shutil
import subprocess
import threading
from statistics import median

from . import processes
from .client import fresh_queue
from .crowded_out import p12
from .instructions import instructions
from .report import line, number, ratio_line, verdict
from .services import Bellhop, HAProxy, bellhop_with_store
from .slow_s3 import SlowS3

QUEUE_TYPES = ("classic", "quorum")
# Between half a second and a second of publishing each.
PUBLISH_COUNT = {"classic": 22000, "quorum": 40000}
MIB = 1 << 20


class Bench:
    """What a run has at hand: the broker, the proxies (started when first needed) and the client. `bellhop_binary` may be None: then only
    the direct broker and HAProxy are measured."""

    def __init__(self, folder, broker, client, bellhop_binary, pairs):
        self.folder, self.broker, self.client = folder, broker, client
        self.bellhop_binary, self.pairs = bellhop_binary, pairs
        self.haproxy = HAProxy(folder, broker)
        self._bellhops = {}
        self.failed = False  # a count missed its target

    def bellhop(self, stamps):
        if stamps not in self._bellhops:
            self._bellhops[stamps] = Bellhop(self.folder, self.broker, self.bellhop_binary, stamps)
        return self._bellhops[stamps]

    def interleaved(self, measures):
        """Runs each measure once to warm up, then `pairs` times in turn, every other time in reverse, so that none is always the one
        behind a certain other. Returns the results by name."""
        results = {name: [] for name in measures}
        for measure in measures.values():
            measure()
        for turn in range(self.pairs):
            for name in list(measures) if turn % 2 == 0 else reversed(list(measures)):
                results[name].append(measures[name]())
        return results

    def stamped_properties(self, bellhop, **options):
        """The property bytes that a message has in its queue after this bellhop stamped it."""
        queue = fresh_queue()
        self.client.publish(bellhop.unix, queue=queue, count=1, keep_queue=True, **options)
        return self.client.run("peek", self.broker.endpoint, queue=queue)["properties"]


# Publishing to a queue that is bound where the pipeline's first step goes.
SLIP = {"bind": "bench-pipeline:one", "exchange": "bench-start", "delivery_mode": 0}
SLIP_DIRECT = {"bind": "bench-pipeline:one", "exchange": "bench-pipeline", "routing_key": "one"}


def p1(bench):
    """Throughput of publishing, 1 KiB persistent, confirms, window 1000, one connection."""
    for queue_type in QUEUE_TYPES:
        p1_queue_type(bench, queue_type)


def p1_queue_type(bench, queue_type):
    def publish(endpoint, **options):
        return lambda: bench.client.publish(endpoint, count=PUBLISH_COUNT[queue_type], window=1000,
                                            queue_type=queue_type, **options)["messages_per_s"]

    direct = bench.broker.endpoint
    measures = {"direct": publish(direct), "haproxy": publish(bench.haproxy.tcp)}
    if bench.bellhop_binary:
        stamp, slip = bench.bellhop("stamp"), bench.bellhop("slip")
        measures |= {
            "forward": publish(bench.bellhop("forward").unix),
            "stamp": publish(stamp.unix, delivery_mode=0),
            "direct as stamp": publish(direct, properties=bench.stamped_properties(stamp, delivery_mode=0)),
            "slip": publish(slip.unix, **SLIP),
            "direct as slip": publish(direct, properties=bench.stamped_properties(slip, **SLIP), **SLIP_DIRECT),
        }
    rates = bench.interleaved(measures)

    def show(transport, name, against, text, at_least=None):
        ratio_line("P1", f"{transport}, batching, {queue_type}", text, rates[name], rates[against], "/s", at_least)

    show("tcp", "haproxy", "direct", "HAProxy / direct")
    if bench.bellhop_binary:
        show("unix", "forward", "direct", "bellhop forwarding / direct", 0.95)
        show("unix", "stamp", "direct as stamp", "bellhop stamping id, mode / direct, same bytes", 0.95)
        show("unix", "slip", "direct as slip", "bellhop stamping slip / direct, same bytes", 0.95)


def p2(bench):
    """Throughput of consuming, 1 KiB, prefetch 500, every message acked."""
    for queue_type in QUEUE_TYPES:
        p2_queue_type(bench, queue_type)


def p2_queue_type(bench, queue_type):
    count = 30000

    def consume(endpoint):
        def measure():
            queue = fresh_queue()
            bench.client.publish(bench.broker.endpoint, queue=queue, queue_type=queue_type, count=count, keep_queue=True)
            return bench.client.run("consume", endpoint, queue=queue, queue_type=queue_type, count=count,
                                    prefetch=500)["messages_per_s"]

        return measure

    measures = {"direct": consume(bench.broker.endpoint), "haproxy": consume(bench.haproxy.tcp)}
    if bench.bellhop_binary:
        bellhop = bench.bellhop("forward")
        measures |= {"unix": consume(bellhop.unix), "tcp": consume(bellhop.tcp)}
    rates = bench.interleaved(measures)

    def show(transport, name, text, **target):
        return ratio_line("P2", f"{transport}, batching, {queue_type}", text, rates[name], rates["direct"], "/s", **target)

    haproxy = show("tcp", "haproxy", "HAProxy / direct")
    if bench.bellhop_binary:
        show("unix", "unix", "bellhop / direct", at_least=0.96)
        show("tcp", "tcp", "bellhop / direct", at_least=haproxy, named=" (HAProxy's)")


def p3(bench):
    """Latency from publish to confirm, one at a time, 1 KiB persistent: what a proxy adds."""
    names = {"direct": bench.broker.endpoint, "haproxy tcp": bench.haproxy.tcp, "haproxy unix": bench.haproxy.unix}
    if bench.bellhop_binary:
        bellhop = bench.bellhop("forward")
        names |= {"bellhop tcp": bellhop.tcp, "bellhop unix": bellhop.unix}
    names |= {"echo tcp": "echo-tcp", "echo unix": "echo-unix"}

    rounds = [bench.client.run("latency", list(names.values()), count=500, queue=fresh_queue())
              for _ in range(bench.pairs)]
    medians = {name: [each[at]["median_us"] for each in rounds] for at, name in enumerate(names)}
    p99s = {name: median(each[at]["p99_us"] for each in rounds) for at, name in enumerate(names)}
    setting = "{}, one at a time, classic"
    line("P3", setting.format("tcp"), "direct, publish to confirm",
         f"median {median(medians['direct']):.0f} us, 99th percentile {p99s['direct']:.0f} us")
    for transport in ("tcp", "unix"):
        line("P3", f"{transport}, one at a time", "bare socket echo, round trip",
             f"median {median(medians['echo ' + transport]):.1f} us, "
             f"99th percentile {p99s['echo ' + transport]:.0f} us")

    added = {name: [ours - base for ours, base in zip(values, medians["direct"])] for name, values in medians.items()}
    for transport in ("tcp", "unix"):
        theirs = median(added["haproxy " + transport])
        for proxy in ("haproxy", "bellhop") if bench.bellhop_binary else ("haproxy",):
            name = f"{proxy} {transport}"
            ours = median(added[name])
            figures = (f"median +{ours:.1f} us ({min(added[name]):.1f} to {max(added[name]):.1f}), "
                       f"99th percentile {p99s[name]:.0f} us")
            judged = verdict(ours <= theirs, f"<= {theirs:.1f} us (HAProxy's)") if proxy == "bellhop" else ""
            line("P3", setting.format(transport), f"added by {proxy.replace('haproxy', 'HAProxy')}", figures, judged)


def p4(bench):
    """CPU time that a proxy takes for one 1 KiB publish and its confirm, window 256, over the Unix socket."""
    for batching in ("on", "off"):
        for queue_type in QUEUE_TYPES:
            p4_batching(bench, batching, queue_type)


def p4_batching(bench, batching, queue_type):
    count = PUBLISH_COUNT["classic"]

    def cpu(proxy, **options):
        return lambda: bench.client.publish(proxy.unix, count=count, window=256, batching=batching, queue_type=queue_type,
                                            cpu_of=proxy.pid, **options)["cpu_us_per_message"]

    measures = {"haproxy": cpu(bench.haproxy)}
    if bench.bellhop_binary:
        measures |= {"forward": cpu(bench.bellhop("forward")), "slip": cpu(bench.bellhop("slip"), **SLIP)}
    used = bench.interleaved(measures)
    setting = f"unix, {'batching' if batching == 'on' else 'one write each'}, {queue_type}"
    line("P4", setting, "HAProxy, CPU a message",
         f"{number(median(used['haproxy']))} us ({min(used['haproxy']):.2f} to {max(used['haproxy']):.2f})")
    if bench.bellhop_binary:
        ratio_line("P4", setting, "bellhop forwarding / HAProxy", used["forward"], used["haproxy"], "us", at_most=0.9)
        ratio_line("P4", setting, "bellhop stamping slip, id, mode / HAProxy", used["slip"], used["haproxy"], "us",
                   at_most=1.2)


def p5(bench):
    """10 MiB bodies, window 10, filesystem store with fsync, against the same bodies direct."""
    if not bench.bellhop_binary:
        return
    store, bellhop = bellhop_with_store(bench)
    with open(os.path.join(bench.broker.folder, "pid")) as file:
        broker_pid = int(file.read())

    def on_disk_mib():
        return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(bench.broker.folder)
                   for name in names if os.path.exists(os.path.join(folder, name))) / MIB

    big = {"count": 30, "size": 10 * MIB}

    def both_ways(endpoint):
        def measure():
            queue = fresh_queue()
            grown, disk_mib = Resident(broker_pid), on_disk_mib()
            published = bench.client.publish(endpoint, queue=queue, window=10, keep_queue=True, **big)["messages_per_s"]
            grown_mib, disk_mib = grown.stop_mib(), on_disk_mib() - disk_mib
            consumed = bench.client.run("consume", endpoint, queue=queue, prefetch=10, **big)["messages_per_s"]
            empty(store)
            return published, consumed, grown_mib, disk_mib

        return measure

    # Before the first direct body: the broker's clearing up after those would count as bellhop's.
    _, _, ours_mib, ours_disk_mib = both_ways(bellhop.unix)()
    results = bench.interleaved({"direct": both_ways(bench.broker.endpoint), "bellhop": both_ways(bellhop.unix)})
    for at, what, least in ((0, "publish", 3.0), (1, "consume", 1.0)):
        ours, theirs = ([each[at] for each in results[name]] for name in ("bellhop", "direct"))
        ratio_line("P5", "unix, window 10, classic", f"{what} 10 MiB, bellhop / direct", ours, theirs, "/s", at_least=least)
    theirs_mib = max(each[2] for each in results["direct"])
    line("P5", "unix, window 10, classic", "the broker's memory grew, bellhop against direct",
         f"{ours_mib:.0f} MiB against {theirs_mib:.0f} MiB", verdict(ours_mib <= 10, "<= 10 MiB"))
    line("P5", "unix, window 10, classic", "the broker's disk grew, bellhop against direct",
         f"{ours_disk_mib:.1f} MiB against {max(each[3] for each in results['direct']):.0f} MiB")
    bellhop.stop()
    shutil.rmtree(store)


def p6(bench):
    """One 2 GiB message, published and fetched, every byte compared: the most memory that bellhop ever had resident."""
    if not bench.bellhop_binary:
        return
    store, bellhop = bellhop_with_store(bench)
    moved = bench.client.run("huge", bellhop.unix, queue=fresh_queue(), size=2048 * MIB)
    peak_mib = processes.resident_kib(bellhop.pid, "VmHWM") / 1024
    line("P6", "unix, one message, classic", "2 GiB published, fetched, compared",
         f"peak {peak_mib:.1f} MiB, {moved['publish_mib_per_s']:.0f} MiB/s in, {moved['fetch_mib_per_s']:.0f} MiB/s out",
         verdict(peak_mib <= 64, "<= 64 MiB"))
    bellhop.stop()
    shutil.rmtree(store)


def p8(bench):
    """200 sessions of 5 channels, each publishing and consuming its own messages: nothing lost or reordered, memory bounded."""
    if not bench.bellhop_binary:
        return
    sessions, channels, each = 200, 5, 100
    bellhop = Bellhop(bench.folder, bench.broker, bench.bellhop_binary, "stamp", "bellhop-crowd")
    resident = Resident(bellhop.pid)
    rate = bench.client.run("crowd", bellhop.unix, queue=fresh_queue(), sessions=sessions, channels=channels, count=each,
                            window=20, prefetch=20)["messages_per_s"]
    peak_mib, most_mib = resident.peak_mib(), 64 + sessions / 4
    line("P8", "unix, batching, classic", f"{sessions} sessions x {channels} channels x {each} messages",
         f"all confirmed and received in order, {number(rate)} /s, peak {peak_mib:.1f} MiB",
         verdict(peak_mib <= most_mib, f"<= {most_mib:.0f} MiB"))
    bellhop.stop()


def p9(bench):
    """100 bodies of 1 MiB on one channel to an S3 store that answers after 50 ms: all at once against one after the other."""
    if not bench.bellhop_binary:
        return
    slow = SlowS3(0.05)
    extra = (f"stores:\n  claims: {{ type: s3, endpoint: '{slow.endpoint}', bucket: bench, access_key: k, secret_key: s, probe: false }}\n"
             "claim_check: { store: claims }\n")
    bellhop = Bellhop(bench.folder, bench.broker, bench.bellhop_binary, "stamp", "bellhop-s3", extra)

    def publish(window):
        return lambda: 100 / bench.client.publish(bellhop.unix, count=100, size=MIB, window=window)["messages_per_s"]

    times = bench.interleaved({"all": publish(100), "one": publish(1)})
    ratio_line("P9", "unix, one channel, classic", "100 x 1 MiB to S3 with 50 ms, at once / one by one", times["all"], times["one"], "s",
               at_most=0.125)
    bellhop.stop()
    slow.stop()


def churn(bench):
    """Connect, open a channel, publish one confirmed message, close, one after the other: how many a second, and the CPU time of the proxy."""
    def measure(endpoint, pid=0):
        return lambda: bench.client.run("churn", endpoint, queue=fresh_queue(), count=300, delivery_mode=1, cpu_of=pid)

    measures = {"direct": measure(bench.broker.endpoint), "haproxy": measure(bench.haproxy.unix, bench.haproxy.pid)}
    if bench.bellhop_binary:
        bellhop = bench.bellhop("forward")
        measures["bellhop"] = measure(bellhop.unix, bellhop.pid)
    results = bench.interleaved(measures)
    rates = {name: [each["connections_per_s"] for each in values] for name, values in results.items()}
    for name, title in (("haproxy", "HAProxy"), ("bellhop", "bellhop forwarding")):
        if name not in rates:
            continue
        ratio_line("churn", "unix, one at a time, classic", f"{title} / direct", rates[name], rates["direct"], "/s")
        cpu = [each["cpu_us_per_connection"] for each in results[name]]
        line("churn", "unix, one at a time, classic", f"{title}, CPU a connection",
             f"{median(cpu):.0f} us ({min(cpu):.0f} to {max(cpu):.0f})")


def empty(store):
    """Removes all objects: they stay until retention, which would fill the disk here."""
    for name in os.listdir(store):
        if not name.startswith("."):
            os.unlink(os.path.join(store, name))


class Resident:
    """Watches how far a process's resident memory rises, from when it is made until it is stopped."""

    def __init__(self, pid):
        self.pid = pid
        self.first_kib = self.peak_kib = processes.resident_kib(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._ended.wait(0.02):
            self.peak_kib = max(self.peak_kib, processes.resident_kib(self.pid))

    def stop_mib(self):
        """MiB that it rose."""
        self._ended.set()
        self._thread.join()
        return (self.peak_kib - self.first_kib) / 1024

    def peak_mib(self):
        self.stop_mib()
        return self.peak_kib / 1024


def p7(bench):
    """Resident memory idle with one session and with P1 under way; time from start to the first accepted connection."""
    p7_proxy(bench, "HAProxy", lambda name: HAProxy(bench.folder, bench.broker, name), {})
    if bench.bellhop_binary:
        p7_proxy(bench, "bellhop, stamping slip",
                 lambda name: Bellhop(bench.folder, bench.broker, bench.bellhop_binary, "slip", name), SLIP, judged=True)


def p7_proxy(bench, title, make, options, judged=False):
    idle, busy, ready = [], [], []
    for turn in range(bench.pairs):
        proxy = make(f"p7-{turn}")
        ready.append(proxy.ready_ms)
        idle.append(idle_mib(bench, proxy))
        if turn == 0:  # a fresh process, or memory of an earlier run would count
            resident = Resident(proxy.pid)
            bench.client.publish(proxy.unix, count=PUBLISH_COUNT["quorum"], window=1000, queue_type="quorum", **options)
            busy.append(resident.peak_mib())
        proxy.stop()

    def show(setting, what, values, unit, most):
        line("P7", setting, f"{title}: {what}",
             f"{median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})",
             verdict(max(values) <= most, f"<= {most} {unit}") if judged else "")

    show("unix, one session", "resident, idle", idle, "MiB", 12)
    show("unix, batching, quorum", "resident, P1 under way", busy, "MiB", 16)
    show("unix", "start to first accept", ready, "ms", 100)


def idle_mib(bench, proxy):
    """Resident memory while one session is open and silent."""
    command = bench.client.command("hold", proxy.unix)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        if session.stdout.readline() != "open\n":
            raise RuntimeError("no session could be opened")
        resident = processes.resident_kib(proxy.pid) / 1024
        session.stdin.close()
    return resident


LINES = {"P1": p1, "P2": p2, "P3": p3, "P4": p4, "P5": p5, "P6": p6, "P7": p7, "P8": p8, "P9": p9, "P12": p12, "churn": churn,
         "I": lambda bench: instructions(bench, SLIP)}
DEFAULT = ("P1", "P2", "P3", "P4", "P7")
