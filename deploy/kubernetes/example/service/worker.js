// Takes scans from the step `validate` and sends each on to the next step. SOCKET: where bellhop is.
const amqp = require('amqplib');

async function main() {
  const connection = await amqp.connect('amqp://localhost', { path: process.env.SOCKET || '/run/bellhop/bellhop.sock' });
  const channel = await connection.createConfirmChannel();
  connection.on('error', (error) => { console.error(String(error)); process.exit(1); });
  await channel.prefetch(10);
  const { consumerTag } = await channel.consume('fulfilment.validate', (message) => {
    const headers = { ...message.properties.headers, 'bellhop-ack': message.fields.deliveryTag };
    channel.publish('bellhop.next', '', message.content, { ...message.properties, headers }, (error) => {
      if (!error) {
        console.log(`validated ${message.content.length} bytes`);
        return;
      }
      try {
        channel.nack(message);   // no hop was made: put it back
      } catch {}                 // the channel is closed, so the broker has put it back
    });
  });
  // It finishes what it has begun: nothing new comes, and what was sent on is confirmed.
  process.on('SIGTERM', async () => {
    await channel.cancel(consumerTag);
    await channel.waitForConfirms().catch(() => {});
    await connection.close();
  });
}

main().catch((error) => { console.error(String(error)); process.exit(1); });
