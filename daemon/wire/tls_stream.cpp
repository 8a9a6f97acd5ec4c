#include "daemon/wire/tls_stream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "config/problems.h"
#include "daemon/wire/tls_errors.h"

namespace bellhop {
namespace {

constexpr size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr size_t record_wire_bytes_max = SSL3_RT_MAX_PACKET_SIZE;
constexpr size_t in_bytes = 48 * 1024;
constexpr size_t batch_bytes_max = 64 * 1024;  // no more is encrypted at one time, but for a record

bool is_address(const std::string& name) {
  in6_addr parsed;
  return ::inet_pton(AF_INET, name.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &parsed) == 1;
}

// How a certificate has it: no zone behind an IPv6 address, no dot behind a name.
std::string bare(std::string name) {
  if (name.find(':') != std::string::npos) return name.substr(0, name.find('%'));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

}  // namespace

// The SSL object's view of in_ and out_.
struct TlsStream::Callbacks {
  static int read(BIO* bio, char* to, int bytes_max) {
    auto* const self = static_cast<TlsStream*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const size_t part =
        std::min(static_cast<size_t>(std::max(bytes_max, 0)), self->in_end_ - self->in_begin_);
    if (part == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(to, self->in_.get() + self->in_begin_, part);
    self->in_begin_ += part;
    return static_cast<int>(part);
  }
  static int write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
    put(static_cast<TlsStream*>(BIO_get_data(bio))->out_, {bytes, static_cast<size_t>(std::max(size, 0))});
    return size;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
};

bio_method_st* TlsStream::make_buffers() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bellhop");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(method, Callbacks::read);
  BIO_meth_set_write(method, Callbacks::write);
  BIO_meth_set_ctrl(method, Callbacks::control);
  return method;
}

TlsStream::TlsStream(std::shared_ptr<const TlsContext> context, const config::BrokerUrl& url)
    : context_(std::move(context)), name_(context_->name_for(url)), ssl_(SSL_new(context_->ssl_context())) {
  BIO* const bio = BIO_new(context_->buffers());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    error_ = "TLS cannot be set up: out of memory";
    return;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);  // one reference, the SSL object's now
  SSL_set_app_data(ssl_, this);
  SSL_set_connect_state(ssl_);
  const std::string name = bare(name_);
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl_);
  bool is_checked = !name.empty();  // an empty name would be none to check
  if (is_address(name)) {
    is_checked = X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1;
  } else if (is_checked) {
    SSL_set_tlsext_host_name(ssl_, name.c_str());
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    is_checked = X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), name.size()) == 1;
  }
  if (!is_checked) error_ = "no certificate can be for the name " + config::quoted(name_);
}

TlsStream::~TlsStream() {
  SSL_free(ssl_);
}

// The first certificate that is refused says why.
int TlsStream::on_verified(int good, X509_STORE_CTX* checked) {
  if (good == 1) return 1;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(checked, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const self = static_cast<TlsStream*>(SSL_get_app_data(ssl));
  if (!self->context_->verifies()) return 1;
  if (self->refused_certificate_.empty()) self->refused_certificate_ = verify_failure(checked, self->name_);
  return 0;
}

// Notes what OpenSSL has to say, and keeps this thread's error queue empty.
void TlsStream::fail() {
  if (!refused_certificate_.empty()) {
    error_ = refused_certificate_;
    ERR_clear_error();
  } else {
    error_ =
        tls_failure({answer_, answer_bytes_}, SSL_is_init_finished(ssl_) == 0, context_->has_certificate());
  }
}

TlsStream::Step TlsStream::handshake(int fd) {
  while (error_.empty()) {
    ERR_clear_error();
    const int outcome = SSL_do_handshake(ssl_);
    const bool waits = outcome != 1 && SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ;
    if (outcome != 1 && !waits) fail();
    // An alert too goes out, as far as it can.
    if (send(fd) < 0 && error_.empty()) error_ = std::string("writing failed: ") + std::strerror(errno);
    if (!error_.empty()) break;
    if (outcome == 1) return Step::done;
    const ssize_t received = fill(fd, in_bytes);
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Step::waiting;
    if (received < 0) error_ = std::string("reading failed: ") + std::strerror(errno);
    if (received == 0) error_ = "the peer closed the connection in the TLS handshake";
  }
  return Step::failed;
}

// One recv. Precondition: in_ is used up. Afterwards what is in it, with the part of a record that the SSL
// object holds already, is hardly more than `bytes_max` of plaintext: else the rest would take another turn.
ssize_t TlsStream::fill(int fd, size_t bytes_max) {
  if (in_ == nullptr) in_.reset(new uint8_t[in_bytes]);  // not zeroed
  const size_t room = bytes_max - std::min(bytes_max, record_wire_bytes_max);
  const size_t wanted = std::clamp(room, record_wire_bytes_max, in_bytes);
  ssize_t received;
  do {
    received = ::recv(fd, in_.get(), wanted, 0);
  } while (received < 0 && errno == EINTR);
  in_begin_ = 0;
  in_end_ = received > 0 ? static_cast<size_t>(received) : 0;
  const size_t part = std::min(in_end_, sizeof answer_ - answer_bytes_);
  std::memcpy(answer_ + answer_bytes_, in_.get(), part);
  answer_bytes_ += part;
  return received;
}

ssize_t TlsStream::receive(int fd, uint8_t* to, size_t bytes_max) {
  size_t got = 0;
  while (got < bytes_max && error_.empty() && !peer_ended_) {
    ERR_clear_error();
    size_t part = 0;
    const int outcome = SSL_read_ex(ssl_, to + got, bytes_max - got, &part);
    if (outcome == 1) {
      got += part;
      continue;
    }
    const int reason = SSL_get_error(ssl_, outcome);
    if (reason == SSL_ERROR_ZERO_RETURN) {
      peer_ended_ = true;
    } else if (reason != SSL_ERROR_WANT_READ) {
      fail();
      send(fd);  // the alert
    } else if (got > 0) {
      break;
    } else if (const ssize_t received = fill(fd, bytes_max); received <= 0) {
      return received;
    }
  }
  if (got > 0) return static_cast<ssize_t>(got);
  if (peer_ended_) return 0;
  errno = EPROTO;
  return -1;
}

bool TlsStream::has_unread() const {
  return in_begin_ < in_end_ || SSL_pending(ssl_) > 0 || peer_ended_ || !error_.empty();
}

// One send of what is encrypted. Returns what the socket took; -1: it is broken.
ssize_t TlsStream::send(int fd) {
  ssize_t took = 0;
  if (has_unsent()) {
    do {
      took = ::send(fd, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    } while (took < 0 && errno == EINTR);
    if (took < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    took = std::max<ssize_t>(took, 0);
    sent_ += static_cast<size_t>(took);
  }
  if (!has_unsent()) {
    out_.clear();
    sent_ = 0;
  }
  return took;
}

ssize_t TlsStream::flush(int fd, Outbox& outbox) {
  size_t total = 0;
  while (true) {
    const ssize_t took = send(fd);
    if (took < 0) {
      const int reason = errno;
      outbox.clear();
      errno = reason;
      return -1;
    }
    total += static_cast<size_t>(took);
    if (has_unsent() || outbox.empty()) break;
    if (!encrypt(outbox)) {
      outbox.clear();
      errno = EPROTO;
      return -1;
    }
  }
  outbox.own();
  return static_cast<ssize_t>(total);
}

// A batch into out_. Small pieces share a record, since each costs a header, a checksum and a call.
bool TlsStream::encrypt(Outbox& outbox) {
  uint8_t gathered[record_bytes];
  while (out_.size() < batch_bytes_max && !outbox.empty()) {
    const Bytes front = outbox.front();
    if (front.size() >= record_bytes || front.size() == outbox.pending()) {
      const Bytes record = front.first(std::min(front.size(), record_bytes));
      if (!write_record(record)) return false;
      outbox.drop_front(record.size());
      continue;
    }
    size_t size = 0;
    while (size < record_bytes && !outbox.empty()) {
      const Bytes piece = outbox.front();
      const size_t part = std::min(piece.size(), record_bytes - size);
      std::memcpy(gathered + size, piece.data(), part);
      outbox.drop_front(part);
      size += part;
    }
    if (!write_record({gathered, size})) return false;
  }
  return true;
}

bool TlsStream::write_record(Bytes plain) {
  if (!error_.empty()) return false;
  ERR_clear_error();
  size_t written = 0;
  if (SSL_write_ex(ssl_, plain.data(), plain.size(), &written) == 1 && written == plain.size()) return true;
  fail();
  return false;
}

void TlsStream::end(int fd) {
  if (!error_.empty() || SSL_is_init_finished(ssl_) == 0) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
  send(fd);
}

void TlsStream::release_idle() {
  if (in_begin_ == in_end_) {
    in_.reset();
    in_begin_ = in_end_ = 0;
  }
  if (!has_unsent()) Buffer().swap(out_);
}

}  // namespace bellhop
