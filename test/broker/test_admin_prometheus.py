"""What /metrics says to the programs that read it: promtool finds nothing to complain of, and a real Prometheus scrapes it."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

from support.admin import Admin
from support.publishing import declare, publisher
from support.rabbitmq import free_port, wait_until

CONFIG = {
    "pipelines": {"fulfilment": {"steps": ["validate", "dispatch"]}},
    "routes": [{"name": 'a "quoted" \\ name', "match": {"exchange": "orders"}}, {"name": "audit", "match": {"exchange": "audit"}}],
}


def program(name):
    found = shutil.which(name)
    assert found, f"{name} is not installed (test/run installs it)"
    return found


def test_promtool_has_no_complaint(bellhop, broker, name):
    daemon = bellhop(CONFIG)
    queue = name()
    declare(broker, queue)
    up = publisher(daemon)
    up.channel.publish("", queue, b"x" * 100_000)
    up.channel.expect("basic.ack")
    text = Admin(daemon.admin_socket).get("/metrics").body
    done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert done.returncode == 0
    bad = subprocess.run([program("promtool"), "check", "metrics"], input=text.replace("_total", "_count"), capture_output=True, text=True)
    assert bad.returncode != 0, "the check can fail"


def test_every_family_is_there_from_the_start_with_its_labels(bellhop):
    metrics = Admin(bellhop(CONFIG).admin_socket).metrics()
    for key in [("bellhop_sessions", "door=tcp"), ("bellhop_sessions_closed_total", "door=unix,reason=broker lost"),
                ("bellhop_broker_connects_total", "result=failed"), ("bellhop_broker_blocked", ""),
                ("bellhop_publishes_total", "outcome=nacked,route=audit"), ("bellhop_publishes_total", "outcome=confirmed,route=(no route)"),
                ("bellhop_publish_seconds_bucket", "le=0.001,route=audit"), ("bellhop_publish_seconds_bucket", "le=+Inf,route=audit"),
                ("bellhop_publish_seconds_count", "route=audit"), ("bellhop_deliveries_total", "kind=inline"),
                ("bellhop_offloads_total", "result=failed,store=claims"), ("bellhop_offload_bytes_total", "store=claims"),
                ("bellhop_restores_total", "result=corrupt,store=claims"), ("bellhop_store_seconds_count", "operation=fetch,store=claims"),
                ("bellhop_held_deliveries", ""), ("bellhop_parked_total", "reason=store unavailable"),
                ("bellhop_hops_total", "outcome=forwarded,pipeline=fulfilment,step=validate"),
                ("bellhop_slips_finished_total", "pipeline=fulfilment"), ("bellhop_inflight_bytes", ""), ("bellhop_scratch_bytes", ""),
                ("bellhop_log_lines_dropped_total", "")]:
        assert metrics[key] == 0, key
    assert metrics["bellhop_config_last_reload_successful", ""] == 1
    assert metrics["bellhop_config_generation", ""] == 1
    assert metrics["bellhop_config_last_reload_success_timestamp_seconds", ""] > 1.7e9
    assert any(name == "bellhop_build_info" for name, _ in metrics)
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds", "threads", "start_time_seconds"):
        assert metrics[f"process_{name}", ""] > 0, name


@pytest.fixture
def prometheus(tmp_path):
    """A Prometheus that scrapes 127.0.0.1:PORT each second: start(PORT) -> a function that asks it a query."""
    running = []

    def start(port):
        own = free_port()
        config = tmp_path / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"},
                                      "scrape_configs": [{"job_name": "bellhop", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}))
        running.append(subprocess.Popen(
            [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        def ask(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10) as answer:
                    return [(each["metric"], float(each["value"][1])) for each in json.load(answer)["data"]["result"]]
            except OSError:
                return []  # it starts

        return ask

    yield start
    for each in running:
        each.terminate()
        each.wait(30)


def test_a_real_prometheus_scrapes_it(bellhop, broker, name, prometheus):
    port = free_port()
    daemon = bellhop({**CONFIG, "admin": {"tcp": f"127.0.0.1:{port}"}})
    ask = prometheus(port)
    queue = name()
    declare(broker, queue)
    up = publisher(daemon)
    for _ in range(7):
        up.channel.publish("", queue, b"hello")
    up.channel.confirms(7)

    def value(query):
        answer = ask(query)
        return answer[0][1] if answer else None

    wait_until(lambda: value('up{job="bellhop"}') == 1, 60, "a scrape")
    wait_until(lambda: value("bellhop_sessions{door='unix'}") == 1, 30, "the session")
    wait_until(lambda: value("bellhop_publishes_total{route='(no route)',outcome='confirmed'}") == 7, 30, "the publishes")
    wait_until(lambda: value("histogram_quantile(1, bellhop_publish_seconds_bucket{route='(no route)'})") is not None, 30, "the histogram")
