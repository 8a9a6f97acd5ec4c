// What the Node programs share: the bodies, how a message is shown, waiting with a deadline, the lines of standard input.
'use strict';

const { createHash } = require('crypto');
const { createInterface } = require('readline');

const SMALL = Buffer.from('hello bellhop');
const BINARY = Buffer.from([0xac, 1, 1, ...Array(256).keys()]); // looks like a claim check, and is none
const LARGE = Buffer.from(Array.from({ length: 655360 }, (_, i) => String(i).padStart(8, '0')).join('')); // 5 MiB

const seen = (body) => `bytes=${body.length} md5=${createHash('md5').update(body).digest('hex')}`;
const yes = (value) => (value ? 'yes' : 'no');
const show = (p) => `content_type=${p.contentType} delivery_mode=${p.deliveryMode} message_id=${p.messageId} ` +
  `correlation_id=${p.correlationId} type=${p.type}`;

function deadline(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no ${what} within 20 s`)), 20000); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// A promise and the function that settles it.
function later(what) {
  let resolve;
  const promise = new Promise((r) => { resolve = r; });
  return { promise: deadline(promise, what), resolve };
}

// The lines of standard input, one for each next().
function input() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  return { next: () => lines.next(), end: () => process.stdin.destroy() };
}

function run(main) {
  main().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { SMALL, BINARY, LARGE, seen, yes, show, deadline, later, input, run };
