"""The page at `/`, in a real browser: what it shows against what was done."""

import re
import shutil
import subprocess

import pytest

from support.admin import Admin
from support.publishing import declare, publisher
from support.rabbitmq import TIME_FACTOR, free_port, wait_until


@pytest.fixture
def browse(tmp_path):
    """browse(url, *options) -> the page's document, after the browser has run its script for some seconds of its own time."""
    chromium = shutil.which("chromium")
    assert chromium, "chromium is not installed (test/run installs it)"

    def run(url, *options):
        done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               f"--user-data-dir={tmp_path}/browser", "--virtual-time-budget=5000", *options, "--dump-dom", url],
                              capture_output=True, text=True, timeout=120 * TIME_FACTOR)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def cells(document):
    """{"orders/confirmed": "3", …}: what stands in the tables."""
    return dict(re.findall(r'<td[^>]* data-of="([^"]+)"[^>]*>([^<]*)</td>', document))


def tile(document, name):
    return re.findall(rf'data-tile="{name}">.*?<b[^>]*>([^<]*)</b>', document)[0]


@pytest.fixture
def watched(bellhop):
    def start(config):
        port = free_port()
        daemon = bellhop({"service": "orders-api", "admin": {"tcp": f"127.0.0.1:{port}"}, **config})
        return daemon, Admin(daemon.admin_socket), f"http://127.0.0.1:{port}/"
    return start


def test_it_shows_what_was_published(watched, broker, name, browse):
    daemon, admin, url = watched({"routes": [{"name": "orders", "match": {"routing_key": "orders.#"}}, {"name": "idle", "match": {"exchange": "idle"}}]})
    queue = name("orders")
    direct = declare(broker, queue)
    up = publisher(daemon, client_properties={"connection_name": "the <b>shop</b>"})
    for _ in range(3):
        up.channel.publish("", queue, b"y" * 1000)
    up.channel.publish("", queue, b"x" * 200_000)
    up.channel.confirms(4)
    other = name("other")
    direct.declare(other)
    up.channel.publish("", other, b"z")
    up.channel.confirms(5)
    assert up.channel.get_wait(queue).body == b"y" * 1000
    wait_until(lambda: admin.status()["ready"], 20, "the broker")

    document = browse(url)
    shown = cells(document)
    assert shown["orders/confirmed"] == "4" and shown["orders/nacked"] == "0"
    assert shown["orders/bytes"] == "198 KiB"
    assert shown["(no route)/confirmed"] == "1" and shown["idle/confirmed"] == "0"
    assert shown["claims/offloaded"] == "1" and shown["claims/bytes"] == "195 KiB" and shown["claims/state"] == "works"
    assert shown["the &lt;b&gt;shop&lt;/b&gt;/sessions"] == "1" and "<b>shop</b>" not in document
    assert shown["the &lt;b&gt;shop&lt;/b&gt;/channels"] == "1"
    assert tile(document, "broker") == "up" and tile(document, "deliveries") == "1" and tile(document, "held") == "0"
    assert tile(document, "reload") == "no. 1"
    assert ">ready</span>" in document and "<title>orders-api · bellhop</title>" in document


def test_it_shows_200_routes_and_none(watched, browse):
    _, _, url = watched({"routes": [{"name": f"route {i}", "match": {"exchange": f"e{i}"}} for i in range(200)]})
    document = browse(url)
    assert sum(key.startswith("route ") and key.endswith("/confirmed") for key in cells(document)) == 200
    _, _, url = watched({"stores": {}})
    document = browse(url)
    assert "(no route)/confirmed" in cells(document)
    assert "No store is configured" in document and "No client is connected." in document


def test_it_says_what_is_wrong(watched, browse):
    daemon, admin, url = watched({"broker": {"url": f"amqp://127.0.0.1:{free_port()}", "connect_timeout": "1s"}})
    wait_until(lambda: admin.status()["broker"]["state"] == "down", 20, "bellhop's look at the broker")
    daemon.config_path.write_text("brokr: {}\n")
    admin.post("/reload")
    wait_until(lambda: admin.status()["config"]["problems"], 20, "the failed reload")
    document = browse(url)
    assert "The last reload failed" in document and "brokr" in document
    assert ">not ready</span>" in document and "broker: no broker can be reached" in document
    assert tile(document, "broker") == "down"


def test_it_asks_nobody_but_bellhop(watched):
    _, admin, _ = watched({})
    page = admin.get("/")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page.body) and "//" not in re.sub(r"^\s*//.*$|<!--.*?-->|; *//.*$", "", page.body, flags=re.M)
