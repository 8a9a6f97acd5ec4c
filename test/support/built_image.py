"""The image, built by deploy/image on a Debian that debootstrap makes, as an archive in build/. What has not changed since is not built again:
its name says of which sources it is."""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from .bellhop import ROOT
from .container import Engine
from .debian_root import base

NAME = "bellhop:tested"
VERSION = re.search(r"^project\(bellhop VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def _sources():
    """The commit and what is changed since."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout
    return hashlib.sha256(git("rev-parse", "HEAD") + git("diff", "HEAD")).hexdigest()[:16]


def archive():
    """The archive's path. BELLHOP_TEST_IMAGE names another, which deploy/image --tag bellhop:tested --output made."""
    if "BELLHOP_TEST_IMAGE" in os.environ:
        return pathlib.Path(os.environ["BELLHOP_TEST_IMAGE"])
    build = ROOT / "build"
    with open(build / "image.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = build / f"image-{_sources()}.tar"
        if not path.exists():
            for other in build.glob("image-*.tar"):
                other.unlink()
            with Engine() as engine:
                _build(engine, engine.folder / "image.tar")
                shutil.move(engine.folder / "image.tar", path)
        return path


def _build(engine, path):
    said = engine.run([ROOT / "deploy" / "image", "--with", "buildah", "--tag", NAME, "--base", base(), "--output", path], timeout=3000).stdout
    assert f"Built {NAME}: version {VERSION}" in said and "podman run" in said, said[-2000:]
    assert "bellhop-build-base" not in engine.podman("images").stdout
