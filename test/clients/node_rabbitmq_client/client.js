// The client steps with rabbitmq-client (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
'use strict';

const { Connection } = require('rabbitmq-client');
const { SMALL, BINARY, LARGE, seen, yes, show, later, input, run } = require('../node_common');

const [address, prefix, queueType] = process.argv.slice(2);
const exchange = `${prefix}.events`;
const queue = `${prefix}.q`;

function connect() {
  const [hostname, port] = address.split(':');
  const where = address.startsWith('/') ? { socket: { path: address } } : { hostname, port };
  return new Connection({ ...where, username: 'guest', password: 'guest', retryLow: 50 });
}

// text/plain would be turned into a string, whatever its bytes.
const properties = (messageId, more) => ({ contentType: 'application/octet-stream', deliveryMode: 2, messageId, ...more });

// In confirm mode basicPublish settles with the confirm, and fails on a nack.
const send = (ch, messageId, body, more) => ch.basicPublish({ routingKey: queue, ...properties(messageId, more) }, body);

// Consumes until onMessage says that it has enough.
async function consume(ch, onMessage) {
  const enough = later('delivery');
  const { consumerTag } = await ch.basicConsume({ queue }, (m) => { if (onMessage(m)) enough.resolve(); });
  await enough.promise;
  await ch.basicCancel(consumerTag);
}

async function transaction(connection, ch) {
  const tx = await connection.acquire();
  await tx.txSelect();
  await send(tx, 'm-tx-1', SMALL);
  await send(tx, 'm-tx-2', LARGE.subarray(0, 100000));
  console.log(`transaction: before the commit empty=${yes(!await ch.basicGet(queue))}`);
  await tx.txCommit();
  for (let i = 0; i < 2; i++) {
    const m = await ch.basicGet({ queue, noAck: true });
    console.log(`transaction: committed ${m.messageId} ${seen(m.body)}`);
  }
  await send(tx, 'm-tx-3', SMALL);
  await send(tx, 'm-tx-4', LARGE.subarray(0, 100000));
  await tx.txRollback();
  console.log(`transaction: rolled back empty=${yes(!await ch.basicGet(queue))}`);
  await tx.close();
}

async function rpc(connection, ch) {
  const asking = await connection.acquire();
  const answer = later('reply');
  await asking.basicConsume({ queue: 'amq.rabbitmq.reply-to', noAck: true }, answer.resolve);
  await send(asking, 'm-rpc', Buffer.from('question'), { replyTo: 'amq.rabbitmq.reply-to', correlationId: 'rpc-1' });
  let question;
  while (!question) question = await ch.basicGet(queue);
  await ch.basicPublish({ routingKey: question.replyTo, correlationId: question.correlationId }, Buffer.concat([Buffer.from('answer to '), question.body]));
  ch.basicAck({ deliveryTag: question.deliveryTag });
  const m = await answer.promise;
  console.log(`rpc: correlation_id=${m.correlationId} ${m.body}`);
  await asking.close();
}

async function refused(connection, name, shownAs) {
  const ch = await connection.acquire();
  await ch.queueDeclare({ queue: name, passive: true }).catch((error) => console.log(`refused: ${error.code} ${error.message.replace(name, shownAs)}`));
}

async function main() {
  const connection = connect();
  let lost; // rabbitmq-client reconnects by itself
  connection.on('error', (error) => lost && lost.resolve(error.code === 'CONN_CLOSE' ? '-' : error.code));
  await connection.onConnect();
  console.log('connect: open');
  console.log('limits: not in this library');

  const ch = await connection.acquire();
  await ch.exchangeDeclare({ exchange, type: 'topic', durable: true });
  const declared = await ch.queueDeclare({ queue, durable: true, arguments: { 'x-queue-type': queueType } });
  await ch.queueBind({ queue, exchange, routingKey: 'order.#' });
  await ch.confirmSelect();
  console.log(`declare: ${declared.queue} messages=${declared.messageCount} consumers=${declared.consumerCount}`);

  for (const [word, body] of Object.entries({ small: SMALL, binary: BINARY, large: LARGE })) {
    await ch.basicPublish({ exchange, routingKey: `order.${word}`, ...properties(`m-${word}`, { correlationId: 'c', type: 'order' }) }, body);
    console.log(`publish: ${word} ${seen(body)} ack`);
  }

  await ch.basicQos({ prefetchCount: 2 });
  await consume(ch, (m) => {
    console.log(`consume: key=${m.routingKey} tag=${m.deliveryTag} redelivered=${yes(m.redelivered)} ${seen(m.body)} ${show(m)}`);
    ch.basicAck({ deliveryTag: m.deliveryTag });
    return m.routingKey === 'order.large';
  });

  await ch.basicPublish({ routingKey: queue }, SMALL);
  let m = await ch.basicGet({ queue, noAck: true });
  console.log(`bare: delivery_mode=${m.deliveryMode || '-'} message_id=${m.messageId || '-'}`);

  await ch.basicPublish({ exchange, routingKey: 'order.headers', ...properties('m-headers', { headers: {
    string: 'grüß', true: true, byte: -7, short: -300, int: -70000, long: 2 ** 40, big: 2n ** 60n, double: 2.25,
    table: { a: { b: 'c' } }, array: [1, 'two', { three: 3 }], void: null,
  } }) }, SMALL);
  m = await ch.basicGet({ queue, noAck: true });
  for (const [name, value] of Object.entries(m.headers).sort()) {
    console.log(`headers: ${name}=${JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))}`);
  }

  const returning = await connection.acquire();
  const comesBack = later('return');
  await returning.confirmSelect();
  returning.on('basic.return', comesBack.resolve);
  await returning.basicPublish({ exchange, routingKey: 'nobody.wants.this', mandatory: true, ...properties('m-return') }, LARGE.subarray(0, 70000));
  m = await comesBack.promise;
  console.log(`return: code=${m.replyCode} text=${m.replyText} exchange=${m.exchange} key=${m.routingKey} ${seen(m.body)} ${show(m)} then ack`);
  await returning.close();

  await send(ch, 'm-nack', LARGE.subarray(0, 80000));
  await consume(ch, (d) => {
    console.log(`nack: redelivered=${yes(d.redelivered)} ${seen(d.body)}`);
    if (d.redelivered) ch.basicAck({ deliveryTag: d.deliveryTag }); else ch.basicNack({ deliveryTag: d.deliveryTag, requeue: true });
    return d.redelivered;
  });

  await send(ch, 'm-get', LARGE.subarray(0, 90000));
  m = await ch.basicGet(queue);
  console.log(`get: redelivered=${yes(m.redelivered)} left=${m.messageCount} ${seen(m.body)} ${show(m)}`);
  ch.basicAck({ deliveryTag: m.deliveryTag });
  console.log(`get: empty=${yes(!await ch.basicGet(queue))}`);

  await transaction(connection, ch);
  await rpc(connection, ch);

  const exclusive = (await ch.queueDeclare({ exclusive: true })).queue;
  const other = connect();
  await refused(other, exclusive, 'EXCLUSIVE');
  await other.close();
  await refused(connection, `${prefix}.missing`, `${prefix}.missing`);

  // A consumer and a publisher outlive the connection that they were made on.
  const after = later('delivery');
  await send(ch, 'm-kept', LARGE.subarray(0, 110000));
  const publisher = connection.createPublisher({ confirm: true, maxAttempts: 5 });
  lost = later('loss');
  const lines = input();
  console.log('ready for restart');
  await lines.next();
  console.log(`lost: ${await lost.promise}`);
  await lines.next();
  lines.end();
  await connection.onConnect();
  m = await connection.basicGet({ queue, noAck: true });
  console.log(`restart: kept ${m.messageId} ${seen(m.body)}`);
  const consumer = connection.createConsumer({ queue, queueOptions: { passive: true }, qos: { prefetchCount: 2 } }, (d) => {
    after.resolve(d);
  });
  await publisher.send({ routingKey: queue, ...properties('m-after') }, LARGE.subarray(0, 120000));
  m = await after.promise;
  console.log(`restart: consumed ${m.messageId} ${seen(m.body)}`);
  await consumer.close();
  await publisher.close();
  await connection.queueDelete(queue);
  await connection.close();
  console.log('close: clean');
}

run(main);
