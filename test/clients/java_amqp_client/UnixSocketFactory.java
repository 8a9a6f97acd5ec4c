import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;

/**
 * Sockets of one Unix path, for ConnectionFactory.setSocketFactory. The JDK has Unix sockets as channels only; this is a Socket over one.
 * Its reads know no time limit.
 */
final class UnixSocketFactory extends SocketFactory {
  private final UnixDomainSocketAddress path;

  UnixSocketFactory(String path) {
    this.path = UnixDomainSocketAddress.of(path);
  }

  @Override
  public Socket createSocket() throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    return new Socket() {
      @Override
      public void connect(SocketAddress ignored, int timeout) throws IOException {
        channel.connect(path);
      }

      @Override
      public boolean isConnected() {
        return channel.isConnected();
      }

      @Override
      public InetAddress getInetAddress() {
        return InetAddress.getLoopbackAddress();
      }

      @Override
      public InputStream getInputStream() {
        // Not Channels.newInputStream: in blocking mode its reads and the writes wait for each other.
        return new InputStream() {
          @Override
          public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) == 1 ? one[0] & 255 : -1;
          }

          @Override
          public int read(byte[] bytes, int from, int size) throws IOException {
            return channel.read(ByteBuffer.wrap(bytes, from, size));
          }
        };
      }

      @Override
      public OutputStream getOutputStream() {
        return new OutputStream() {
          @Override
          public void write(int one) throws IOException {
            write(new byte[] {(byte) one}, 0, 1);
          }

          @Override
          public void write(byte[] bytes, int from, int size) throws IOException {
            ByteBuffer rest = ByteBuffer.wrap(bytes, from, size);
            while (rest.hasRemaining()) {
              channel.write(rest);
            }
          }
        };
      }

      @Override
      public void close() throws IOException {
        channel.close();
      }

      @Override
      public void setTcpNoDelay(boolean on) {}

      @Override
      public void setSoTimeout(int milliseconds) {}

      @Override
      public int getSoTimeout() {
        return 0;
      }

      @Override
      public void setSoLinger(boolean on, int seconds) {}
    };
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    return createSocket();
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress from, int fromPort) throws IOException {
    return createSocket();
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    return createSocket();
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort) throws IOException {
    return createSocket();
  }
}
