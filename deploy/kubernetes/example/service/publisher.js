// Publishes a scan of 200 kB each second, or COUNT of them at once, with confirms. SOCKET: where bellhop is.
const amqp = require('amqplib');

const count = Number(process.env.COUNT || 0);
let ending = false;
process.on('SIGTERM', () => { ending = true; });

async function main() {
  const connection = await amqp.connect('amqp://localhost', { path: process.env.SOCKET || '/run/bellhop/bellhop.sock' });
  const channel = await connection.createConfirmChannel();
  for (let number = 1; !ending && (count === 0 || number <= count); number++) {
    channel.publish('orders', 'order.new', Buffer.alloc(200_000, number), { contentType: 'image/tiff' });
    await channel.waitForConfirms();
    console.log(`published ${number}`);
    if (count === 0) await new Promise((go) => setTimeout(go, 1000));
  }
  await connection.close();
}

main().catch((error) => { console.error(String(error)); process.exit(1); });
