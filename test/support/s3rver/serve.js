// serve.js '{"directory": ..., "port": ..., "buckets": [...], "key": FILE, "cert": FILE}': an S3 server on loopback that checks
// signatures. Prints its port when it listens, and ends with its standard input.
const fs = require('fs');
const S3rver = require('@20minutes/s3rver');

const { directory, port, buckets, key, cert } = JSON.parse(process.argv[2]);
const tls = key ? { key: fs.readFileSync(key), cert: fs.readFileSync(cert) } : {};
fs.mkdirSync(directory, { recursive: true });
new S3rver({
  address: '127.0.0.1', port, directory, silent: true, serviceEndpoint: 'localhost',
  configureBuckets: buckets.map((name) => ({ name })), ...tls,
}).run().then((address) => console.log(address.port));
process.stdin.on('end', () => process.exit(0)).resume();
