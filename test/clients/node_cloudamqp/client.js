// The client steps with @cloudamqp/amqp-client (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
'use strict';

const { AMQPClient, AMQPSession } = require('@cloudamqp/amqp-client');
const { SMALL, BINARY, LARGE, seen, yes, show, deadline, later, input, run } = require('../node_common');

const [address, prefix, queueType] = process.argv.slice(2);
const exchange = `${prefix}.events`;
const queue = `${prefix}.q`;

// Its options for TLS are handed to net.connect as they are: a path there is a Unix socket's.
const url = address.startsWith('/') ? 'amqp://guest:guest@localhost' : `amqp://guest:guest@${address}`;
const socketOptions = address.startsWith('/') ? { path: address } : undefined;

const quiet = (client) => Object.assign(client, { onerror: () => {} });
const connect = () => quiet(new AMQPClient(url, socketOptions)).connect();
const body = (m) => Buffer.from(m.body);
const properties = (messageId, more) => ({ contentType: 'text/plain', deliveryMode: 2, messageId, ...more });

// On a confirming channel basicPublish settles with the confirm, and fails on a nack.
const send = (ch, messageId, data, more) => ch.basicPublish('', queue, data, properties(messageId, more));

// Consumes until onMessage says that it has enough.
async function consume(ch, onMessage) {
  const enough = later('delivery');
  const consumer = await ch.basicConsume(queue, { noAck: false }, async (m) => { if (await onMessage(m)) enough.resolve(); });
  await enough.promise;
  await consumer.cancel();
}

async function transaction(connection, ch) {
  const tx = await connection.channel();
  await tx.txSelect();
  await send(tx, 'm-tx-1', SMALL);
  await send(tx, 'm-tx-2', LARGE.subarray(0, 100000));
  console.log(`transaction: before the commit empty=${yes(!await ch.basicGet(queue, { noAck: false }))}`);
  await tx.txCommit();
  for (let i = 0; i < 2; i++) {
    const m = await ch.basicGet(queue, { noAck: true });
    console.log(`transaction: committed ${m.properties.messageId} ${seen(body(m))}`);
  }
  await send(tx, 'm-tx-3', SMALL);
  await send(tx, 'm-tx-4', LARGE.subarray(0, 100000));
  await tx.txRollback();
  console.log(`transaction: rolled back empty=${yes(!await ch.basicGet(queue, { noAck: false }))}`);
  await tx.close();
}

async function rpc(connection, ch) {
  const asking = await connection.channel();
  const answer = later('reply');
  await asking.basicConsume('amq.rabbitmq.reply-to', { noAck: true }, answer.resolve);
  await send(asking, 'm-rpc', 'question', { replyTo: 'amq.rabbitmq.reply-to', correlationId: 'rpc-1' });
  let question;
  while (!question) question = await ch.basicGet(queue, { noAck: false });
  await ch.basicPublish('', question.properties.replyTo, `answer to ${question.bodyString()}`, { correlationId: question.properties.correlationId });
  await question.ack();
  const m = await answer.promise;
  console.log(`rpc: correlation_id=${m.properties.correlationId} ${m.bodyString()}`);
  await asking.close();
}

async function refused(connection, name, shownAs) {
  const ch = await connection.channel();
  ch.onerror = () => {};
  await ch.queueDeclare(name, { passive: true }).catch((error) => console.log(`refused: ${error.message.replace(name, shownAs)}`));
}

// A session reconnects by itself; what was declared and subscribed on it is there again afterwards.
async function restart() {
  const lost = later('loss');
  const connected = later('reconnection');
  const found = later('delivery');
  let connections = 0;
  const session = await AMQPSession.connect(url, {
    tlsOptions: socketOptions,
    reconnectInterval: 50,
    ondisconnect: (error) => { const code = /\((\d+)\)$/.exec(error ? error.message : ''); lost.resolve(code ? code[1] : '-'); },
    onconnect: () => { if (++connections === 2) connected.resolve(); },
  });
  const q = await session.queue(queue, { durable: true, arguments: { 'x-queue-type': queueType } });
  const lines = input();
  console.log('ready for restart');
  await lines.next();
  console.log(`lost: ${await lost.promise}`);
  await lines.next();
  lines.end();
  await connected.promise;
  const m = await q.get({ noAck: true });
  console.log(`restart: kept ${m.properties.messageId} ${seen(body(m))}`);
  const subscription = await q.subscribe({ prefetch: 2 }, (d) => found.resolve(d));
  await q.publish(LARGE.subarray(0, 120000), properties('m-after'));
  const d = await found.promise;
  console.log(`restart: consumed ${d.properties.messageId} ${seen(body(d))}`);
  await subscription.cancel();
  await q.delete();
  await session.stop();
}

async function main() {
  const connection = await connect();
  console.log('connect: open');
  console.log(`limits: channel_max=${connection.channelMax} frame_max=${connection.frameMax}`);

  const ch = await connection.channel();
  await ch.exchangeDeclare(exchange, 'topic', { durable: true });
  const declared = await ch.queueDeclare(queue, { durable: true }, { 'x-queue-type': queueType });
  await ch.queueBind(queue, exchange, 'order.#');
  await ch.confirmSelect();
  console.log(`declare: ${declared.name} messages=${declared.messageCount} consumers=${declared.consumerCount}`);

  for (const [word, data] of Object.entries({ small: SMALL, binary: BINARY, large: LARGE })) {
    await ch.basicPublish(exchange, `order.${word}`, data, properties(`m-${word}`, { correlationId: 'c', type: 'order' }));
    console.log(`publish: ${word} ${seen(data)} ack`);
  }

  await ch.prefetch(2);
  await consume(ch, async (m) => {
    console.log(`consume: key=${m.routingKey} tag=${m.deliveryTag} redelivered=${yes(m.redelivered)} ${seen(body(m))} ${show(m.properties)}`);
    await m.ack();
    return m.routingKey === 'order.large';
  });

  await ch.basicPublish('', queue, SMALL);
  let m = await ch.basicGet(queue, { noAck: true });
  console.log(`bare: delivery_mode=${m.properties.deliveryMode || '-'} message_id=${m.properties.messageId || '-'}`);

  await ch.basicPublish(exchange, 'order.headers', SMALL, properties('m-headers', { headers: {
    string: 'grüß', bytes: Buffer.from([0, 255]), true: true, int: -70000, long: 2 ** 40, big: 2n ** 60n, double: 2.25,
    time: new Date(1715947200000), table: { a: { b: 'c' } }, array: [1, 'two', { three: 3 }], void: null,
  } }));
  m = await ch.basicGet(queue, { noAck: true });
  for (const [name, value] of Object.entries(m.properties.headers).sort()) {
    console.log(`headers: ${name}=${JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))}`);
  }

  const returning = await connection.channel();
  const comesBack = later('return');
  await returning.confirmSelect();
  returning.onReturn = comesBack.resolve;
  await returning.basicPublish(exchange, 'nobody.wants.this', LARGE.subarray(0, 70000), properties('m-return'), true);
  m = await comesBack.promise;
  console.log(`return: code=${m.replyCode} text=${m.replyText} exchange=${m.exchange} key=${m.routingKey} ${seen(body(m))} ${show(m.properties)} then ack`);
  await returning.close();

  await send(ch, 'm-nack', LARGE.subarray(0, 80000));
  await consume(ch, async (d) => {
    console.log(`nack: redelivered=${yes(d.redelivered)} ${seen(body(d))}`);
    await (d.redelivered ? d.ack() : d.nack(true));
    return d.redelivered;
  });

  await send(ch, 'm-get', LARGE.subarray(0, 90000));
  m = await ch.basicGet(queue, { noAck: false });
  console.log(`get: redelivered=${yes(m.redelivered)} left=${m.messageCount} ${seen(body(m))} ${show(m.properties)}`);
  await m.ack();
  console.log(`get: empty=${yes(!await ch.basicGet(queue, { noAck: false }))}`);

  await transaction(connection, ch);
  await rpc(connection, ch);

  const exclusive = (await ch.queueDeclare('', { exclusive: true })).name;
  const other = await connect();
  await refused(other, exclusive, 'EXCLUSIVE');
  await other.close();
  await refused(connection, `${prefix}.missing`, `${prefix}.missing`);

  await send(ch, 'm-kept', LARGE.subarray(0, 110000));
  await deadline(connection.close(), 'close');
  await restart();
  console.log('close: clean');
}

run(main);
