"""A real S3 server on loopback for the tests, and a client of its own to look into its buckets.

    with S3rver(folder) as server:                   # npm's @20minutes/s3rver: checks signatures; no If-Match, no list of uploads
        stores = {"archive": server.store(prefix="a/")}   # a `type: s3` entry for bellhop's configuration
        server.names("a/"), server.get("a/KEY")

`ceph.py` has the same for Ceph's radosgw. npm's packages are in build/s3rver (test/run installs them), else where
BELLHOP_TEST_S3RVER_MODULES says.
"""

import datetime
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import urllib.parse

from .bellhop import ROOT
from .rabbitmq import free_port

MODULES = pathlib.Path(os.environ.get("BELLHOP_TEST_S3RVER_MODULES", ROOT / "build" / "s3rver" / "node_modules"))
REGION = "us-east-1"


def signing_key(secret, date, region):
    key = ("AWS4" + secret).encode()
    for part in (date, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def signature(secret, region, method, path, query, headers, signed, payload_hash, stamp):
    """Signature Version 4 as its specification has it: `signed` names in order, `query` a list of encoded pairs."""
    names = sorted(signed)
    canonical = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in sorted(query)),
                           *(f"{n}:{headers[n].strip()}" for n in names), "", ";".join(names), payload_hash])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    return hmac.new(signing_key(secret, stamp[:8], region), text.encode(), hashlib.sha256).hexdigest()


def is_signed(request, secret, region=REGION):
    """Whether a request that an S3Proxy recorded has the signature that its specification demands; that of every x-amz header too."""
    fields = dict(part.split("=", 1) for part in re.split(r",\s*|\s+", request.headers["authorization"])[1:])
    signed = fields["SignedHeaders"].split(";")
    assert "host" in signed and all(name in signed for name in request.headers if name.startswith("x-amz-")), signed
    path, _, query = request.target.partition("?")
    pairs = [tuple(part.split("=", 1)) for part in query.split("&")] if query else []
    return fields["Signature"] == signature(secret, region, request.method, path, pairs, request.headers, signed,
                                            request.headers["x-amz-content-sha256"], request.headers["x-amz-date"])


class S3Client:
    """Signed requests to one server, path style."""

    def __init__(self, endpoint, access_key, secret_key, ca=None):
        self.endpoint, self.access_key, self.secret_key, self.ca = endpoint, access_key, secret_key, ca

    def request(self, method, path, query=(), body=b""):
        """(status, headers, body) of a request; raises nothing for an HTTP error."""
        url = urllib.parse.urlsplit(self.endpoint)
        query = [(urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~")) for k, v in query]
        path = urllib.parse.quote(path, safe="/-_.~")
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        payload_hash = hashlib.sha256(body).hexdigest()
        headers = {"host": url.netloc, "x-amz-content-sha256": payload_hash, "x-amz-date": stamp}
        made = signature(self.secret_key, REGION, method, path, query, headers, list(headers), payload_hash, stamp)
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.access_key}/{stamp[:8]}/{REGION}/s3/aws4_request,"
                                    f"SignedHeaders={';'.join(sorted(headers))},Signature={made}")
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(url.netloc, context=ssl.create_default_context(cafile=self.ca), timeout=60)
        else:
            connection = http.client.HTTPConnection(url.netloc, timeout=60)
        try:
            target = path + ("?" + "&".join(f"{k}={v}" for k, v in sorted(query)) if query else "")
            connection.request(method, target, body=body or None, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


class S3Server:
    """What the servers have in common. `endpoint`, `access_key`, `secret_key`, `bucket`, and for https `ca`."""

    bucket = "claims"
    ca = None
    endpoint = access_key = secret_key = None
    lists_uploads = True

    @property
    def client(self):
        return S3Client(self.endpoint, self.access_key, self.secret_key, self.ca)

    @property
    def address(self):
        return self.endpoint.split("://", 1)[1]

    def store(self, **keys):
        return {"type": "s3", "endpoint": self.endpoint, "region": REGION, "bucket": self.bucket, "access_key": self.access_key,
                "secret_key": self.secret_key, **keys}

    def expect(self, status, answer):
        assert answer[0] == status, answer
        return answer

    def make_bucket(self, bucket):
        self.expect(200, self.client.request("PUT", f"/{bucket}"))

    def names(self, prefix=""):
        """The objects' names under the prefix."""
        _, _, body = self.expect(200, self.client.request("GET", f"/{self.bucket}", [("list-type", "2"), ("prefix", prefix)]))
        return sorted(re.findall(r"<Key>([^<]*)</Key>", body.decode()))

    def get(self, name):
        return self.expect(200, self.client.request("GET", f"/{self.bucket}/{name}"))[2]

    def put(self, name, body):
        self.expect(200, self.client.request("PUT", f"/{self.bucket}/{name}", body=body))

    def delete(self, name):
        self.expect(204, self.client.request("DELETE", f"/{self.bucket}/{name}"))

    def uploads(self, prefix=""):
        """Ids of the multipart uploads that were begun and not completed."""
        _, _, body = self.expect(200, self.client.request("GET", f"/{self.bucket}", [("prefix", prefix), ("uploads", "")]))
        return re.findall(r"<UploadId>([^<]*)</UploadId>", body.decode())

    def begin_upload(self, name):
        _, _, body = self.expect(200, self.client.request("POST", f"/{self.bucket}/{name}", [("uploads", "")]))
        return re.search(r"<UploadId>([^<]*)</UploadId>", body.decode()).group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class S3rver(S3Server):
    """`tls`: (certificate file, key file, CA file). It has a flaw: deleting the only object of a prefix takes along what is being put
    there at that moment. So a test with a prefix waits for bellhop's probe, or does without."""

    access_key = secret_key = "S3RVER"
    lists_uploads = False

    def __init__(self, folder, buckets=("claims",), tls=None, port=None):
        self.folder, self.buckets, self.tls = pathlib.Path(folder), list(buckets), tls
        self.port = port or free_port()
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.ca = tls[2] if tls else None
        self.process = None
        self.start()

    def start(self):
        options = {"directory": str(self.folder / "objects"), "port": self.port, "buckets": self.buckets}
        if self.tls:
            options |= {"cert": str(self.tls[0]), "key": str(self.tls[1])}
        self.log = open(self.folder / "s3rver.log", "ab")
        self.process = subprocess.Popen(["node", str(ROOT / "test/support/s3rver/serve.js"), json.dumps(options)],
                                        env={**os.environ, "NODE_PATH": str(MODULES)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log)
        line = self.process.stdout.readline()
        assert line, f"s3rver did not start: {(self.folder / 's3rver.log').read_text()[-2000:]}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


def certificates(folder):
    """A private CA and a certificate for localhost, *.localhost and 127.0.0.1: (certificate, key, CA)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=a private CA", "-keyout", "ca.key", "-out", "ca.pem",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "ext").write_text("subjectAltName=DNS:localhost,DNS:*.s3.localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", "ext",
            "-out", "server.pem")
    return folder / "server.pem", folder / "server.key", folder / "ca.pem"
