// The client steps with amqplib (see ../README.md). Arguments: an address (host:port, or the path of a Unix socket) and a prefix.
'use strict';

const amqp = require('amqplib');

const [address, prefix] = process.argv.slice(2);
const exchange = `${prefix}.events`;
const queue = `${prefix}.q`;

const SMALL = Buffer.from('hello bellhop');
const LARGE = Buffer.alloc(1 << 20);
for (let i = 0; i < LARGE.length; i++) LARGE[i] = i & 255;

function connect() {
  if (address.startsWith('/')) return amqp.connect('amqp://guest:guest@localhost', { path: address });
  return amqp.connect(`amqp://guest:guest@${address}`);
}

const same = (a, b) => (Buffer.compare(a, b) === 0 ? 'yes' : 'no');

function show(p) {
  const headers = p.headers === undefined ? '-' : `{${Object.keys(p.headers).sort().map((k) => `${k}=${p.headers[k]}`).join(',')}}`;
  return `content_type=${p.contentType} headers=${headers} delivery_mode=${p.deliveryMode} message_id=${p.messageId} ` +
    `correlation_id=${p.correlationId} type=${p.type}`;
}

const properties = (messageId, more) => ({ contentType: 'text/plain', persistent: true, messageId, ...more });

// The next event of an emitter, with a deadline.
function once(emitter, name) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${name} within 20 s`)), 20000);
    emitter.once(name, (value) => { clearTimeout(timer); resolve(value); });
  });
}

// A publish in confirm mode, settled with its outcome.
function publish(channel, ex, key, body, options) {
  return new Promise((resolve) => {
    channel.publish(ex, key, body, options, (error) => resolve(error ? 'nack' : 'ack'));
  });
}

async function main() {
  const connection = await connect();
  console.log('connected');

  const ch = await connection.createConfirmChannel();
  await ch.assertExchange(exchange, 'topic', { durable: true });
  await ch.assertQueue(queue, { durable: true });
  await ch.bindQueue(queue, exchange, 'order.#');
  console.log('declared');

  for (const [word, body, more] of [['small', SMALL, { headers: { region: 'eu', count: 7 } }], ['large', LARGE, {}]]) {
    const outcome = await publish(ch, exchange, `order.${word}`, body,
      properties(`m-${word}`, { correlationId: 'c', type: 'order', ...more }));
    console.log(`published ${word} size=${body.length} ${outcome}`);
  }

  await ch.prefetch(10);
  let got = 0;
  let finish;
  const both = new Promise((resolve, reject) => {
    finish = resolve;
    setTimeout(() => reject(new Error('no two deliveries within 20 s')), 20000).unref();
  });
  const { consumerTag } = await ch.consume(queue, (m) => {
    const expected = m.fields.routingKey === 'order.small' ? SMALL : LARGE;
    console.log(`consumed key=${m.fields.routingKey} redelivered=${m.fields.redelivered} size=${m.content.length} ` +
      `same=${same(m.content, expected)} ${show(m.properties)}`);
    ch.ack(m);
    if (++got === 2) finish();
  });
  await both;
  await ch.cancel(consumerTag);

  const returned = await connection.createConfirmChannel();
  const comesBack = once(returned, 'return');
  const body = LARGE.subarray(0, 70000);
  const outcome = await publish(returned, exchange, 'nobody.wants.this', body, properties('m-return', { headers: { a: 1 }, mandatory: true }));
  const m = await comesBack;
  console.log(`return code=${m.fields.replyCode} text=${m.fields.replyText} exchange=${m.fields.exchange === exchange} ` +
    `key=${m.fields.routingKey} size=${m.content.length} same=${same(m.content, body)} ${show(m.properties)} then ${outcome}`);
  await returned.close();

  const text = Buffer.from('to be got');
  await publish(ch, '', queue, text, properties('m-get'));
  let g = await ch.get(queue);
  console.log(`get size=${g.content.length} same=${same(g.content, text)} redelivered=${g.fields.redelivered} ` +
    `left=${g.fields.messageCount} ${show(g.properties)}`);
  ch.nack(g, false, true);
  g = await ch.get(queue);
  console.log(`get size=${g.content.length} same=${same(g.content, text)} redelivered=${g.fields.redelivered}`);
  ch.ack(g);
  console.log(`get empty=${(await ch.get(queue)) === false ? 'yes' : 'no'}`);

  const exclusive = (await ch.assertQueue('', { exclusive: true })).queue;
  console.log(`exclusive named=${exclusive.startsWith('amq.gen-') ? 'yes' : 'no'}`);
  const other = await connect();
  const foreign = await other.createChannel();
  foreign.on('error', () => {});
  try {
    await foreign.checkQueue(exclusive);
    console.log('exclusive: the other connection may use it');
  } catch (error) {
    console.log(`exclusive other connection: ${error.code}`);
  }
  await other.close();

  // amqplib has no transactions in its own interface; its channels can send any method of the protocol.
  const defs = require('amqplib/lib/defs');
  const tx = await connection.createChannel();
  const count = async () => (await ch.checkQueue(queue)).messageCount;
  await tx.rpc(defs.TxSelect, {}, defs.TxSelectOk);
  tx.sendToQueue(queue, SMALL, properties('m-tx-1'));
  tx.sendToQueue(queue, LARGE.subarray(0, 100000), properties('m-tx-2'));
  console.log(`tx before commit count=${await count()}`);
  await tx.rpc(defs.TxCommit, {}, defs.TxCommitOk);
  console.log(`tx committed count=${await count()}`);
  for (const expected of [SMALL, LARGE.subarray(0, 100000)]) {
    g = await ch.get(queue, { noAck: true });
    console.log(`tx got size=${g.content.length} same=${same(g.content, expected)} message_id=${g.properties.messageId}`);
  }
  tx.sendToQueue(queue, SMALL, properties('m-tx-3'));
  tx.sendToQueue(queue, LARGE.subarray(0, 100000), properties('m-tx-4'));
  await tx.rpc(defs.TxRollback, {}, defs.TxRollbackOk);
  console.log(`tx rolled back count=${await count()}`);
  await tx.close();

  const rpc = await connection.createChannel();
  const reply = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('no reply within 20 s')), 20000).unref();
    rpc.consume('amq.rabbitmq.reply-to', resolve, { noAck: true }).then(() =>
      rpc.sendToQueue(queue, Buffer.from('question'), properties('m-rpc', { replyTo: 'amq.rabbitmq.reply-to', correlationId: 'rpc-1' })));
  });
  let question = false;
  while (!question) question = await ch.get(queue);
  ch.publish('', question.properties.replyTo, Buffer.concat([Buffer.from('answer to '), question.content]),
    { correlationId: question.properties.correlationId });
  ch.ack(question);
  const answer = await reply;
  console.log(`rpc correlation_id=${answer.properties.correlationId} reply=${answer.content}`);
  await rpc.close();

  const broken = await connection.createChannel();
  broken.on('error', () => {});
  try {
    await broken.checkQueue(`${prefix}.missing`);
  } catch (error) {
    console.log(`missing queue: ${error.code} ${error.message.replace(prefix, 'PREFIX')}`);
  }
  console.log(`the first channel is open, count=${await count()}`);

  await ch.deleteQueue(queue);
  await connection.close();
  console.log('closed');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
