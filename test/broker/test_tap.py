"""`bellhop tap`: one line for each message that goes by, whoever reads it and however slowly, and never a payload."""

import http.client
import json
import signal
import subprocess

import pytest

from support import amqp, slips
from support.admin import Admin, open_socket
from support.bellhop import binary, run_cli
from support.claims import body_of
from support.rabbitmq import TIME_FACTOR, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "the-payload-of-a-customer"


class Tap:
    """A running `bellhop tap`, once bellhop has it."""

    def __init__(self, daemon, *options):
        before = daemon.log.count("tap begins")
        self.process = subprocess.Popen([binary(), "tap", "--socket", daemon.admin_socket, *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        wait_until(lambda: daemon.log.count("tap begins") > before, what="the tap's begin")

    def line(self):
        return self.process.stdout.readline()

    def lines(self, count):
        return [json.loads(self.line()) for _ in range(count)]

    def end(self):
        """(exit code, the rest of its output, its errors)."""
        out, err = self.process.communicate(timeout=20 * TIME_FACTOR)
        return self.process.returncode, out, err


@pytest.fixture
def tap():
    running = []

    def start(daemon, *options):
        running.append(Tap(daemon, *options))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.communicate()


def publisher(daemon):
    return slips.confirming(amqp.connect(daemon.socket, client_properties={**amqp.CLIENT_PROPERTIES, "connection_name": "shop one"}))


def has(line, **fields):
    assert {key: line.get(key) for key in fields} == fields, line
    return line


class RawTap:
    """A tap that reads only when it is told to. Its answer has begun."""

    def __init__(self, daemon):
        self.socket = open_socket(daemon.admin_socket)
        self.socket.sendall(b"GET /tap HTTP/1.1\r\nHost: bellhop\r\n\r\n")
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        assert self.answer.status == 200

    def read(self, wanted):
        """The lines until there are `wanted` messages, read or missed."""
        lines, seen = [], 0
        while seen < wanted:
            line = self.answer.readline()
            assert line, lines[-3:]
            if line.strip():
                lines.append(json.loads(line))
                seen += lines[-1].get("missed", 1)
        return lines

    def close(self):
        self.answer.close()
        self.socket.close()


def raw_or_none(daemon):
    try:
        return RawTap(daemon)
    except AssertionError:
        return None


# --- what it shows

def test_publishes_and_deliveries_with_and_without_claims(bellhop, name, tap):
    queue = name()
    daemon = bellhop({"routes": [{"name": "orders", "match": {"exchange": "", "routing_key": queue}}]})
    watched = tap(daemon, "--json")
    channel = publisher(daemon)
    channel.declare(queue, exclusive=True)
    channel.publish("", queue, SECRET.encode(), headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "note": SECRET}, correlation_id=SECRET)
    channel.publish("", queue, body_of(100_000))
    channel.publish("", queue, b"\xac\x01\x01looks like a claim")
    channel.confirms(3)
    key, = daemon.objects()
    plain, claimed, framed = watched.lines(3)
    common = {"direction": "publish", "session": 1, "client": "shop one", "exchange": "", "routing_key": queue, "route": "orders"}
    has(plain, **common, size=len(SECRET), store=None, key=None, slip_position=None, trace_id=TRACE)
    has(claimed, **common, size=100_000, store="claims", key=key, trace_id=None)
    has(framed, **common, size=21)
    channel.call("basic.consume", queue=queue, consumer_tag="worker 1")
    assert [len(channel.deliver().body) for _ in range(3)] == [len(SECRET), 100_000, 21]
    common = {"direction": "delivery", "session": 1, "client": "shop one", "exchange": "", "routing_key": queue, "queue": queue,
              "consumer_tag": "worker 1", "route": None}
    plain, claimed, framed = watched.lines(3)
    has(plain, **common, size=len(SECRET), key=None, trace_id=TRACE)
    has(claimed, **common, size=100_000, store="claims", key=key)
    has(framed, **common, size=21)
    assert SECRET not in json.dumps([plain, claimed, framed]) and plain["time"].endswith("Z")


def test_what_is_got_one_by_one_names_its_queue(bellhop, name, tap):
    daemon = bellhop()
    watched = tap(daemon, "--json")
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True)
    for size in (10, 100_000):
        channel.publish("", queue, b"x" * size)
        channel.get_wait(queue)
        has(watched.lines(1)[0], direction="publish", route=None)
        has(watched.lines(1)[0], direction="delivery", queue=queue, consumer_tag=None, size=size)


def test_slips_show_their_position(bellhop, broker, name, tap):
    line = slips.Line(broker.channel(), name("line"), "pick", "pack", "ship")
    daemon = bellhop({"pipelines": line.config(), "routes": [{"name": "start", "match": {"exchange": "orders"}, "slip": {"pipeline": line.name}}],
                      "slip": {"allowed_exchanges": [line.name]}})
    watched = tap(daemon, "--json")
    channel = publisher(daemon)
    channel.publish("orders", "new", b"1")
    channel.expect("basic.ack")
    has(watched.lines(1)[0], direction="publish", exchange="orders", routing_key="new", to_exchange=line.name, to_routing_key="pick",
        route="start", slip_position=0, slip_steps=3)
    channel.call("basic.consume", queue=line.queue("pick"))
    got = channel.deliver()
    has(watched.lines(1)[0], direction="delivery", queue=line.queue("pick"), slip_position=0, slip_steps=3)
    slips.hop(channel, got, b"x" * 100_000)
    channel.expect("basic.ack")
    has(watched.lines(1)[0], direction="publish", exchange="bellhop.next", to_exchange=line.name, to_routing_key="pack", slip_position=1,
        slip_steps=3, size=100_000, store="claims", key=daemon.objects()[0])
    channel.publish("bellhop.next", "", b"x", headers=slips.itinerary(*line.stops()))
    channel.expect("basic.ack")
    has(watched.lines(1)[0], to_exchange=line.name, to_routing_key="pack", slip_position=1, slip_steps=3)
    channel.publish("bellhop.next", "", b"x", headers=slips.declared(line.steps, 2))
    channel.expect("basic.ack")
    has(watched.lines(1)[0], exchange="bellhop.next", to_exchange=None)


def test_as_text_it_is_a_line_of_fields(bellhop, name, tap):
    daemon = bellhop()
    watched = tap(daemon)
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"hello")
    channel.expect("basic.ack")
    time, shown = watched.line().rstrip("\n").split(" ", 1)
    assert time.endswith("Z") and shown == f'publish session=1 client="shop one" exchange="" routing_key={queue} size=5'


# --- which, how many, how long

def test_a_route_shows_its_publishes_alone(bellhop, name, tap):
    one, other = name("one"), name("other")
    daemon = bellhop({"routes": [{"name": "r&d 1", "match": {"exchange": "", "routing_key": one}},
                                 {"name": "audit", "match": {"exchange": "", "routing_key": other}}]})
    watched = tap(daemon, "--json", "--route", "r&d 1", "--limit", "3")
    channel = publisher(daemon)
    for queue in (one, other):
        channel.declare(queue, exclusive=True)
    for n in range(6):
        channel.publish("", (other, one)[n % 2], b"x" * n)
    channel.confirms(6)
    code, out, err = watched.end()
    assert (code, err) == (0, "") and [json.loads(line)["size"] for line in out.splitlines()] == [1, 3, 5]
    told = run_cli("tap", "--socket", daemon.admin_socket, "--route", "orders")
    assert told.returncode == 1 and told.stderr == "bellhop: There is no route 'orders'. There is: r&d 1, audit.\n" and told.stdout == ""


def test_it_ends_when_bellhop_does_in_order_or_not(bellhop, tap):
    daemon = bellhop()
    watched = tap(daemon)
    daemon.sigterm()
    assert daemon.wait() == 0
    code, out, err = watched.end()
    assert (code, out) == (0, "") and "has ended" in err
    killed = bellhop()
    watched = tap(killed)
    killed.kill()
    code, out, err = watched.end()
    assert (code, out) == (1, "") and "broke off" in err


def test_it_ends_at_control_c(bellhop, tap):
    watched = tap(bellhop())
    watched.process.send_signal(signal.SIGINT)
    assert watched.end() == (0, "", "")


def test_it_says_what_is_in_the_way(bellhop, tmp_path):
    nobody = run_cli("tap", "--socket", tmp_path / "none")
    assert nobody.returncode == 1 and "bellhop does not run" in nobody.stderr
    assert run_cli("tap", "--limit", "0").returncode == 2
    assert "--route" in run_cli("tap", "--help").stdout
    daemon = bellhop({"admin": {"tcp": "127.0.0.1:0"}})
    port = int(daemon.wait_log(r"admin address=tcp:\S+:(\d+)").group(1))
    assert Admin(("127.0.0.1", port)).get("/tap").status == 403
    assert Admin(daemon.admin_socket).ask("HEAD", "/tap").status == 405
    assert Admin(daemon.admin_socket).post("/tap").status == 405


# --- readers that are slow, gone or many

def test_a_reader_that_stands_still_holds_up_nobody_and_is_told_what_it_missed(bellhop, name):
    daemon = bellhop()
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True, arguments={"x-max-length": 10})
    slow = RawTap(daemon)
    frames = b"".join(channel.publish_frames("", queue, b"x"))
    for _ in range(20):
        channel.client.send_raw(frames * 500)
    channel.confirms(10_000)
    admin = Admin(daemon.admin_socket)
    assert admin.get("/healthz").status == 200
    for _ in range(40):  # more connections than there are places: the tap keeps its own
        open_socket(daemon.admin_socket)
    assert admin.get("/healthz").status == 200
    lines = slow.read(10_000)
    missed = [line["missed"] for line in lines if "missed" in line]
    assert sum(missed) > 0 and sum(missed) + len(lines) - len(missed) == 10_000
    channel.publish("", queue, b"again")
    channel.expect("basic.ack")
    has(slow.read(1)[0], direction="publish", size=5)


def test_missed_lines_are_said_in_words(bellhop, name, tap):
    daemon = bellhop()
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True, arguments={"x-max-length": 10})
    watched = tap(daemon)
    watched.process.send_signal(signal.SIGSTOP)
    frames = b"".join(channel.publish_frames("", queue, b"x"))
    for _ in range(20):
        channel.client.send_raw(frames * 500)
    channel.confirms(10_000)
    watched.process.send_signal(signal.SIGCONT)
    for line in iter(watched.line, ""):
        if line.startswith("\N{HORIZONTAL ELLIPSIS} "):
            assert line.endswith(" lines missed\n")
            break
    else:
        pytest.fail("nothing was missed")


def test_there_are_four_places_and_one_that_is_killed_gives_its_back(bellhop, name, tap):
    daemon = bellhop()
    taps = [tap(daemon, "--json") for _ in range(4)]
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True)
    fifth = run_cli("tap", "--socket", daemon.admin_socket)
    assert fifth.returncode == 1 and fifth.stderr == "bellhop: There are 4 taps already, and no place for another: end one of them.\n"
    channel.publish("", queue, b"x")
    channel.expect("basic.ack")
    assert [each.lines(1)[0]["size"] for each in taps] == [1] * 4
    taps[1].process.kill()
    raw = wait_until(lambda: raw_or_none(daemon), what="a free place")
    channel.publish("", queue, b"xx")
    channel.expect("basic.ack")
    assert raw.read(1)[0]["size"] == 2
    assert taps[0].lines(1)[0]["size"] == 2


def test_taps_that_come_and_go_hold_up_no_publish(bellhop, name):
    daemon = bellhop()
    channel = publisher(daemon)
    queue = channel.declare(name(), exclusive=True, arguments={"x-max-length": 10})
    frames = b"".join(channel.publish_frames("", queue, b"x"))
    for n in range(50):
        raw = raw_or_none(daemon)
        channel.client.send_raw(frames * 50)
        if raw is not None:
            raw.close()
    assert set(channel.confirms(2500).values()) == {"ack"}
    wait_until(lambda: raw_or_none(daemon), what="a free place")
