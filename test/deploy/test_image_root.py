"""deploy/image-root.sh makes a root from which the program can run, with this build's program and this host's libraries; no image is built.
(roots/test_image.py builds one.)"""

import os
import re
import stat
import subprocess

import pytest

from support.bellhop import ROOT, binary
from support.image import Image

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make another user's folders, and change the root")

SCRIPT = str(ROOT / "deploy" / "image-root.sh")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([SCRIPT, binary(), folder], check=True, timeout=120)
    return folder


def inside(root, *command):
    return subprocess.run(["chroot", "--userspec=10001:10001", root, *command], env={"PATH": "/usr/sbin:/usr/bin"}, capture_output=True, text=True, timeout=60)


def test_the_program_runs_in_it(root):
    done = inside(root, "/usr/bin/bellhop", "--version")
    assert done.returncode == 0 and done.stdout.startswith("bellhop "), done.stderr


def test_each_library_finds_those_that_it_needs(root):
    [loader] = [*root.glob("usr/lib64/ld-linux*"), *root.glob("usr/lib/ld-linux*")]
    libraries = list((root / "usr/lib").glob("*/lib*.so*"))
    assert {"libcurl.so.4", "libmicrohttpd.so.12", "libc.so.6"} <= {path.name for path in libraries}
    for path in [root / "usr/bin/bellhop", *libraries]:
        done = inside(root, f"/{loader.relative_to(root)}", "--list", f"/{path.relative_to(root)}")
        assert done.returncode == 0 and "not found" not in done.stdout, f"{path}: {done.stdout}{done.stderr}"


def test_what_bellhop_writes_to_belongs_to_its_user_and_all_else_to_root(root):
    image = Image()
    for path in [root, *root.rglob("*")]:
        seen = path.lstat()
        owner = image.user if f"/{path.relative_to(root)}" in image.own_folders else (0, 0)
        assert (seen.st_uid, seen.st_gid) == owner, path
        if not path.is_symlink() and path != root / "tmp":
            assert not seen.st_mode & (stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID), path
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert {stat.S_IMODE((root / folder[1:]).stat().st_mode) for folder in image.own_folders} == {0o750}
    assert {"/run/bellhop", "/var/lib/bellhop/claims"} <= set(image.own_folders)


def test_users_and_groups_are_those_that_the_dockerfile_names(root):
    user, group = Image().user
    assert re.search(rf"^bellhop:x:{user}:{group}:", (root / "etc/passwd").read_text(), re.M)
    assert re.search(rf"^bellhop:x:{group}:", (root / "etc/group").read_text(), re.M)


def test_a_library_that_is_not_here_is_named(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\0libmissing.so.7\0")
    done = subprocess.run([SCRIPT, program, tmp_path / "root"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "libmissing.so.7, which is not installed here" in done.stderr
