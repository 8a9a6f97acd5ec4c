"""What must be so of a pod with bellhop: each rule holds a manifest against the program, the image's Dockerfile or the configuration in the
ConfigMap. `complaints(document, documents)` yields what is not so."""

import re
import subprocess

import yaml

from manifests import pod_of, sidecar_of
from support.bellhop import binary
from support.documents import ROOT

OWN_GRACE_S = 30  # of a pod whose service says nothing
SPARE_S = 5
DRAIN_TIMEOUT = "20s"  # bellhop's default
RESTRICTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def dockerfile(word):
    """The last line of the Dockerfile that begins with that word."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    return re.findall(rf"^{word} +(.*)$", text, flags=re.M)[-1]


def image_program():
    return yaml.safe_load(dockerfile("ENTRYPOINT"))[0]


def version():
    return re.search(r"project\(bellhop VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def config_text(documents):
    return next(each for each in documents if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "bellhop")["data"]["bellhop.yaml"]


def seconds(text):
    found = re.fullmatch(r"(\d+)(s|m)", text)
    return int(found[1]) * {"s": 1, "m": 60}[found[2]]


def run(*args):
    return subprocess.run([binary(), *args], capture_output=True, text=True, timeout=30)


def mounted(container, path, writable=False):
    """Whether a volume is mounted at the path, or above it."""
    return any((path == each["mountPath"] or path.startswith(each["mountPath"].rstrip("/") + "/")) and not (writable and each.get("readOnly"))
               for each in container.get("volumeMounts", []))


def complaints(document, documents):
    spec, sidecar = pod_of(document), sidecar_of(document)
    config = yaml.safe_load(config_text(documents))
    if sidecar is None:
        yield "there is no init container bellhop"
        return
    yield from of_its_life(spec, sidecar, config)
    yield from of_its_command(sidecar)
    yield from of_its_probe(sidecar)
    yield from of_its_image(sidecar)
    yield from of_its_places(spec, sidecar, config)
    yield from of_its_secrets(spec, sidecar, documents)
    yield from of_its_port(sidecar, config)
    yield from of_the_services(spec, config)


def of_its_life(spec, sidecar, config):
    if spec["initContainers"][0] is not sidecar:
        yield "bellhop is not the first init container"
    if sidecar.get("restartPolicy") != "Always":
        yield "bellhop is no sidecar: restartPolicy"
    for what in ("readinessProbe", "livenessProbe", "lifecycle"):
        if what in sidecar:
            yield f"bellhop has a {what}"
    needed = OWN_GRACE_S + seconds(config.get("limits", {}).get("drain_timeout", DRAIN_TIMEOUT)) + SPARE_S
    if spec.get("terminationGracePeriodSeconds", OWN_GRACE_S) < needed:
        yield f"terminationGracePeriodSeconds is below {needed}"


def of_its_command(sidecar):
    args = sidecar.get("args", [])
    if "command" in sidecar:
        yield "the image's own entry point is not used"
    if args[-1:] != ["/etc/bellhop/bellhop.yaml"]:
        yield f"args: {args}"
    done = run(*args[:-1], "/nonexistent/bellhop.yaml")
    if "Usage" in done.stderr or "/nonexistent/bellhop.yaml" not in done.stderr:
        yield f"args: the program says: {done.stderr}"


def of_its_probe(sidecar):
    probe = sidecar.get("startupProbe", {})
    command = probe.get("exec", {}).get("command", [""])
    if command[0] != image_program():
        yield f"the probe runs {command[0]}, the image has {image_program()}"
    done = run(*command[1:])
    if done.returncode not in (0, 1):
        yield f"the probe: the program says: {done.stderr}"
    for socket in re.findall(r"/\S+\.sock", done.stderr):
        if not mounted(sidecar, socket):
            yield f"the probe asks {socket}, which is on no volume"
    if command[1:2] != ["health"] or "--ready" in command:
        yield "the probe asks for more, or other, than health"
    if probe.get("timeoutSeconds", 1) <= 1:
        yield "the probe's timeout is not above the second that health takes at most"


def of_its_image(sidecar):
    name, _, tag = sidecar["image"].partition(":")
    if name != "bellhop" or tag != version():
        yield f"the image is {sidecar['image']}, the version {version()}"
    context = sidecar.get("securityContext", {})
    ids = f"{context.get('runAsUser')}:{context.get('runAsGroup')}"
    if ids != dockerfile("USER"):
        yield f"runs as {ids}, the image's user is {dockerfile('USER')}"


def of_its_places(spec, sidecar, config):
    socket = config.get("listen", [{"unix": "/run/bellhop/bellhop.sock"}])[0]["unix"]
    places = [socket, config.get("admin", {}).get("socket", socket)]
    places += [each["path"] for each in config.get("stores", {}).values() if each["type"] == "filesystem"]
    places += [each["value"] for each in sidecar.get("env", []) if each["name"] == "TMPDIR"] or ["/tmp"]
    for place in places:
        if not mounted(sidecar, place, writable=True):
            yield f"bellhop writes to {place}, which is on no volume"
    volumes = {each["name"]: each for each in spec.get("volumes", [])}
    for each in sidecar["volumeMounts"]:
        if "subPath" in each:
            yield f"{each['mountPath']}: a subPath never changes"
        if "configMap" in volumes.get(each["name"], {}) and each["mountPath"] != "/etc/bellhop":
            yield f"the ConfigMap is at {each['mountPath']}"
    if "fsGroup" not in spec.get("securityContext", {}):
        yield "no fsGroup: a service with another user cannot open the socket"


def of_its_secrets(spec, sidecar, documents):
    for path in re.findall(r"\$\{file:([^}]+)\}", re.sub(r"#.*", "", config_text(documents))):
        folder, _, key = path.rpartition("/")
        volume = next((each["name"] for each in sidecar["volumeMounts"] if each["mountPath"] == folder), None)
        source = next((each["secret"]["secretName"] for each in spec.get("volumes", []) if each["name"] == volume and "secret" in each), None)
        found = next((each for each in documents if each["kind"] == "Secret" and each["metadata"]["name"] == source), {})
        if key not in found.get("stringData", {}):
            yield f"{path} is in no Secret that is mounted there"


def of_its_port(sidecar, config):
    host, _, port = config["admin"]["tcp"].rpartition(":")
    if host.startswith("127.") or host == "localhost":
        yield f"admin.tcp: nobody outside of the pod reaches {host}"
    if [(each["name"], each["containerPort"]) for each in sidecar.get("ports", [])] != [("bellhop-admin", int(port))]:
        yield f"ports are not admin.tcp's {port}"
    if not config["admin"].get("watch"):
        yield "a changed ConfigMap would not be read"


def of_the_services(spec, config):
    folder = config.get("listen", [{"unix": "/run/bellhop/bellhop.sock"}])[0]["unix"].rpartition("/")[0]
    for each in spec["containers"]:
        if ("bellhop-run", folder) not in [(mount["name"], mount["mountPath"]) for mount in each.get("volumeMounts", [])]:
            yield f"container {each['name']} has no socket"


def not_restricted(document):
    """What the Pod Security Standard "restricted" does not allow."""
    spec = pod_of(document)
    pod = spec.get("securityContext", {})
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield key
    for volume in spec.get("volumes", []):
        yield from (f"volume {kind}" for kind in set(volume) - {"name"} - RESTRICTED_VOLUMES)
    for container in spec.get("initContainers", []) + spec["containers"]:
        own = container.get("securityContext", {})
        both = {**pod, **own}
        wrong = {"privileged": own.get("privileged"), "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
                 "runAsNonRoot": both.get("runAsNonRoot") is not True, "runAsUser": both.get("runAsUser") == 0,
                 "seccompProfile": both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"),
                 "capabilities": own.get("capabilities") not in ({"drop": ["ALL"]},), "hostPort": any("hostPort" in p for p in container.get("ports", []))}
        yield from (f"{container['name']}: {what}" for what, is_wrong in wrong.items() if is_wrong)
