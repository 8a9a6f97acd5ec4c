"""Holds a schema against a sample, and against small files that it has to accept or to refuse.

Usage: schema_check.py SCHEMA SAMPLE. Says what is wrong and ends with 1; silent and 0 when all is well.
"""

import json
import sys

import jsonschema
import yaml

BROKER = "broker: { url: amqp://localhost }\n"

GOOD = {
    "the smallest file": BROKER + "stores: { claims: { type: filesystem, path: /claims } }",
    "a list of URLs": "broker: { url: [amqp://a, 'amqp://u:p@b:5673/v'] }",
    "TLS": "broker: { url: 'amqps://a:5671/v', tls: { ca: x, cert: y, key: z, verify: false, server_name: s } }",
    "a Unix socket": "broker: { url: ['amqp+unix:///run/s', 'amqp+unix://u:p@/run/s?vhost=%2F'] }",
    "expansions": "broker: { url: '${URL}', username: '${U:-}', password: '${file:/p}', heartbeat: '${H:-30s}' }",
    "a route without anything": BROKER + "routes: [{ name: a }]",
    "a bucket": BROKER + "stores: { a: { type: s3, bucket: claims } }",
    "a bucket with all of it": BROKER + "stores: { a: { type: s3, endpoint: 'http://h:1', region: r, bucket: '${B}', prefix: a/b/, path_style: false,"
                               " access_key: '${A:-}', secret_key: s, session_token: t, sse: 'aws:kms:k', timeout: 1s, retries: 0, probe: false } }",
    "zeros": BROKER + "claim_check: { threshold: 0 }\nconsume: { hold_max: 0 }",
    "admin": BROKER + "admin: { socket: /run/a.sock, tcp: '127.0.0.1:9419' }",
    "TCP": BROKER + "listen: [{ tcp: '127.0.0.1:5673' }, { tcp: '[::1]:1', anonymous: true }, { tcp: '0.0.0.0:1', users: { a: b } }]",
}

BAD = {
    "no broker": "service: x",
    "an unknown key": BROKER + "serivce: x",
    "S3 without a bucket": BROKER + "stores: { a: { type: s3 } }",
    "a prefix that needs escapes": BROKER + "stores: { a: { type: s3, bucket: claims, prefix: 'a b' } }",
    "an endpoint with a path": BROKER + "stores: { a: { type: s3, bucket: claims, endpoint: 'http://h/p' } }",
    "an unknown encryption": BROKER + "stores: { a: { type: s3, bucket: claims, sse: aes } }",
    "half of a key pair": BROKER + "stores: { a: { type: s3, bucket: claims, access_key: a } }",
    "spool": BROKER + "spool: { path: /x }",
    "a certificate without its key": "broker: { url: amqps://a, tls: { cert: x } }",
    "an unknown key of TLS": "broker: { url: amqps://a, tls: { password: x } }",
    "a Unix socket without a path": "broker: { url: 'amqp+unix://host' }",
    "a Unix socket with another query": "broker: { url: 'amqp+unix:///run/s?x=y' }",
    "a query": "broker: { url: 'amqp://a?x=y' }",
    "a user without a password": "broker: { url: amqp://a, username: x }",
    "a store of a type that there is not": BROKER + "stores: { a: { type: s3 } }",
    "retention without a unit": BROKER + "stores: { a: { type: filesystem, path: /x, retention: 30 } }",
    "retention of a memory store": BROKER + "stores: { a: { type: memory, retention: 30d } }",
    "a memory store with a path": BROKER + "stores: { a: { type: memory, path: /x } }",
    "a store without a path": BROKER + "stores: { a: { type: filesystem } }",
    "a threshold without a unit": BROKER + "claim_check: { threshold: 65536 }",
    "a negative threshold": BROKER + "claim_check: { threshold: -1B }",
    "a mode without quotes": BROKER + "listen: [{ unix: /x, mode: 0660 }]",
    "no listener": BROKER + "listen: []",
    "a listener of both kinds": BROKER + "listen: [{ unix: /x, tcp: 'a:1' }]",
    "users and anonymous": BROKER + "listen: [{ tcp: 'a:1', users: { a: b }, anonymous: true }]",
    "a step that is no name": BROKER + "pipelines: { p: { steps: ['a,b'] } }",
    "a step twice": BROKER + "pipelines: { p: { steps: [a, a] } }",
    "a route without a name": BROKER + "routes: [{ match: { exchange: a } }]",
    "durability": BROKER + "routes: [{ name: a, durability: confirm }]",
    "a slip of both kinds": BROKER + "routes: [{ name: a, slip: { pipeline: p, itinerary: [{ exchange: e }] } }]",
    "a slip beside to": BROKER + "routes: [{ name: a, slip: { pipeline: p }, to: { exchange: e } }]",
    "an empty to": BROKER + "routes: [{ name: a, to: {} }]",
    "a reserved header": BROKER + "routes: [{ name: a, headers: { bellhop-claim-key: x } }]",
    "no sessions": BROKER + "limits: { sessions: 0 }",
    "a level that there is not": BROKER + "log: { level: loud }",
}


def keys_of(schema):
    """Every key that the schema has somewhere."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema))
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return set(properties).union(*map(keys_of, schema.values()), *map(keys_of, properties.values()))


def keys_in(value):
    """Every key that a document has somewhere."""
    if isinstance(value, list):
        return set().union(*map(keys_in, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys_in, value.values()))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        sample = file.read()
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    wrong = []
    for name, text in {"the sample": sample, **GOOD}.items():
        for error in validator.iter_errors(yaml.safe_load(text)):
            wrong.append(f"{name}: refused at {list(error.absolute_path)}: {error.message}")
    for name, text in BAD.items():
        if validator.is_valid(yaml.safe_load(text)):
            wrong.append(f"{name}: accepted")

    # What an editor offers is what the sample shows.
    wrong.extend(f"the sample has no {key}" for key in sorted(keys_of(schema) - keys_in(yaml.safe_load(sample))))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
