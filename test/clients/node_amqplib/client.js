// The client steps with amqplib (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
'use strict';

const amqp = require('amqplib');
const defs = require('amqplib/lib/defs');
const { SMALL, BINARY, LARGE, seen, yes, show, deadline, input, run } = require('../node_common');

const [address, prefix, queueType] = process.argv.slice(2);
const exchange = `${prefix}.events`;
const queue = `${prefix}.q`;

function connect() {
  if (address.startsWith('/')) return amqp.connect('amqp://guest:guest@localhost', { path: address });
  return amqp.connect(`amqp://guest:guest@${address}`);
}

const properties = (messageId, more) => ({ contentType: 'text/plain', persistent: true, messageId, ...more });

const once = (emitter, name) => deadline(new Promise((resolve) => emitter.once(name, resolve)), name);

// A publish in confirm mode, settled with its outcome.
function publish(channel, ex, key, body, options) {
  return new Promise((resolve) => channel.publish(ex, key, body, options, (error) => resolve(error ? 'nack' : 'ack')));
}

// Consumes until onMessage says that it has enough.
async function consume(channel, onMessage) {
  let enough;
  const done = new Promise((resolve) => { enough = resolve; });
  const { consumerTag } = await channel.consume(queue, (m) => { if (onMessage(m)) enough(); });
  await deadline(done, 'delivery');
  await channel.cancel(consumerTag);
}

async function transaction(connection, ch) {
  // amqplib has no transactions in its own interface; its channels can send any method of the protocol.
  const tx = await connection.createChannel();
  await tx.rpc(defs.TxSelect, {}, defs.TxSelectOk);
  tx.sendToQueue(queue, SMALL, properties('m-tx-1'));
  tx.sendToQueue(queue, LARGE.subarray(0, 100000), properties('m-tx-2'));
  console.log(`transaction: before the commit empty=${yes(!await ch.get(queue))}`);
  await tx.rpc(defs.TxCommit, {}, defs.TxCommitOk);
  for (let i = 0; i < 2; i++) {
    const m = await ch.get(queue, { noAck: true });
    console.log(`transaction: committed ${m.properties.messageId} ${seen(m.content)}`);
  }
  tx.sendToQueue(queue, SMALL, properties('m-tx-3'));
  tx.sendToQueue(queue, LARGE.subarray(0, 100000), properties('m-tx-4'));
  await tx.rpc(defs.TxRollback, {}, defs.TxRollbackOk);
  console.log(`transaction: rolled back empty=${yes(!await ch.get(queue))}`);
  await tx.close();
}

async function rpc(connection, ch) {
  const asking = await connection.createChannel();
  let answered;
  const answer = new Promise((resolve) => { answered = resolve; });
  await asking.consume('amq.rabbitmq.reply-to', answered, { noAck: true });
  asking.sendToQueue(queue, Buffer.from('question'), properties('m-rpc', { replyTo: 'amq.rabbitmq.reply-to', correlationId: 'rpc-1' }));
  let question = false;
  while (!question) question = await ch.get(queue);
  ch.publish('', question.properties.replyTo, Buffer.concat([Buffer.from('answer to '), question.content]),
    { correlationId: question.properties.correlationId });
  ch.ack(question);
  const m = await deadline(answer, 'reply');
  console.log(`rpc: correlation_id=${m.properties.correlationId} ${m.content}`);
  await asking.close();
}

async function refused(connection, name, shownAs) {
  const ch = await connection.createChannel();
  const error = once(ch, 'error');
  await ch.checkQueue(name).catch(() => {});
  const { code, message } = await error;
  console.log(`refused: ${code} ${message.replace(name, shownAs)}`);
}

// amqplib does not reconnect by itself: a program does it when the connection says `close`.
async function restart(connection) {
  const lines = input();
  let reason;
  const closed = once(connection, 'close').then((why) => { reason = reason || why; });
  connection.on('error', (why) => { reason = why; });
  console.log('ready for restart');
  await lines.next();
  await closed;
  console.log(`lost: ${(reason && reason.code) || '-'}`);
  await lines.next();

  connection = await connect();
  const ch = await connection.createConfirmChannel();
  const m = await ch.get(queue, { noAck: true });
  console.log(`restart: kept ${m.properties.messageId} ${seen(m.content)}`);
  await publish(ch, '', queue, LARGE.subarray(0, 120000), properties('m-after'));
  await consume(ch, (d) => {
    console.log(`restart: consumed ${d.properties.messageId} ${seen(d.content)}`);
    ch.ack(d);
    return true;
  });
  lines.end();
  await ch.deleteQueue(queue);
  await connection.close();
}

async function main() {
  const connection = await connect();
  console.log('connect: open');
  console.log(`limits: channel_max=${connection.connection.channelMax} frame_max=${connection.connection.frameMax}`);

  const ch = await connection.createConfirmChannel();
  await ch.assertExchange(exchange, 'topic', { durable: true });
  const declared = await ch.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': queueType } });
  await ch.bindQueue(queue, exchange, 'order.#');
  console.log(`declare: ${declared.queue} messages=${declared.messageCount} consumers=${declared.consumerCount}`);

  for (const [word, body] of Object.entries({ small: SMALL, binary: BINARY, large: LARGE })) {
    const outcome = await publish(ch, exchange, `order.${word}`, body, properties(`m-${word}`, { correlationId: 'c', type: 'order' }));
    console.log(`publish: ${word} ${seen(body)} ${outcome}`);
  }

  await ch.prefetch(2);
  await consume(ch, (m) => {
    console.log(`consume: key=${m.fields.routingKey} tag=${m.fields.deliveryTag} redelivered=${yes(m.fields.redelivered)} ` +
      `${seen(m.content)} ${show(m.properties)}`);
    ch.ack(m);
    return m.fields.routingKey === 'order.large';
  });

  await publish(ch, '', queue, SMALL, {});
  let m = await ch.get(queue, { noAck: true });
  console.log(`bare: delivery_mode=${m.properties.deliveryMode || '-'} message_id=${m.properties.messageId || '-'}`);

  const typed = (type, value) => ({ '!': type, value });
  await publish(ch, exchange, 'order.headers', SMALL, properties('m-headers', { headers: {
    string: 'grüß', bytes: Buffer.from([0, 255]), true: true, byte: typed('int8', -7), short: typed('int16', -300), int: -70000, long: 2 ** 40,
    ubyte: typed('uint8', 200), ushort: typed('uint16', 60000), uint: typed('uint32', 4e9), float: typed('float', 0.5), double: 2.25,
    decimal: typed('decimal', { places: 2, digits: 314 }), time: typed('timestamp', 1715947200), table: { a: { b: 'c' } },
    array: [1, 'two', { three: 3 }], void: null,
  } }));
  m = await ch.get(queue, { noAck: true });
  for (const [name, value] of Object.entries(m.properties.headers).sort()) console.log(`headers: ${name}=${JSON.stringify(value)}`);

  const returning = await connection.createConfirmChannel();
  const comesBack = once(returning, 'return');
  const outcome = await publish(returning, exchange, 'nobody.wants.this', LARGE.subarray(0, 70000), properties('m-return', { mandatory: true }));
  m = await comesBack;
  console.log(`return: code=${m.fields.replyCode} text=${m.fields.replyText} exchange=${m.fields.exchange} key=${m.fields.routingKey} ` +
    `${seen(m.content)} ${show(m.properties)} then ${outcome}`);
  await returning.close();

  await publish(ch, '', queue, LARGE.subarray(0, 80000), properties('m-nack'));
  await consume(ch, (d) => {
    console.log(`nack: redelivered=${yes(d.fields.redelivered)} ${seen(d.content)}`);
    if (d.fields.redelivered) ch.ack(d); else ch.nack(d, false, true);
    return d.fields.redelivered;
  });

  await publish(ch, '', queue, LARGE.subarray(0, 90000), properties('m-get'));
  m = await ch.get(queue);
  console.log(`get: redelivered=${yes(m.fields.redelivered)} left=${m.fields.messageCount} ${seen(m.content)} ${show(m.properties)}`);
  ch.ack(m);
  console.log(`get: empty=${yes(!await ch.get(queue))}`);

  await transaction(connection, ch);
  await rpc(connection, ch);

  const exclusive = (await ch.assertQueue('', { exclusive: true })).queue;
  const other = await connect();
  await refused(other, exclusive, 'EXCLUSIVE');
  await other.close();
  await refused(connection, `${prefix}.missing`, `${prefix}.missing`);

  await publish(ch, '', queue, LARGE.subarray(0, 110000), properties('m-kept'));
  await restart(connection);
  console.log('close: clean');
}

run(main);
