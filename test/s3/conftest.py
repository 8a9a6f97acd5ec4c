"""The S3 servers that the tests of this folder run against: s3rver always, Ceph's radosgw when BELLHOP_TEST_CEPH is set
(`test/run --ceph`). What s3rver cannot do (see support/s3.py) is asked of Ceph alone, by the fixture `ceph`."""

import os

import pytest

from support.s3 import S3rver, certificates
from support.s3_proxy import S3Proxy

WITH_CEPH = bool(os.environ.get("BELLHOP_TEST_CEPH"))


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def plain_s3rver(tmp_path_factory):
    with S3rver(tmp_path_factory.mktemp("s3rver")) as server:
        yield server


@pytest.fixture(scope="session")
def tls_s3rver(tmp_path_factory, tls):
    with S3rver(tmp_path_factory.mktemp("s3rver-tls"), tls=tls) as server:
        yield server


@pytest.fixture(scope="session")
def ceph_node(tmp_path_factory):
    if not WITH_CEPH:
        pytest.skip("only with test/run --ceph")
    from support.ceph import Ceph
    with Ceph(tmp_path_factory.mktemp("ceph")) as server:
        yield server


@pytest.fixture
def ceph(ceph_node):
    return ceph_node


@pytest.fixture(params=["s3rver", *(["ceph"] if WITH_CEPH else [])])
def s3(request):
    """A server over http: each that this run has."""
    return request.getfixturevalue({"s3rver": "plain_s3rver", "ceph": "ceph_node"}[request.param])


@pytest.fixture
def own_s3(tmp_path):
    """A server that the test may kill."""
    with S3rver(tmp_path) as server:
        yield server


@pytest.fixture
def proxy(request):
    """Stands before `s3` when the test uses that, else before `plain_s3rver`."""
    server = request.getfixturevalue("s3" if "s3" in request.fixturenames else "plain_s3rver")
    with S3Proxy(server.address) as proxy:
        yield proxy
