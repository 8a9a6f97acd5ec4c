"""deploy/kubernetes: what kubectl makes of it, whether Kubernetes 1.29 and 1.36 know every field, and whether it fits the program, the image and
the configuration. test_kubernetes_pod.py runs the pods."""

import copy
import json
import re
import shutil

import pytest
import yaml

from manifests import KUBERNETES, KUSTOMIZATIONS, NEWEST, OLDEST, against_schemas, documents_of, one, pod_of, render, rendered, sidecar_of, \
    with_pods, workloads, wrong_fields
from sidecar_rules import complaints, config_text, not_restricted, run
from support.admin import Admin
from support.bellhop import Bellhop
from support.rabbitmq import free_port

WORKLOAD = pytest.mark.parametrize("document", [pytest.param(each, id=f"{name}-{each['kind']}") for name, each in workloads()])
BOTH = pytest.mark.parametrize("version", [OLDEST, NEWEST])


def pod_monitor():
    return one(documents_of((KUBERNETES / "podmonitor.yaml").read_text()), "PodMonitor")


def everything():
    return [each for name in KUSTOMIZATIONS for each in rendered(name)] + [pod_monitor()]


def changed(document, change):
    document = copy.deepcopy(document)
    change(document)
    return document


# -- Kubernetes' own description

@BOTH
def test_kubernetes_knows_every_field(version):
    documents = everything()
    assert [(each["kind"], wrong) for each, wrong in zip(documents, wrong_fields(documents, version)) if wrong] == []


FREE = {"labels", "matchLabels", "annotations", "data", "stringData", "limits", "requests", "selector"}  # their keys are anybody's


def misspelt(value, path=()):
    """The paths of all keys of a document that its type has a name for."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from misspelt(each, (*path, number))
    elif isinstance(value, dict):
        for key, each in value.items():
            if not path or path[-1] not in FREE or (path[-1] == "selector" and key == "matchLabels"):
                yield (*path, key)
            yield from misspelt(each, (*path, key))


def with_key_misspelt(path):
    def change(document):
        for step in path[:-1]:
            document = document[step]
        document[path[-1] + "s"] = document.pop(path[-1])
    return change


@BOTH
def test_a_misspelt_field_is_found_wherever_it_is(version):
    cases = [(each["kind"], path, changed(each, with_key_misspelt(path)))
             for each in [*(each for _, each in workloads()), pod_monitor()] for path in misspelt(each) if path not in (("kind",), ("apiVersion",))]
    assert len(cases) > 200
    wrong = wrong_fields([case for _, _, case in cases], version)
    assert [(kind, path) for (kind, path, _), found in zip(cases, wrong) if not found] == []


def sidecar_with(**keys):
    return changed(one(rendered("example"), "Deployment", "orders"), lambda document: sidecar_of(document).update(keys))


@BOTH
def test_a_value_of_another_type_is_found(version):
    good, *bad = [sidecar_with(), sidecar_with(restartPolicy=["Always"]), sidecar_with(args="run --config"), sidecar_with(ports=9419),
                  sidecar_with(ports=[{"containerPort": "9419"}]), sidecar_with(startupProbe={"exec": ["/usr/bin/bellhop", "health"]}),
                  sidecar_with(securityContext={"runAsUser": "bellhop"}), sidecar_with(env=[{"value": "without a name"}])]
    wrong = wrong_fields([good, *bad], version)
    assert wrong[0] == []
    assert all(wrong[1:]), wrong


def test_the_schemas_of_the_newest_kubernetes_take_everything():
    assert against_schemas(everything()) == [""] * len(everything())


def test_a_word_or_quantity_that_the_schemas_do_not_have_is_found():
    bad = [sidecar_with(resources={"limits": {"memory": "512Mii"}}), sidecar_with(ports=[{"containerPort": 1.5}]),
           sidecar_with(imagePullPolicy="Sometimes"), sidecar_with(securityContext={"seccompProfile": {"type": "Default"}}),
           changed(pod_monitor(), lambda document: document["spec"]["podMetricsEndpoints"][0].update(interval="30 s"))]
    assert all(against_schemas(bad)), against_schemas(bad)


# -- the component

PLAIN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, labels: {team: a}}
spec:
  replicas: 3
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}, annotations: {a: b}}
    spec:
      serviceAccountName: plain
      initContainers:
        - {name: migrate, image: migrate:1}
      containers:
        - {name: web, image: web:1, volumeMounts: [{name: cache, mountPath: /cache}]}
        - {name: helper, image: helper:1}
      volumes:
        - {name: cache, emptyDir: {}}
"""


def with_component(folder, text):
    """A kustomization with these documents and the component. (kubectl reads nothing outside of its folder but other kustomizations.)"""
    folder.mkdir()
    shutil.copytree(KUBERNETES / "component", folder / "component")
    (folder / "plain.yaml").write_text(text)
    (folder / "kustomization.yaml").write_text("resources: [plain.yaml]\ncomponents: [component]\n")
    return render(folder)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_the_component_adds_bellhop_and_changes_nothing_else(kind, tmp_path):
    before = documents_of(PLAIN.replace("kind: Deployment", f"kind: {kind}"))[0]
    after, = with_component(tmp_path / "with", yaml.safe_dump(before))
    spec = pod_of(after)
    assert [each["name"] for each in spec["initContainers"]] == ["bellhop", "migrate"]
    spec["initContainers"].pop(0)
    spec["volumes"] = [each for each in spec["volumes"] if not each["name"].startswith("bellhop-")]
    assert spec.pop("securityContext") == {"fsGroup": 10001, "fsGroupChangePolicy": "OnRootMismatch"}
    assert spec.pop("terminationGracePeriodSeconds") == 55
    assert after["spec"]["template"]["metadata"]["labels"].pop("bellhop") == "sidecar"
    assert after == before


def test_the_component_takes_pods_without_init_containers_and_volumes(tmp_path):
    plain = changed(documents_of(PLAIN)[0], lambda document: [pod_of(document).pop(key) for key in ("initContainers", "volumes")])
    after, = with_component(tmp_path / "with", yaml.safe_dump(plain))
    assert [each["name"] for each in pod_of(after)["initContainers"]] == ["bellhop"]


def test_a_workload_that_says_none_is_left_alone(tmp_path):
    plain = changed(documents_of(PLAIN)[0], lambda document: document["metadata"]["labels"].update(bellhop="none"))
    assert with_component(tmp_path / "with", yaml.safe_dump(plain)) == [plain]
    assert sidecar_of(one(rendered("example"), "Deployment", "rabbitmq")) is None


# -- the program, the image, the configuration

def new_complaints(document, documents):
    """Those that the example as it is does not give."""
    good = rendered("example")
    return set(complaints(document, documents)) - set(complaints(one(good, "Deployment", "orders"), good))


@WORKLOAD
def test_the_manifest_fits_the_program_the_image_and_the_configuration(document):
    assert list(complaints(document, rendered("example"))) == []


@pytest.mark.parametrize("document", [pytest.param(each, id=f"{name}-{each['metadata']['name']}")
                                      for name in KUSTOMIZATIONS for each in with_pods(rendered(name))])
def test_the_pods_are_restricted(document):
    assert list(not_restricted(document)) == []
    for key, value in [("privileged", True), ("allowPrivilegeEscalation", True), ("runAsUser", 0), ("runAsNonRoot", False),
                       ("capabilities", {"drop": ["ALL"], "add": ["NET_ADMIN"]}), ("seccompProfile", {"type": "Unconfined"})]:
        worse = changed(document, lambda each: pod_of(each)["containers"][0].setdefault("securityContext", {}).update({key: value}))
        assert list(not_restricted(worse)), key


def at(path, value):
    """A change that puts a value into the sidecar, or into the pod for a path that begins with a slash. None removes."""
    def change(document):
        place = pod_of(document) if path.startswith("/") else sidecar_of(document)
        *steps, last = [int(each) if each.isdigit() else each for each in path.strip("/").split("/")]
        for step in steps:
            place = place[step]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return change


@pytest.mark.parametrize("path, value", [
    ("startupProbe/exec/command", ["/usr/bin/bellhop", "healthy"]), ("startupProbe/exec/command", ["/usr/bin/bellhop", "health", "--broker"]),
    ("startupProbe/exec/command", ["/usr/bin/bellhop", "health", "--ready"]), ("startupProbe/exec/command", ["/usr/sbin/bellhop", "health"]),
    ("startupProbe/exec/command", ["/usr/bin/bellhop", "health", "--socket", "/var/run/elsewhere/admin.sock"]),
    ("startupProbe/timeoutSeconds", 1), ("startupProbe", None),
    ("args", ["serve", "--config", "/etc/bellhop/bellhop.yaml"]), ("args", ["run", "--conf", "/etc/bellhop/bellhop.yaml"]),
    ("args", ["run", "--config", "/etc/bellhop/config.yaml"]), ("command", ["/usr/bin/bellhop"]),
    ("image", "bellhop:latest"), ("securityContext/runAsUser", 1000), ("securityContext/runAsGroup", 0),
    ("restartPolicy", None), ("lifecycle", {"preStop": {"exec": {"command": ["/usr/bin/bellhop", "drain"]}}}),
    ("readinessProbe", {"exec": {"command": ["/usr/bin/bellhop", "health", "--ready"]}}),
    ("ports/0/containerPort", 9420), ("ports/0/name", "metrics"), ("env/0/value", "/scratch"),
    ("/terminationGracePeriodSeconds", 30), ("/terminationGracePeriodSeconds", None), ("/securityContext/fsGroup", None),
    ("/containers/0/volumeMounts/0/mountPath", "/var/run/bellhop"), ("/containers/0/volumeMounts", None),
    ("/initContainers", [{"name": "migrate", "image": "migrate:1"}]),
    *((f"volumeMounts/{number}/mountPath", "/elsewhere") for number in range(5)),
    *((f"volumeMounts/{number}/subPath", "x") for number in range(5)), ("volumeMounts/1/readOnly", True),
    ("/volumes/4/secret/secretName", "other"),
], ids=lambda value: value if isinstance(value, str) else json.dumps(value))
def test_what_does_not_fit_is_found(path, value):
    worse = changed(one(rendered("example"), "Deployment", "orders"), at(path, value))
    assert new_complaints(worse, rendered("example"))


@pytest.mark.parametrize("old, new", [
    ("drain_timeout: 20s", "drain_timeout: 30s"), ("0.0.0.0:9419", "0.0.0.0:9420"), ("0.0.0.0:9419", "127.0.0.1:9419"), ("watch: true", "watch: false"),
    ("path: /var/lib/bellhop/claims", "path: /mnt/claims"), ("secrets/bellhop/password", "secrets/bellhop/pass"),
    ("secrets/bellhop/password", "secrets/rabbitmq/password"), ("service: orders", "listen: [{unix: /srv/bellhop.sock}]")])
def test_a_configuration_that_does_not_fit_is_found(old, new):
    documents = copy.deepcopy(rendered("example"))
    config = one(documents, "ConfigMap")["data"]
    assert old in config["bellhop.yaml"]
    config["bellhop.yaml"] = config["bellhop.yaml"].replace(old, new)
    assert new_complaints(one(documents, "Deployment", "orders"), documents)


def test_check_takes_the_configuration_with_the_secrets_in_place(tmp_path):
    documents = rendered("example")
    for folder in ("run", "secrets", "claims"):
        (tmp_path / folder).mkdir()
    for key, value in one(documents, "Secret")["stringData"].items():
        (tmp_path / "secrets" / key).write_text(value)
    text = config_text(documents).replace("/run/secrets/bellhop", f"{tmp_path}/secrets").replace("/var/lib/bellhop/claims", f"{tmp_path}/claims")
    (tmp_path / "bellhop.yaml").write_text(f"{text}\nlisten: [{{ unix: {tmp_path}/run/bellhop.sock }}]\n")
    done = run("check", tmp_path / "bellhop.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_bucket_that_the_configuration_speaks_of_is_right_too(tmp_path):
    """The lines of the comment, put in place of the store."""
    text = config_text(rendered("example"))
    bucket = re.sub(r"\n\s*# +", " ", re.search(r"#   (\{ type: s3.*?\})\n  claims", text, flags=re.S)[1])
    text = re.sub(r"claims: \{.*\}", f"claims: {bucket}", text)
    for key in ("username", "password", "access_key", "secret_key"):
        (tmp_path / key).write_text("x")
    (tmp_path / "bellhop.yaml").write_text(f"{text.replace('/run/secrets/bellhop', str(tmp_path))}\nlisten: [{{ unix: {tmp_path}/bellhop.sock }}]\n")
    done = run("check", tmp_path / "bellhop.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_services_open_the_socket_where_it_is():
    for program in (KUBERNETES / "example" / "service").glob("*.js"):
        assert "process.env.SOCKET || '/run/bellhop/bellhop.sock'" in program.read_text()


def test_every_program_of_a_service_is_in_its_image():
    programs = {each.name for each in (KUBERNETES / "example" / "service").glob("*.js")}
    for _, document in workloads():
        for each in pod_of(document)["containers"]:
            assert each["image"] == "orders:1"
            assert each["command"][0] == "node" and each["command"][1] in programs


# -- the monitor

def test_the_monitor_finds_the_pods_and_their_port():
    endpoint, = pod_monitor()["spec"]["podMetricsEndpoints"]
    for _, document in workloads():
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert pod_monitor()["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert endpoint["port"] in [each["name"] for each in sidecar_of(document)["ports"]]


def test_the_port_answers_the_monitor_and_takes_no_orders(tmp_path):
    endpoint, = pod_monitor()["spec"]["podMetricsEndpoints"]
    port = free_port()
    with Bellhop({"broker": {"url": "amqp://127.0.0.1:1"}, "admin": {"tcp": f"127.0.0.1:{port}"}}):
        admin = Admin(("127.0.0.1", port))
        assert admin.get(endpoint["path"]).status == 200
        assert admin.post("/drain").status in (403, 404, 405)
