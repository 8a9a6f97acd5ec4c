"""What deploy/image asks Docker or buildah for, and what it says when it cannot. The programs here are stand-ins that write down their
arguments; roots/test_image.py has the real ones."""

import os
import re
import shutil
import subprocess

import pytest

from support.bellhop import ROOT

VERSION = re.search(r"^project\(bellhop VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
NEEDED = ["bash", "sed", "git", "tar", "cat", "mktemp", "rm", "env", "dirname"]


@pytest.fixture
def host(tmp_path):
    """host(docker=script, buildah=script) -> a function that runs deploy/image where only these programs are; it notes their arguments."""
    programs, notes = tmp_path / "bin", tmp_path / "notes"
    programs.mkdir()
    for name in NEEDED:
        os.symlink(subprocess.run(["which", name], check=True, capture_output=True, text=True).stdout.strip(), programs / name)

    def make(**scripts):
        for name, script in scripts.items():
            path = programs / name
            path.write_text(f'#!/bin/bash\necho "{name} $*" >>{notes}\n{script}\n')
            path.chmod(0o755)

        def image(*arguments):
            done = subprocess.run([ROOT / "deploy" / "image", *arguments], env={"PATH": str(programs)}, capture_output=True, text=True, timeout=60)
            done.notes = notes.read_text().splitlines() if notes.exists() else []
            return done
        return image
    return make


DOCKER = """
case "$1" in
  build) [ "$DOCKER_BUILDKIT" = 1 ] ;;
  import) cat >/dev/null ;;
esac
case "$*" in *Size*) echo 30MB ;; *Id*) echo sha256:1234 ;; esac
"""
BUILDAH = """
case "$1" in from) echo container ;; images) echo "30 MB" ;; inspect) echo 1234 ;; esac
"""


def test_docker_is_asked_when_its_engine_answers(host):
    done = host(docker=DOCKER, buildah=BUILDAH)()
    assert done.returncode == 0, done.stderr
    [build] = [line for line in done.notes if line.startswith("docker build ")]
    assert "--build-arg BASE=debian:12 " in build and f"--build-arg BELLHOP_VERSION={VERSION} " in build
    assert f"--tag bellhop:{VERSION} --tag bellhop:latest {ROOT}" in build and f"--file {ROOT}/Dockerfile" in build
    assert f"Built bellhop:{VERSION} bellhop:latest: version {VERSION}, commit" in done.stdout and "30MB" in done.stdout
    assert "docker run --read-only --tmpfs /tmp" in done.stdout and "--group-add 10001" in done.stdout
    assert not [line for line in done.notes if line.startswith("buildah")]


def test_buildah_is_asked_when_there_is_no_docker_engine(host, tmp_path):
    done = host(docker="exit 1", buildah=BUILDAH)("--tag", "registry/a:1", "--tag", "b", "--output", str(tmp_path / "image.tar"))
    assert done.returncode == 0, done.stderr
    [build] = [line for line in done.notes if line.startswith("buildah build ")]
    assert "--format docker" in build and "--tag registry/a:1 --tag b" in build and "bellhop:latest" not in build
    assert f"buildah push -q registry/a:1 docker-archive:{tmp_path}/image.tar:registry/a:1" in done.notes
    assert "podman run" in done.stdout and f"docker load -i {tmp_path}/image.tar" in done.stdout


@pytest.mark.parametrize("programs", [{"docker": DOCKER}, {"buildah": BUILDAH}], ids=["docker", "buildah"])
def test_a_folder_is_imported_as_the_base_and_goes_again(host, tmp_path, programs):
    base = tmp_path / "debian"
    base.mkdir()
    done = host(**programs)("--base", str(base))
    assert done.returncode == 0, done.stderr
    [name] = {word for line in done.notes for word in re.findall(r"localhost/bellhop-build-base:\d+", line)}
    [build] = [line for line in done.notes if " build " in line]
    assert f"--build-arg BASE={name}" in build
    assert done.notes[-1].endswith(f"rmi {name}")


def test_a_base_goes_also_when_the_build_fails(host, tmp_path):
    done = host(docker='if [ "$1" = build ]; then exit 7; fi; if [ "$1" = import ]; then cat >/dev/null; fi')("--base", str(tmp_path))
    assert done.returncode == 7
    assert re.match(r"docker rmi localhost/bellhop-build-base:\d+$", done.notes[-1])
    assert "Built" not in done.stdout


@pytest.mark.parametrize("arguments, code, words", [
    (["--help"], 0, "--output FILE"), (["--tga", "x"], 2, "unknown argument --tga"), (["--tag"], 2, "--tag needs a value"),
    (["x"], 2, "unknown argument x"), (["--with", "kaniko"], 2, "docker or buildah"), (["--base", "/nowhere/debian"], 1, "no folder /nowhere/debian"),
    (["--output", "/etc/passwd"], 1, "already there")])
def test_what_it_cannot_do_it_says(host, arguments, code, words):
    done = host(buildah=BUILDAH)(*arguments)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert not [line for line in done.notes if " build " in line]


def test_the_image_has_the_sources_that_its_build_needs(tmp_path):
    """As far as CMake looks; the compiler's turn comes in roots/test_image.py."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    build = lines[:lines.index("FROM scratch")]
    copied = [line.split()[1:] for line in build if line.startswith("COPY ")]
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for *sources, target in copied:
        for source in sources:
            assert source in kept, f".dockerignore leaves {source} out"
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (tmp_path / target).mkdir(exist_ok=True)
                shutil.copy(ROOT / source, tmp_path / target)
    [command] = [line for line in build if "cmake --preset" in line]
    [configure] = re.findall(r"cmake --preset [^&]*", command)
    subprocess.run(["bash", "-c", configure], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


def test_without_either_it_says_what_to_install(host):
    done = host()()
    assert done.returncode == 1
    assert "apt-get install buildah" in done.stderr
