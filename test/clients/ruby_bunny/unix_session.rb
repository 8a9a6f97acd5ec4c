# bunny over a Unix socket. bunny opens TCP connections only; this session's transport opens a Unix socket instead.
require 'bunny'
require 'socket'

class UnixSession < Bunny::Session
  # What bunny reads and writes with (timeouts) lies in a module that it mixes into its own TCP socket.
  class Transport < Bunny::Transport
    def initialize_socket
      @socket = UNIXSocket.new(@session.unix_path).extend(Bunny::Socket)
    rescue SystemCallError => e
      raise Bunny::TCPConnectionFailed.new(e, @session.unix_path, 0) # what bunny's recovery tries again after
    end
  end

  attr_reader :unix_path

  def initialize(path, options)
    @unix_path = path
    super(options)
  end

  private

  def initialize_transport
    @transport.close if @transport
    @transport = Transport.new(self, 'localhost', 0, @opts.merge(session_error_handler: @session_error_handler))
  end
end
