"""What bellhop says on the command line, and how it exits."""

import re
import subprocess

import pytest

from support.bellhop import ROOT, run_cli


def test_help_names_every_command_and_goes_to_standard_output():
    done = run_cli("--help")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("run", "check", "peek", "where", "replay", "status", "health", "tap", "drain", "log-level", "--config FILE", "check FILE", "--version",
                 "Exit codes"):
        assert word in done.stdout, word


def said_by_version(env=None):
    """The first line, and the others by their keys."""
    done = run_cli("--version", env=env)
    assert done.returncode == 0 and done.stderr == ""
    first, *rest = done.stdout.splitlines()
    return first, dict(line.split(": ", 1) for line in rest)


def test_the_version_is_the_first_line_and_what_it_was_made_of_follows():
    first, more = said_by_version()
    assert re.fullmatch(r"bellhop \d+\.\d+\.\d+", first)
    assert list(more) == ["commit", "compiler", "libraries", "loaded when needed"]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", more["commit"])
    assert re.match(r"(GCC|Clang) \d+\.\d+", more["compiler"])
    for name in ("rabbitmq-c", "OpenSSL", "libuv", "spdlog", "yaml-cpp", "xxHash", "nlohmann-json", "prometheus-cpp", "CLI11"):
        assert re.search(rf"(^|, ){name} \d+\.\d+", more["libraries"]), name
    for name in ("libcurl", "libmicrohttpd"):
        assert re.search(rf"(^|, ){name} \d+\.\d+", more["loaded when needed"]), name


def test_a_library_that_would_be_missed_later_is_told(tmp_path):
    """An earlier file of the same name is found first, and is none: as if the library were not there."""
    for file in ("libcurl.so.4", "libmicrohttpd.so.12"):
        (tmp_path / file).write_text("no library")
    _, more = said_by_version(env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert more["loaded when needed"] == ("libcurl is not installed (S3 stores need it), "
                                          "libmicrohttpd is not installed (the admin listeners need it)")


@pytest.fixture
def commit_of(tmp_path):
    """commit_of(folder, given): what the build would write for the sources in that folder."""
    def ask(folder, given=""):
        out = tmp_path / "commit.cpp"
        subprocess.run(["cmake", f"-DCOMMIT={given}", "-DGIT=git", f"-DSOURCE={folder}", f"-DOUT={out}", "-P", ROOT / "daemon" / "commit.cmake"],
                       check=True, stdout=subprocess.DEVNULL)
        return re.search(r'return "(.*)";', out.read_text()).group(1), out.stat().st_mtime_ns
    return ask


def test_the_commit_is_git_s_or_a_given_one_or_unknown(commit_of, tmp_path):
    sources = tmp_path / "sources"
    (sources / "below").mkdir(parents=True)
    assert commit_of(sources)[0] == "unknown"
    assert commit_of(sources, "v1.2-3")[0] == "v1.2-3"
    assert commit_of(sources, 'no"commit')[0] == "unknown"
    git = ["git", "-C", sources, "-c", "user.name=n", "-c", "user.email=e@example.com"]
    (sources / "file").write_text("1")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert commit_of(sources)[0] == head[:12]
    assert commit_of(sources) == commit_of(sources), "the file is left alone when nothing is new"
    assert commit_of(sources / "below")[0] == "unknown", "of another repository, which holds these sources"
    (sources / "file").write_text("2")
    assert commit_of(sources)[0] == head[:12] + "-dirty"


@pytest.mark.parametrize("words, says", [
    ((), "subcommand is required"),
    (("run",), "--config is required"),
    (("check",), "FILE is required"),
    (("serve",), "unknown argument 'serve'"),
    (("run", "--conf", "x.yaml"), "unknown argument '--conf'"),
    (("check", "a.yaml", "b.yaml"), "unknown argument 'b.yaml'"),
    (("--verbose",), "unknown argument '--verbose'"),
])
def test_wrong_usage_is_named_with_the_right_usage_beside_it(words, says):
    done = run_cli(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert says in done.stderr.splitlines()[0]
    assert "bellhop run --config FILE" in done.stderr


@pytest.mark.parametrize("command, code", [(("run", "--config"), 1), (("check",), 2)])
def test_a_file_that_is_not_there_is_named(command, code, tmp_path):
    """It may come: `run` is then worth another try."""
    done = run_cli(*command, tmp_path / "none.yaml")
    assert done.returncode == code and done.stdout == ""
    assert done.stderr.startswith(f"{tmp_path}/none.yaml: cannot be read: No such file or directory")


def test_a_socket_in_a_folder_that_is_not_there_is_explained(tmp_path):
    config = tmp_path / "bellhop.yaml"
    config.write_text(f"listen: [{{ unix: {tmp_path}/none/bellhop.sock }}]\nbroker: {{ url: amqp://127.0.0.1:1 }}\n")
    done = run_cli("run", "--config", config)
    assert done.returncode == 1
    assert "none/bellhop.sock: cannot bind: No such file or directory; create the socket's folder" in done.stderr
