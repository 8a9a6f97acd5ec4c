// Takes scans from the step `validate` and sends each on to the next step. SOCKET: where bellhop is.
const amqp = require('amqplib');

async function main() {
  const connection = await amqp.connect('amqp://localhost', { path: process.env.SOCKET || '/run/bellhop/bellhop.sock' });
  const channel = await connection.createConfirmChannel();
  process.on('SIGTERM', () => connection.close());   // what was not acknowledged comes again
  connection.on('close', () => process.exit(0));
  connection.on('error', (error) => { console.error(String(error)); process.exit(1); });
  await channel.prefetch(10);
  await channel.consume('fulfilment.validate', (message) => {
    const headers = { ...message.properties.headers, 'bellhop-ack': message.fields.deliveryTag };
    channel.publish('bellhop.next', '', message.content, { ...message.properties, headers }, (error) => {
      if (error) {
        channel.nack(message);                        // no hop was made: put it back
        return;
      }
      console.log(`validated ${message.content.length} bytes`);
    });
  });
}

main().catch((error) => { console.error(String(error)); process.exit(1); });
