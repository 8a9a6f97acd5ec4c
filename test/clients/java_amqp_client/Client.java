import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The client steps with amqp-client (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type. */
public final class Client {
  private static final byte[] SMALL = "hello bellhop".getBytes(StandardCharsets.UTF_8);
  private static final byte[] BINARY = binary(); // looks like a claim check, and is none
  private static final byte[] LARGE = large(); // 5 MiB

  private interface Enough {
    boolean test(Delivery delivery) throws IOException;
  }

  private final String address;
  private final String prefix;
  private final String queueType;
  private final String exchange;
  private final String queue;
  private final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));

  private Client(String address, String prefix, String queueType) {
    this.address = address;
    this.prefix = prefix;
    this.queueType = queueType;
    this.exchange = prefix + ".events";
    this.queue = prefix + ".q";
  }

  private static byte[] binary() {
    byte[] bytes = new byte[3 + 256];
    bytes[0] = (byte) 0xac;
    bytes[1] = 1;
    bytes[2] = 1;
    for (int i = 0; i < 256; i++) {
      bytes[3 + i] = (byte) i;
    }
    return bytes;
  }

  private static byte[] large() {
    byte[] bytes = new byte[5 << 20];
    for (int i = 0; i < bytes.length / 8; i++) {
      for (int digit = 7, rest = i; digit >= 0; digit--, rest /= 10) {
        bytes[8 * i + digit] = (byte) ('0' + rest % 10);
      }
    }
    return bytes;
  }

  private static byte[] large(int size) {
    return Arrays.copyOf(LARGE, size);
  }

  private Connection connect() throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    if (address.startsWith("/")) {
      factory.setSocketFactory(new UnixSocketFactory(address));
    } else {
      factory.setHost(address.substring(0, address.indexOf(':')));
      factory.setPort(Integer.parseInt(address.substring(address.indexOf(':') + 1)));
    }
    factory.setNetworkRecoveryInterval(100);
    return factory.newConnection();
  }

  private static void line(String format, Object... values) {
    System.out.println(String.format(format, values));
  }

  private static String seen(byte[] body) throws Exception {
    byte[] digest = MessageDigest.getInstance("MD5").digest(body);
    return String.format("bytes=%d md5=%032x", body.length, new BigInteger(1, digest));
  }

  private static String yes(boolean value) {
    return value ? "yes" : "no";
  }

  private static String show(AMQP.BasicProperties p) {
    return String.format("content_type=%s delivery_mode=%s message_id=%s correlation_id=%s type=%s", p.getContentType(), p.getDeliveryMode(),
        p.getMessageId(), p.getCorrelationId(), p.getType());
  }

  private static AMQP.BasicProperties.Builder properties(String messageId) {
    return new AMQP.BasicProperties.Builder().contentType("text/plain").deliveryMode(2).messageId(messageId);
  }

  /** A publish in confirm mode, and its outcome. */
  private static String publish(Channel ch, String exchange, String key, boolean mandatory, AMQP.BasicProperties p, byte[] body) throws Exception {
    ch.basicPublish(exchange, key, mandatory, p, body);
    return ch.waitForConfirms(20000) ? "ack" : "nack";
  }

  /** Hands each delivery over in this thread, until that is enough. */
  private void consume(Channel ch, Enough enough) throws Exception {
    BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
    String tag = ch.basicConsume(queue, false, new DefaultConsumer(ch) {
      @Override
      public void handleDelivery(String consumer, Envelope envelope, AMQP.BasicProperties p, byte[] body) {
        deliveries.add(new Delivery(envelope, p, body));
      }
    });
    Delivery next;
    do {
      next = deliveries.poll(20, TimeUnit.SECONDS);
    } while (!enough.test(next));
    ch.basicCancel(tag);
  }

  private static String seenOf(Delivery d) {
    try {
      return seen(d.getBody());
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static String valueOf(Object value) {
    if (value instanceof byte[]) {
      return "byte[] " + Arrays.toString((byte[]) value);
    }
    if (value instanceof Date) {
      return "Date " + ((Date) value).getTime();
    }
    return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
  }

  private void headers(Channel ch) throws Exception {
    Map<String, Object> headers = new TreeMap<>();
    headers.put("string", "grüß");
    headers.put("bytes", new byte[] {0, (byte) 255});
    headers.put("true", true);
    headers.put("byte", (byte) -7);
    headers.put("short", (short) -300);
    headers.put("int", -70000);
    headers.put("long", 1L << 40);
    headers.put("float", 0.5f);
    headers.put("double", 2.25);
    headers.put("decimal", new BigDecimal("3.14"));
    headers.put("time", new Date(1715947200000L));
    headers.put("table", Map.of("a", Map.of("b", "c")));
    headers.put("array", List.of(1, "two", Map.of("three", 3)));
    headers.put("void", null);
    publish(ch, exchange, "order.headers", false, properties("m-headers").headers(headers).build(), SMALL);
    for (Map.Entry<String, Object> header : new TreeMap<>(ch.basicGet(queue, true).getProps().getHeaders()).entrySet()) {
      line("headers: %s=%s", header.getKey(), valueOf(header.getValue()));
    }
  }

  private void returned(Connection connection) throws Exception {
    Channel ch = connection.createChannel();
    ch.confirmSelect();
    CompletableFuture<String> returned = new CompletableFuture<>();
    ch.addReturnListener((code, text, from, key, p, body) -> {
      Delivery m = new Delivery(null, p, body);
      returned.complete(String.format("code=%d text=%s exchange=%s key=%s %s %s", code, text, from, key, seenOf(m), show(p)));
    });
    String outcome = publish(ch, exchange, "nobody.wants.this", true, properties("m-return").build(), large(70000));
    line("return: %s then %s", returned.get(20, TimeUnit.SECONDS), outcome);
    ch.close();
  }

  private void transaction(Connection connection, Channel ch) throws Exception {
    Channel tx = connection.createChannel();
    tx.txSelect();
    tx.basicPublish("", queue, properties("m-tx-1").build(), SMALL);
    tx.basicPublish("", queue, properties("m-tx-2").build(), large(100000));
    line("transaction: before the commit empty=%s", yes(ch.basicGet(queue, false) == null));
    tx.txCommit();
    for (int i = 0; i < 2; i++) {
      GetResponse m = ch.basicGet(queue, true);
      line("transaction: committed %s %s", m.getProps().getMessageId(), seen(m.getBody()));
    }
    tx.basicPublish("", queue, properties("m-tx-3").build(), SMALL);
    tx.basicPublish("", queue, properties("m-tx-4").build(), large(100000));
    tx.txRollback();
    line("transaction: rolled back empty=%s", yes(ch.basicGet(queue, false) == null));
    tx.close();
  }

  private void rpc(Connection connection, Channel ch) throws Exception {
    Channel asking = connection.createChannel();
    CompletableFuture<String> reply = new CompletableFuture<>();
    asking.basicConsume("amq.rabbitmq.reply-to", true, new DefaultConsumer(asking) {
      @Override
      public void handleDelivery(String consumer, Envelope envelope, AMQP.BasicProperties p, byte[] body) {
        reply.complete("correlation_id=" + p.getCorrelationId() + " " + new String(body, StandardCharsets.UTF_8));
      }
    });
    asking.basicPublish("", queue, properties("m-rpc").replyTo("amq.rabbitmq.reply-to").correlationId("rpc-1").build(),
        "question".getBytes(StandardCharsets.UTF_8));
    GetResponse question;
    do { // published without a confirm: it may still be on its way
      question = ch.basicGet(queue, false);
    } while (question == null);
    ByteArrayOutputStream answer = new ByteArrayOutputStream();
    answer.writeBytes("answer to ".getBytes(StandardCharsets.UTF_8));
    answer.writeBytes(question.getBody());
    AMQP.BasicProperties p = new AMQP.BasicProperties.Builder().correlationId(question.getProps().getCorrelationId()).build();
    publish(ch, "", question.getProps().getReplyTo(), false, p, answer.toByteArray());
    ch.basicAck(question.getEnvelope().getDeliveryTag(), false);
    line("rpc: %s", reply.get(20, TimeUnit.SECONDS));
    asking.close();
  }

  private static void refused(Connection connection, String name, String shownAs) throws Exception {
    try {
      connection.createChannel().queueDeclarePassive(name);
    } catch (IOException e) {
      AMQP.Channel.Close close = (AMQP.Channel.Close) ((ShutdownSignalException) e.getCause()).getReason();
      line("refused: %d %s", close.getReplyCode(), close.getReplyText().replace(name, shownAs));
    }
  }

  /** amqp-client reconnects by itself: connection, channel and consumers are the same objects afterwards. */
  private void restart(Connection connection, Channel ch) throws Exception {
    CompletableFuture<String> lost = new CompletableFuture<>();
    CompletableFuture<Void> recovered = new CompletableFuture<>();
    connection.addShutdownListener(cause -> {
      Object reason = cause.getReason();
      lost.complete(reason instanceof AMQP.Connection.Close && !cause.isInitiatedByApplication()
          ? String.valueOf(((AMQP.Connection.Close) reason).getReplyCode()) : "-");
    });
    ((Recoverable) connection).addRecoveryListener(new RecoveryListener() {
      @Override
      public void handleRecovery(Recoverable recoverable) {
        recovered.complete(null);
      }

      @Override
      public void handleRecoveryStarted(Recoverable recoverable) {}
    });
    line("ready for restart");
    lines.readLine();
    line("lost: %s", lost.get(20, TimeUnit.SECONDS));
    lines.readLine();
    recovered.get(20, TimeUnit.SECONDS);
    GetResponse m = ch.basicGet(queue, true);
    line("restart: kept %s %s", m.getProps().getMessageId(), seen(m.getBody()));
    publish(ch, "", queue, false, properties("m-after").build(), large(120000));
    consume(ch, d -> {
      line("restart: consumed %s %s", d.getProperties().getMessageId(), seenOf(d));
      ch.basicAck(d.getEnvelope().getDeliveryTag(), false);
      return true;
    });
  }

  private void run() throws Exception {
    Connection connection = connect();
    line("connect: open");
    line("limits: channel_max=%d frame_max=%d", connection.getChannelMax(), connection.getFrameMax());

    Channel ch = connection.createChannel();
    ch.exchangeDeclare(exchange, "topic", true);
    AMQP.Queue.DeclareOk declared = ch.queueDeclare(queue, true, false, false, Map.of("x-queue-type", queueType));
    ch.queueBind(queue, exchange, "order.#");
    ch.confirmSelect();
    line("declare: %s messages=%d consumers=%d", declared.getQueue(), declared.getMessageCount(), declared.getConsumerCount());

    Map<String, byte[]> orders = new TreeMap<>((a, b) -> "small binary large".indexOf(a) - "small binary large".indexOf(b));
    orders.putAll(Map.of("small", SMALL, "binary", BINARY, "large", LARGE));
    for (Map.Entry<String, byte[]> order : orders.entrySet()) {
      AMQP.BasicProperties p = properties("m-" + order.getKey()).correlationId("c").type("order").build();
      line("publish: %s %s %s", order.getKey(), seen(order.getValue()), publish(ch, exchange, "order." + order.getKey(), false, p, order.getValue()));
    }

    ch.basicQos(2);
    consume(ch, d -> {
      Envelope e = d.getEnvelope();
      line("consume: key=%s tag=%d redelivered=%s %s %s", e.getRoutingKey(), e.getDeliveryTag(), yes(e.isRedeliver()), seenOf(d), show(d.getProperties()));
      ch.basicAck(e.getDeliveryTag(), false);
      return e.getRoutingKey().equals("order.large");
    });

    publish(ch, "", queue, false, null, SMALL);
    AMQP.BasicProperties bare = ch.basicGet(queue, true).getProps();
    line("bare: delivery_mode=%s message_id=%s", bare.getDeliveryMode() == null ? "-" : bare.getDeliveryMode(),
        bare.getMessageId() == null ? "-" : bare.getMessageId());

    headers(ch);
    returned(connection);

    publish(ch, "", queue, false, properties("m-nack").build(), large(80000));
    consume(ch, d -> {
      Envelope e = d.getEnvelope();
      line("nack: redelivered=%s %s", yes(e.isRedeliver()), seenOf(d));
      if (e.isRedeliver()) {
        ch.basicAck(e.getDeliveryTag(), false);
      } else {
        ch.basicNack(e.getDeliveryTag(), false, true);
      }
      return e.isRedeliver();
    });

    publish(ch, "", queue, false, properties("m-get").build(), large(90000));
    GetResponse m = ch.basicGet(queue, false);
    line("get: redelivered=%s left=%d %s %s", yes(m.getEnvelope().isRedeliver()), m.getMessageCount(), seen(m.getBody()), show(m.getProps()));
    ch.basicAck(m.getEnvelope().getDeliveryTag(), false);
    line("get: empty=%s", yes(ch.basicGet(queue, false) == null));

    transaction(connection, ch);
    rpc(connection, ch);

    String exclusive = ch.queueDeclare().getQueue();
    Connection other = connect();
    refused(other, exclusive, "EXCLUSIVE");
    other.close();
    refused(connection, prefix + ".missing", prefix + ".missing");

    publish(ch, "", queue, false, properties("m-kept").build(), large(110000));
    restart(connection, ch);
    ch.queueDelete(queue);
    connection.close();
    line("close: clean");
  }

  public static void main(String[] arguments) throws Exception {
    new Client(arguments[0], arguments[1], arguments[2]).run();
    System.exit(0);
  }
}
