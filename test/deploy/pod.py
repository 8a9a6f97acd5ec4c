"""A pod as the kubelet runs it, of processes on this host: the rendered manifest's own commands, paths, users, groups, volumes and probes.

    pod = Pod(document, documents, folder, images)
    pod.start()           # init containers in order, a sidecar until its startup probe succeeds, then the others
    pod.terminate()       # SIGTERM to the containers; when they have ended, to the sidecars, last one first; SIGKILL after the grace period

What a container runtime does is done here too: folders for volumes (with the group fsGroup), ConfigMaps and Secrets as links to a folder that is
swapped, a read-only root. What is not: cgroups, seccomp, a network of the pod's own. Only root can do this."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from manifests import pod_of
from support.rabbitmq import TIME_FACTOR, wait_until

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT_GRACE_S = 30


class Image:
    """`folders`: {path in the container: folder or file of this host}. `entrypoint` and `folder` as in a Dockerfile."""

    def __init__(self, folders, entrypoint=(), folder="/"):
        self.folders, self.entrypoint, self.folder = folders, list(entrypoint), folder


class Container:
    def __init__(self, pod, spec, is_sidecar):
        self.pod, self.spec, self.is_sidecar = pod, spec, is_sidecar
        self.name = spec["name"]
        self.image = pod.images[spec["image"].partition(":")[0]]
        self.root = pod.folder / "roots" / self.name
        self.log_path = pod.folder / f"{self.name}.log"
        self.process = None
        self.ended_at = None
        context = {**pod.spec.get("securityContext", {}), **spec.get("securityContext", {})}
        self.uid = context["runAsUser"]
        self.gid = context.get("runAsGroup", 0)
        self.read_only_root = context.get("readOnlyRootFilesystem", False)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _mounts(self):
        out = [(str(source), target, True) for target, source in self.image.folders.items()]
        out += [("/proc", "/proc", False), ("/dev", "/dev", False)]
        out += [(str(self.pod.volumes[each["name"]]), each["mountPath"], each.get("readOnly", False)) for each in self.spec.get("volumeMounts", [])]
        return sorted(out, key=lambda each: each[1].count("/"))  # an outer folder before what is in it

    def _run(self, command, mounts=None):
        """The arguments for a process in this container."""
        environment = {"PATH": "/usr/bin", "HOSTNAME": self.pod.name, **{each["name"]: each["value"] for each in self.spec.get("env", [])}}
        wanted = {"root": str(self.root), "uid": self.uid, "gid": self.gid, "groups": self.pod.groups, "folder": self.image.folder,
                  "command": command, "environment": environment}
        if mounts is None:
            enter = ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt"]
        else:
            wanted.update(mounts=mounts, read_only_root=self.read_only_root)
            enter = ["unshare", "--mount", "--propagation", "private"]
        return [*enter, sys.executable, "-B", str(HERE / "container.py"), json.dumps(wanted)]

    def start(self):
        mounts = self._mounts()
        self.root.mkdir(parents=True, exist_ok=True)
        for link in ("lib", "lib64", "bin"):
            if not (self.root / link).is_symlink():
                (self.root / link).symlink_to(f"usr/{link}")
        command = self.spec.get("command", self.image.entrypoint) + self.spec.get("args", [])
        command[0] = command[0] if command[0].startswith("/") else f"/usr/bin/{command[0]}"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self._run(command, mounts), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def run(self, *command):
        """Runs a command in the container, as `kubectl exec` does."""
        return subprocess.run(self._run(list(command)), capture_output=True, text=True, timeout=30 * TIME_FACTOR)

    def wait_started(self):
        """Until the startup probe succeeds. It may fail so often as the manifest allows."""
        probe = self.spec.get("startupProbe")
        if probe is None:
            return
        for _ in range(probe.get("failureThreshold", 3) * 10):  # asked ten times as often as the manifest says
            if self.process.poll() is not None:
                break
            last = self.run(*probe["exec"]["command"])
            if last.returncode == 0:
                return
            time.sleep(probe.get("periodSeconds", 10) / 10)
        raise AssertionError(f"{self.name} has not started: {last.stdout}{last.stderr}\n{self.log[-3000:]}")

    def wait(self, deadline):
        """Its exit code. After the deadline it is killed."""
        try:
            code = self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.ended_at = self.ended_at or time.monotonic()
        return code


class Pod:
    def __init__(self, document, documents, folder, images):
        self.spec, self.images = pod_of(document), images
        self.folder = pathlib.Path(folder)
        self.name = document["metadata"]["name"] + "-0"
        self.groups = [self.spec["securityContext"]["fsGroup"]]
        self.grace_s = self.spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        self.volumes = {}
        for volume in self._all_volumes(document):
            self._make_volume(volume, documents)
        self.sidecars = [Container(self, each, True) for each in self.spec.get("initContainers", [])]
        assert all(each.spec.get("restartPolicy") == "Always" for each in self.sidecars)
        self.containers = [Container(self, each, False) for each in self.spec["containers"]]

    def _all_volumes(self, document):
        claims = [{"name": each["metadata"]["name"], "persistentVolumeClaim": {}} for each in document["spec"].get("volumeClaimTemplates", [])]
        return self.spec["volumes"] + claims

    def _make_volume(self, volume, documents):
        place = self.volumes[volume["name"]] = self.folder / "volumes" / volume["name"]
        place.mkdir(parents=True)
        os.chown(place, 0, self.groups[0])
        place.chmod(0o2777 if "emptyDir" in volume else 0o2775)
        if "configMap" in volume or "secret" in volume:
            source = volume.get("configMap", {}).get("name") or volume["secret"]["secretName"]
            kind = "ConfigMap" if "configMap" in volume else "Secret"
            found = next(each for each in documents if each["kind"] == kind and each["metadata"]["name"] == source)
            mode = (volume.get("configMap") or volume["secret"]).get("defaultMode", 0o644)
            self.write(volume["name"], {**found.get("data", {}), **found.get("stringData", {})}, mode)
        else:
            assert "emptyDir" in volume or "persistentVolumeClaim" in volume, volume

    def write(self, volume, files, mode=0o644):
        """As the kubelet does it: a new folder, then one rename changes all files."""
        place = self.volumes[volume]
        fresh = place / f"..{time.monotonic_ns()}"
        fresh.mkdir()
        for name, text in files.items():
            (fresh / name).write_text(text)
            (fresh / name).chmod(mode)
            os.chown(fresh / name, 0, self.groups[0])
            if not (place / name).is_symlink():
                (place / name).symlink_to(f"..data/{name}")
        (place / "..data_tmp").symlink_to(fresh.name)
        (place / "..data_tmp").rename(place / "..data")

    def __getitem__(self, name):
        return next(each for each in self.sidecars + self.containers if each.name == name)

    def start(self):
        for each in self.sidecars:
            each.start()
            each.wait_started()
        for each in self.containers:
            each.start()
        return self

    def wait_log(self, name, text, timeout=30):
        wait_until(lambda: text in self[name].log or self[name].process.poll() is not None, timeout, f"{text!r} in the log of {name}")
        assert text in self[name].log, f"{name} ended:\n{self[name].log[-3000:]}"

    def wait_completed(self, timeout=60):
        """As a Job's pod ends: its containers end by themselves, then the kubelet ends the sidecars. {name: exit code}"""
        wait_until(lambda: all(each.process.poll() is not None for each in self.containers), timeout, "the end of the containers")
        return self._end(time.monotonic() + self.grace_s)

    def terminate(self):
        """{name: exit code}"""
        deadline = time.monotonic() + self.grace_s
        for each in self.containers:
            each.process.send_signal(signal.SIGTERM)
        return self._end(deadline)

    def _end(self, deadline):
        codes = {each.name: each.wait(deadline) for each in self.containers}
        for each in reversed(self.sidecars):
            assert each.process.poll() is None, f"{each.name} ended before the containers:\n{each.log[-3000:]}"
            each.process.send_signal(signal.SIGTERM)
            codes[each.name] = each.wait(deadline)
        return codes

    def kill(self):
        for each in self.containers + self.sidecars:
            if each.process is not None and each.process.poll() is None:
                each.process.kill()
                each.process.wait()
