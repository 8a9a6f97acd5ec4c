// One bellhop's whole configuration as plain values. The loader (config/load.h) fills in every default and
// applies every rule, so that nothing behind it has to ask again. Immutable once loaded; shared as
// shared_ptr<const Config>.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/claim_frame.h"

namespace bellhop::config {

struct UnixListen {
  std::string path = "/run/bellhop/bellhop.sock";
  uint32_t mode = 0660;
  std::string group;                             // empty: unchanged
  std::vector<uint32_t> allow_uids, allow_gids;  // both empty: everybody whom the mode lets in
  bool operator==(const UnixListen&) const = default;
};
struct TcpListen {
  std::string host;
  uint16_t port = 0;
  std::map<std::string, std::string> users;
  bool anonymous = false;
  bool operator==(const TcpListen&) const = default;
};
using Listen = std::variant<UnixListen, TcpListen>;

enum class Transport : uint8_t { tcp, tls, unix_socket };
struct BrokerUrl {
  Transport transport = Transport::tcp;
  std::string host;
  uint16_t port = 5672;
  std::string socket_path;           // unix_socket: instead of host and port
  std::string username, password;    // empty: not in the URL
  std::optional<std::string> vhost;  // set when the URL names one: that is what every client gets
  std::string shown;                 // for logs, without the password
  bool operator==(const BrokerUrl&) const = default;
};
// A PEM file that was read and found good when the configuration was loaded. Empty: there is none.
struct PemFile {
  std::string path, text;
  bool operator==(const PemFile&) const = default;
};
// How the connections of amqps:// URLs are made.
struct Tls {
  PemFile ca;         // none: the system's
  PemFile cert, key;  // bellhop's own; both or none
  bool verify = true;
  std::string server_name;  // empty: the URL's host
  bool operator==(const Tls&) const = default;
};
struct Broker {
  std::vector<BrokerUrl> urls;
  Tls tls;
  std::string username, password;   // both empty: each client's own credentials are passed on
  std::vector<std::string> vhosts;  // empty: any
  std::map<std::string, std::string> vhost_map;
  uint32_t heartbeat_ms = 30000;
  uint32_t connect_timeout_ms = 8000;
  // Either all URLs have a user and password, or none has.
  bool has_credentials() const {
    return !username.empty() || (!urls.empty() && !urls.front().username.empty());
  }
  bool uses_tls() const {
    return std::any_of(urls.begin(), urls.end(),
                       [](const BrokerUrl& url) { return url.transport == Transport::tls; });
  }
  // Without credentials a client certificate is bellhop's login (SASL EXTERNAL) at a broker that offers it.
  bool has_certificate_login() const { return !has_credentials() && !tls.cert.text.empty(); }
  bool has_certificate_login(const BrokerUrl& url) const {
    return url.transport == Transport::tls && has_certificate_login();
  }
  // Whom bellhop logs in as at `url`. Precondition: has_credentials().
  const std::string& username_for(const BrokerUrl& url) const {
    return url.username.empty() ? username : url.username;
  }
  const std::string& password_for(const BrokerUrl& url) const {
    return url.username.empty() ? password : url.password;
  }
  bool operator==(const Broker&) const = default;
};

struct FilesystemStore {
  std::string path;
  uint32_t mode = 0640;
  std::string group;
  bool fsync = true;
  bool marker_required = true;
  std::optional<uint64_t> retention_ms;  // unset: nothing is removed for its age
  bool operator==(const FilesystemStore&) const = default;
};
struct MemoryStore {
  bool operator==(const MemoryStore&) const = default;
};
struct S3Store {
  std::string endpoint;  // http:// or https://, host, perhaps a port; empty: AWS, by its region
  std::string region;    // empty: what the environment or the shared files say, else us-east-1
  std::string bucket;
  std::string prefix;  // in front of each key; of characters that need no escaping in a URL
  bool path_style = true;
  // Empty: the environment's, then the shared credentials file's.
  std::string access_key, secret_key, session_token;
  enum class Encryption { none, aes256, kms };
  Encryption sse = Encryption::none;
  std::string kms_key_id;  // empty: the bucket's own
  uint32_t timeout_ms = 30000;
  uint32_t retries = 5;
  bool probe = true;
  bool operator==(const S3Store&) const = default;
};
struct Store {
  std::string name;
  std::variant<FilesystemStore, MemoryStore, S3Store> kind;
  proto::KeyRule keys = proto::KeyRule::issued;
  bool operator==(const Store&) const = default;
};

struct ClaimCheck {
  bool enabled = true;
  std::string store;  // empty: nothing is offloaded
  uint64_t threshold_bytes = 65536;
  bool inline_always = false;
  bool pass_already_framed = false;
  bool offloads() const { return enabled && !store.empty(); }
  bool operator==(const ClaimCheck&) const = default;
};

enum class DeliveryMode : uint8_t { keep = 0, transient = 1, persistent = 2 };
struct Stamp {
  DeliveryMode delivery_mode = DeliveryMode::persistent;  // for messages that set none
  bool fill_message_id = true;
  bool envelope = false;
  bool operator==(const Stamp&) const = default;
};

struct Pipeline {
  std::string name;
  std::vector<std::string> steps;
  bool declare = false;
  bool dead_letter = true;  // the step queues are declared with x-dead-letter arguments
  bool operator==(const Pipeline&) const = default;
};

struct ItineraryStop {
  std::string exchange, routing_key, name;
  bool operator==(const ItineraryStop&) const = default;
};
struct Route {
  std::string name;
  std::optional<std::string> match_exchange, match_routing_key;  // the key with topic wildcards
  std::map<std::string, std::string> match_headers;
  std::optional<std::string> to_exchange, to_routing_key;
  std::string slip_pipeline;                  // empty: none
  std::vector<ItineraryStop> slip_itinerary;  // empty: none
  ClaimCheck claim_check;                     // with the file's own claim_check for what the route leaves out
  std::vector<std::pair<std::string, std::string>> headers;
  Stamp stamp;  // likewise
  bool operator==(const Route&) const = default;
};

struct Limits {
  uint32_t sessions = 256;
  uint32_t tcp_sessions = 128;
  uint16_t channels_per_session = 2047;
  uint64_t message_bytes = uint64_t{4} << 30;
  uint64_t inflight_bytes = uint64_t{32} << 20;
  uint32_t transfers_per_session = 16;
  uint32_t handshake_timeout_ms = 10000;
  uint32_t drain_timeout_ms = 20000;
  bool operator==(const Limits&) const = default;
};

struct AdminTcp {
  std::string host;
  uint16_t port = 0;
  bool operator==(const AdminTcp&) const = default;
};
// Where bellhop is watched and told what to do.
struct Admin {
  std::string socket;             // empty: there is none
  bool is_default_socket = true;  // the file does not name it: without it bellhop serves all the same
  std::optional<AdminTcp> tcp;    // for looking only
  bool watch = false;
  bool operator==(const Admin&) const = default;
};

enum class LogLevel { trace, debug, info, warn, error };

struct Config {
  std::string service;  // the host's name when the file has none
  std::vector<Listen> listen;
  Broker broker;
  std::vector<Store> stores;
  ClaimCheck claim_check;
  Stamp stamp;
  std::vector<Pipeline> pipelines;
  std::vector<Route> routes;
  std::vector<std::string> slip_allowed_exchanges;  // with the default already worked out
  bool undeliverable_reject = false;
  std::vector<std::string> consume_stores;  // which stores a delivery may be fetched from; empty: all
  uint32_t hold_max_ms = 600000;
  Limits limits;
  Admin admin;
  LogLevel log_level = LogLevel::info;
  bool log_json = false;
  bool operator==(const Config&) const = default;
};

}  // namespace bellhop::config
