"""The services of AWS that give credentials, as they speak, on one port of loopback: a container's endpoint (ECS, EKS Pod Identity), an
instance's metadata (IMDSv2 alone), and STS with AssumeRoleWithWebIdentity.

    with AwsServices() as aws:
        env = aws.environment("container")      # or "web identity", "instance"; aws.folder has the token files
        aws.give("KEY", "SECRET", lasts=3600)   # what they answer with from now on
        aws.rule = lambda request: (500, {}, b"no")     # answered instead; aws.hang() keeps requests until aws.go_on()
        aws.requests                            # (method, path, headers, body) of each
"""

import datetime
import http.server
import json
import pathlib
import tempfile
import threading
import types
import urllib.parse
from xml.sax.saxutils import escape

ROLE = "bellhop-role"
ROLES = "/latest/meta-data/iam/security-credentials/"
METADATA_TOKEN = "AQAEAM-metadata-token=="
KINDS = ("container", "web identity", "instance")


class AwsServices:
    def __init__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="bellhop-aws-")
        self.folder = pathlib.Path(self._temporary.name)
        self.token = "eyJhbGciOi.pod.token"
        self.requests, self.rule = [], None
        self._go_on = threading.Event()
        self._go_on.set()
        self.give("S3RVER", "S3RVER")
        self.renew_token(self.token)
        self._serve(0)

    def _serve(self, port):
        aws = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def _any(self):
                request = types.SimpleNamespace(method=self.command, path=self.path, headers={k.lower(): v for k, v in self.headers.items()},
                                                body=self.rfile.read(int(self.headers.get("content-length") or 0)).decode())
                aws.requests.append(request)
                aws._go_on.wait()
                status, headers, body = (aws.rule and aws.rule(request)) or aws._answer(request)
                try:
                    self.send_response(status)
                    for name, value in {"content-length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass
                self.close_connection = True

            do_GET = do_PUT = do_POST = _any

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    # -- what the test does

    def give(self, access_key, secret_key, token="FwoGZXIvYXdz//token==", lasts=3600):
        self.keys, self.lasts = (access_key, secret_key, token), lasts

    def renew_token(self, token):
        self.token = token
        (self.folder / "token").write_text(token + "\n")

    def hang(self):
        self._go_on.clear()

    def go_on(self):
        self._go_on.set()

    def stop(self):
        self.go_on()
        self._http.shutdown()
        self._http.server_close()

    def start(self):
        self._serve(self.port)

    def environment(self, kind):
        own = {
            "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/v1/credentials",
                          "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.folder / "token")},
            "web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": str(self.folder / "token"), "AWS_ROLE_ARN": f"arn:aws:iam::1:role/{ROLE}",
                             "AWS_ROLE_SESSION_NAME": "orders", "AWS_ENDPOINT_URL_STS": self.url},
            "instance": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url + "/"},
        }[kind]
        return {"HOME": str(self.folder), "AWS_EC2_METADATA_DISABLED": "false", **own}

    def fetches(self):
        """How often credentials were asked for."""
        return len([r for r in list(self.requests) if r.path in ("/v1/credentials", "/", ROLES + ROLE)])

    # -- what the services do

    def _answer(self, request):
        if request.path == "/v1/credentials":
            if request.headers.get("authorization") != self.token:
                return self._json(401, {"code": "UnauthorizedException", "message": "the authorization token is not valid"})
            return self._json(200, {"RoleArn": f"arn:aws:iam::1:role/{ROLE}", **self._keys(), "Expiration": self._expiration()})
        if request.path == "/":
            return self._sts(dict(urllib.parse.parse_qsl(request.body)))
        if request.path == "/latest/api/token":
            if request.method != "PUT" or "x-forwarded-for" in request.headers:
                return 403, {}, b""
            if not request.headers.get("x-aws-ec2-metadata-token-ttl-seconds", "").isdigit():
                return 400, {}, b""
            return 200, {"content-type": "text/plain"}, METADATA_TOKEN.encode()
        if request.headers.get("x-aws-ec2-metadata-token") != METADATA_TOKEN:
            return 401, {"content-type": "text/html"}, b"<html>401 - Unauthorized</html>"
        if request.path == ROLES:
            return 200, {"content-type": "text/plain"}, ROLE.encode()
        if request.path == ROLES + ROLE:
            return self._json(200, {"Code": "Success", "LastUpdated": self._expiration(), "Type": "AWS-HMAC", **self._keys(),
                                    "Expiration": self._expiration()})
        return 404, {}, b""

    def _sts(self, form):
        if form.get("Action") != "AssumeRoleWithWebIdentity" or form.get("Version") != "2011-06-15" or "RoleArn" not in form:
            return self._sts_error(400, "InvalidAction", "what was asked for is not known")
        if form.get("WebIdentityToken") != self.token:
            return self._sts_error(400, "InvalidIdentityToken", "the token is not valid")
        key, secret, token = map(escape, self.keys)
        return 200, {"content-type": "text/xml"}, (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>'
            f"<SubjectFromWebIdentityToken>system:serviceaccount:a:b</SubjectFromWebIdentityToken><Credentials><AccessKeyId>{key}</AccessKeyId>"
            f"<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{self._expiration()}</Expiration>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>").encode()

    @staticmethod
    def _sts_error(status, code, message):
        return status, {"content-type": "text/xml"}, (f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>"
                                                      "</Error></ErrorResponse>").encode()

    @staticmethod
    def _json(status, body):
        return status, {"content-type": "application/json"}, json.dumps(body).encode()

    def _keys(self):
        return dict(zip(("AccessKeyId", "SecretAccessKey", "Token"), self.keys))

    def _expiration(self):
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.lasts)
        return until.strftime("%Y-%m-%dT%H:%M:%SZ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self._temporary.cleanup()
