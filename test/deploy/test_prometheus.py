"""deploy/prometheus: the rules are right for promtool, each alert has a unit test that would notice its absence, and each metric, label and
word that an alert names is in the /metrics of a bellhop that runs."""

import re
import shutil
import subprocess

import pytest
import yaml

from manifests import NEWEST, against_schemas, documents_of, one, rendered, sidecar_of, wrong_fields
from support.admin import Admin
from support.documents import ROOT, anchor, blocks, headings
from support.rabbitmq import free_port

FOLDER = ROOT / "deploy" / "prometheus"
RULES = yaml.safe_load((FOLDER / "rules.yaml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
TARGET_LABELS = {"instance", "job"}  # from Prometheus, not from bellhop

CONFIG = {"pipelines": {"fulfilment": {"steps": ["validate"]}}, "routes": [{"name": "orders", "match": {"exchange": "orders"}}]}


def promtool(*args):
    program = shutil.which("promtool")
    assert program, "promtool is not installed (test/run installs it)"
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True)


def test_promtool_takes_the_rules():
    done = promtool("check", "rules", FOLDER / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_the_unit_tests_pass():
    done = promtool("test", "rules", FOLDER / "rules_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("instead", ["bellhop_broker_up > 2", "bellhop_build_info > 0"], ids=["never", "always"])
def test_the_unit_tests_notice_each_alert_that_is_wrong(instead, tmp_path):
    changed = {"groups": [{**group, "rules": [{**rule, "expr": instead} for rule in group["rules"]]} for group in RULES["groups"]]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(changed))
    shutil.copy(FOLDER / "rules_test.yaml", tmp_path)
    assert promtool("check", "rules", tmp_path / "rules.yaml").returncode == 0
    done = promtool("test", "rules", tmp_path / "rules_test.yaml")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert not [alert["alert"] for alert in ALERTS if f'alertname="{alert["alert"]}"' not in said]


@ALERT
def test_an_alert_says_what_it_is_and_what_to_do(alert):
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert set(alert["annotations"]) == {"summary", "description", "runbook"}
    path, _, chapter = alert["annotations"]["runbook"].partition("#")
    assert chapter in map(anchor, headings(ROOT / path))


def test_the_manual_lists_every_alert_and_whom_it_wakes():
    rows = re.findall(r"^\| (`Bellhop.*?) \| (yes|no) \|", (ROOT / "deploy/README.md").read_text(), flags=re.M)
    listed = {name: {"yes": "page", "no": "ticket"}[wakes] for names, wakes in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {alert["alert"]: alert["labels"]["severity"] for alert in ALERTS}


# -- what /metrics has

def known_series(metrics):
    """{metric: {label: its values}} of a page of /metrics."""
    known = {}
    for name, labels in metrics:
        of_metric = known.setdefault(name, {})
        for each in filter(None, labels.split(",")):
            label, _, value = each.partition("=")
            of_metric.setdefault(label, set()).add(value)
    return known


def unknown_words(alert, known):
    """What an alert names and /metrics does not have."""
    used = set()
    for name, matchers in re.findall(r"\b((?:bellhop|process)_\w+)(?:\{([^}]*)\})?", alert["expr"]):
        if name not in known:
            yield name
            continue
        used |= set(known[name])
        for label, operator, words in re.findall(r'(\w+)\s*(=~|=)\s*"([^"]*)"', matchers):
            for word in words.split("|") if operator == "=~" else [words]:
                if word not in known[name].get(label, ()):
                    yield f'{name}{{{label}="{word}"}}'
    for labels in re.findall(r"\b(?:on|by|without|ignoring)\s*\(([^)]*)\)", alert["expr"]):
        yield from {each.strip() for each in labels.split(",")} - used - TARGET_LABELS
    for text in alert["annotations"].values():
        yield from set(re.findall(r"\$labels\.(\w+)", text)) - used - TARGET_LABELS


@pytest.fixture(scope="module")
def known(rabbit):
    from support.bellhop import Bellhop
    with Bellhop({**CONFIG, "broker": {"url": rabbit.url}, "admin": {"tcp": f"127.0.0.1:{(port := free_port())}"}}):
        yield known_series(Admin(("127.0.0.1", port)).metrics())


@ALERT
def test_what_an_alert_names_is_in_the_metrics(alert, known):
    assert re.search(r"bellhop_\w+", alert["expr"])
    assert not list(unknown_words(alert, known))


def test_a_word_that_the_metrics_do_not_have_is_found(known):
    def wrong(expr, summary=""):
        return list(unknown_words({"expr": expr, "annotations": {"summary": summary}}, known))
    assert wrong("bellhop_broker_up == 0") == []
    assert wrong("bellhop_broker_upp == 0") == ["bellhop_broker_upp"]
    assert wrong('increase(bellhop_offloads_total{result="fails"}[1m]) > 0') == ['bellhop_offloads_total{result="fails"}']
    assert wrong('bellhop_publishes_total{outcome=~"nacked|lost"} > 0') == ['bellhop_publishes_total{outcome="lost"}']
    assert wrong('bellhop_publishes_total{result="nacked"} > 0') == ['bellhop_publishes_total{result="nacked"}']
    assert wrong("sum by (queue) (bellhop_parked_total) > 0") == ["queue"]
    assert wrong("bellhop_parked_total > 0", "{{ $labels.reason }} {{ $labels.queue }}") == ["queue"]


def test_the_alert_about_memory_knows_the_limit_of_the_sidecar():
    limit = sidecar_of(one(rendered("example"), "Deployment", "orders"))["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    expression = next(alert["expr"] for alert in ALERTS if alert["alert"] == "BellhopMemory")
    assert f"0.8 * {limit[:-2]} * 1024 * 1024" in expression


def test_the_operator_takes_the_rules_as_the_manual_hands_them_over(tmp_path):
    """The manual's commands, with a kubectl that prints what it is given."""
    script, = [block for block in blocks(ROOT / "deploy" / "README.md", "sh") if "PrometheusRule" in block]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho ---\nexec cat ${3#-}\n')
    kubectl.chmod(0o755)
    done = subprocess.run(["sh", "-euc", script], cwd=ROOT, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    documents = documents_of(done.stdout)
    assert [each["kind"] for each in documents] == ["PodMonitor", "PrometheusRule"]
    assert documents[1]["spec"] == RULES
    assert against_schemas(documents) == ["", ""]
    assert wrong_fields(documents, NEWEST) == [[], []]
