#include "daemon/cli/check.h"

#include <algorithm>
#include <type_traits>

#include "config/hold_warnings.h"
#include "config/host_port.h"
#include "config/load.h"
#include "config/problems.h"
#include "config/retention_warnings.h"
#include "config/slip_warnings.h"
#include "config/units.h"
#include "daemon/cli/check_broker.h"
#include "daemon/cli/missing_folders.h"
#include "daemon/cli/report.h"

namespace bellhop {

namespace {

using config::quoted;
using config::show_bytes;
using config::show_time;

std::string show_mode(uint32_t mode) {
  std::string out = "0";
  for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + ((mode >> shift) & 7));
  return out;
}

template <typename Items, typename Show>
std::string joined(const Items& items, const std::string& separator, Show show) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += show(item);
  }
  return out;
}

std::string quoted_list(const std::vector<std::string>& items) {
  return joined(items, ", ", [](const std::string& item) { return quoted(item); });
}

std::string show_exchange(const std::string& exchange) {
  return exchange.empty() ? "the default exchange" : "exchange " + quoted(exchange);
}

std::string show_ids(const std::vector<uint32_t>& ids) {
  return joined(ids, ", ", [](uint32_t id) { return std::to_string(id); });
}

std::string describe(const config::UnixListen& listen) {
  std::string out = "unix socket " + quoted(listen.path) + ", mode " + show_mode(listen.mode);
  if (!listen.group.empty()) out += ", group " + quoted(listen.group);
  if (!listen.allow_uids.empty()) out += ", for uids " + show_ids(listen.allow_uids);
  if (!listen.allow_gids.empty()) out += ", for gids " + show_ids(listen.allow_gids);
  return out;
}

std::string describe(const config::TcpListen& listen) {
  const std::string out = "tcp " + config::show_host_port(listen.host, listen.port);
  if (listen.anonymous) return out + ", for everybody who reaches it";
  if (listen.users.empty()) return out + ", for whom the broker lets in";
  return out + ", for users " +
         joined(listen.users, ", ", [](const auto& user) { return quoted(user.first); });
}

std::string describe_login(const config::Broker& broker, const config::BrokerUrl& url) {
  if (broker.has_credentials()) return "as user " + quoted(broker.username_for(url));
  if (broker.has_certificate_login(url))
    return "by the client certificate (EXTERNAL), or where that is not offered with each client's own "
           "credentials";
  return "with each client's own credentials";
}

std::string describe(const config::Tls& tls) {
  std::string out = "tls ";
  if (!tls.verify) {
    out += "without verification";
  } else {
    out +=
        "verified with " + (tls.ca.path.empty() ? "the system's CAs" : "the CAs in " + quoted(tls.ca.path));
  }
  if (!tls.cert.path.empty()) out += ", client certificate " + quoted(tls.cert.path);
  return out + (tls.server_name.empty() ? "" : ", for the name " + quoted(tls.server_name));
}

void print_broker(const config::Broker& broker, Report& report) {
  report.section("broker");
  for (const config::BrokerUrl& url : broker.urls) {
    const std::string who = describe_login(broker, url);
    report.line(url.shown + " " + who +
                (url.vhost ? ", virtual host " + quoted(*url.vhost) + " for every client" : ""));
  }
  if (broker.uses_tls()) report.line(describe(broker.tls));
  if (!broker.vhosts.empty()) report.line("clients may open virtual hosts " + quoted_list(broker.vhosts));
  for (const auto& [asked, sent] : broker.vhost_map)
    report.line("a client that asks for virtual host " + quoted(asked) + " gets " + quoted(sent));
  report.line("heartbeat " + (broker.heartbeat_ms == 0 ? "off" : show_time(broker.heartbeat_ms)) +
              ", connect_timeout " + show_time(broker.connect_timeout_ms));
}

std::string describe(const config::FilesystemStore& files) {
  return "filesystem " + quoted(files.path) + ", mode " + show_mode(files.mode) +
         (files.group.empty() ? "" : ", group " + quoted(files.group)) +
         (files.fsync ? ", fsync" : ", no fsync") +
         (files.marker_required ? ", marker required" : ", marker optional") +
         (files.retention_ms ? ", objects removed after " + show_time(*files.retention_ms) : "");
}

std::string describe(const config::S3Store& s3) {
  using Encryption = config::S3Store::Encryption;
  std::string out = "s3 bucket " + quoted(s3.bucket) + " at " + (s3.endpoint.empty() ? "AWS" : s3.endpoint) +
                    (s3.region.empty() ? "" : ", region " + quoted(s3.region)) +
                    (s3.prefix.empty() ? "" : ", prefix " + quoted(s3.prefix)) +
                    (s3.path_style ? ", path style" : ", virtual host style");
  out += s3.access_key.empty() ? ", credentials of the environment or the shared credentials file"
                               : ", credentials of this file";
  if (s3.sse == Encryption::aes256) out += ", encrypted with AES256";
  if (s3.sse == Encryption::kms)
    out += s3.kms_key_id.empty() ? ", encrypted with aws:kms"
                                 : ", encrypted with aws:kms key " + quoted(s3.kms_key_id);
  out += ", timeout " + show_time(s3.timeout_ms) + ", " + std::to_string(s3.retries) + " retries";
  return out + (s3.probe ? ", probed at start" : ", not probed");
}

std::string describe(const config::MemoryStore&) {
  return "memory, gone when bellhop ends";
}

void print_stores(const config::Config& config, Report& report) {
  report.section("stores");
  if (config.stores.empty()) report.line("none");
  for (const config::Store& store : config.stores)
    report.line(store.name + ": " + std::visit([](const auto& kind) { return describe(kind); }, store.kind) +
                (store.keys == proto::KeyRule::any ? ", any key is fetched, retention only of UUIDs" : ""));
}

std::string describe(const config::ClaimCheck& claim_check) {
  std::string out;
  if (!claim_check.offloads()) {
    out = claim_check.enabled ? "no body is offloaded (there is no store)" : "no body is offloaded";
    out += claim_check.inline_always ? ", all are framed" : ", all are sent raw";
  } else if (claim_check.threshold_bytes == 0) {
    out = "every body goes to store " + quoted(claim_check.store);
  } else {
    out = "bodies of " + show_bytes(claim_check.threshold_bytes) + " and more go to store " +
          quoted(claim_check.store);
    out += claim_check.inline_always ? ", smaller ones are framed" : ", smaller ones are sent raw";
  }
  return out + (claim_check.pass_already_framed ? ", already framed ones are left as they are"
                                                : ", already framed ones are escaped");
}

std::string describe(const config::Stamp& stamp) {
  std::string out;
  switch (stamp.delivery_mode) {
    case config::DeliveryMode::persistent:
      out = "delivery mode persistent when unset";
      break;
    case config::DeliveryMode::transient:
      out = "delivery mode transient when unset";
      break;
    case config::DeliveryMode::keep:
      out = "delivery mode as it is";
      break;
  }
  out += stamp.fill_message_id ? ", message id filled in when unset" : ", message id as it is";
  return out + (stamp.envelope ? ", acemq envelope" : "");
}

std::string describe_match(const config::Route& route) {
  std::vector<std::string> parts;
  if (route.match_exchange) parts.push_back(show_exchange(*route.match_exchange));
  if (route.match_routing_key) parts.push_back("routing key " + quoted(*route.match_routing_key));
  for (const auto& [name, text] : route.match_headers)
    parts.push_back("header " + quoted(name) + " = " + quoted(text));
  if (parts.empty()) return "matches every publish";
  return "matches " + joined(parts, ", ", [](const std::string& part) { return part; });
}

std::string describe_stop(const config::ItineraryStop& stop) {
  return (stop.name.empty() ? "" : stop.name + ": ") + show_exchange(stop.exchange) + " key " +
         quoted(stop.routing_key);
}

std::string describe_target(const config::Config& config, const config::Route& route) {
  if (!route.slip_pipeline.empty()) {
    std::string steps;
    for (const config::Pipeline& pipeline : config.pipelines) {
      if (pipeline.name == route.slip_pipeline) steps = config::listed(pipeline.steps);
    }
    return "starts a slip through pipeline " + quoted(route.slip_pipeline) + " (" + steps + ")";
  }
  if (!route.slip_itinerary.empty())
    return "starts an itinerary: " + joined(route.slip_itinerary, "; ", describe_stop);
  if (!route.to_exchange && !route.to_routing_key) return "goes where the client sends it";
  std::string out = "goes to ";
  out += route.to_exchange ? show_exchange(*route.to_exchange) : "the client's exchange";
  return out + (route.to_routing_key ? ", key " + quoted(*route.to_routing_key) : ", the client's key");
}

void print_routes(const config::Config& config, Report& report) {
  bool all_matched = false;
  for (const config::Route& route : config.routes) {
    report.section("route");
    report.line(quoted(route.name) + " " + describe_match(route) +
                (all_matched ? " (never reached, but by name)" : ""));
    report.line("  " + describe_target(config, route));
    report.line("  " + describe(route.claim_check));
    report.line("  " + describe(route.stamp));
    if (!route.headers.empty())
      report.line("  adds when absent " +
                  joined(route.headers, ", ", [](const auto& header) { return quoted(header.first); }));
    all_matched =
        all_matched || (!route.match_exchange && !route.match_routing_key && route.match_headers.empty());
  }
  report.section("other");
  report.line("publishes that no route matches go where the client sends them");
  report.line("  " + describe(config.claim_check));
  report.line("  " + describe(config.stamp));
}

// Declaring is bellhop's own business with the broker, so it needs credentials of its own.
const char* describe_declare(const config::Pipeline& pipeline, const config::Broker& broker) {
  if (!pipeline.declare) return "; not declared";
  if (!broker.has_credentials() && !broker.has_certificate_login())
    return "; not declared, because the file has no credentials for the broker";
  return "; declared at the broker";
}

void print_slips(const config::Config& config, Report& report) {
  for (const config::Pipeline& pipeline : config.pipelines) {
    report.section("pipeline");
    report.line(quoted(pipeline.name) + ": " + config::listed(pipeline.steps) +
                describe_declare(pipeline, config.broker) +
                (pipeline.dead_letter ? "" : "; its queues have no dead-letter arguments"));
  }
  report.section("slip");
  const std::vector<std::string>& allowed = config.slip_allowed_exchanges;
  std::string line =
      allowed.empty() ? "a carried itinerary may send a message nowhere"
                      : "a carried itinerary may send a message to " + joined(allowed, ", ", show_exchange);
  // .NET's pipelines and itineraries send to queues.
  if (std::find(allowed.begin(), allowed.end(), "") == allowed.end())
    line += "; to queues by the default exchange only when slip.allowed_exchanges lists \"\"";
  report.line(line);
}

void print_limits(const config::Limits& limits, Report& report) {
  report.section("limits");
  report.line(std::to_string(limits.sessions) + " sessions, " + std::to_string(limits.tcp_sessions) +
              " of TCP, " + std::to_string(limits.channels_per_session) + " channels each, " +
              std::to_string(limits.transfers_per_session) + " transfers each");
  report.line("messages of up to " + show_bytes(limits.message_bytes) + ", " +
              show_bytes(limits.inflight_bytes) + " of bodies in memory");
  report.line("handshake_timeout " + show_time(limits.handshake_timeout_ms) + ", drain_timeout " +
              show_time(limits.drain_timeout_ms));
}

void print_admin(const config::Admin& admin, Report& report) {
  report.section("admin");
  if (!admin.socket.empty())
    report.line("unix socket " + quoted(admin.socket) + ", mode 0600, for everything");
  if (admin.tcp)
    report.line("tcp " + config::show_host_port(admin.tcp->host, admin.tcp->port) +
                ", for everybody who reaches it, for looking only");
  if (admin.socket.empty() && !admin.tcp) report.line("nowhere");
  report.line(admin.watch ? "this file is read again when it changes" : "this file is read at start only");
}

const char* show_level(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace:
      return "trace";
    case config::LogLevel::debug:
      return "debug";
    case config::LogLevel::info:
      return "info";
    case config::LogLevel::warn:
      return "warn";
    case config::LogLevel::error:
      return "error";
  }
  return "";
}

}  // namespace

int check(const std::string& file, bool at_broker, std::ostream& out, std::ostream& err) {
  const config::Loaded loaded = config::load_file(file);
  if (!loaded.errors.empty()) {
    for (const std::string& error : loaded.errors) err << error << '\n';
    return 2;
  }
  const config::Config& config = loaded.config;
  Report report(out);
  report.section("service");
  report.line(config.service);
  report.section("listen");
  for (const config::Listen& listen : config.listen)
    report.line(std::visit([](const auto& each) { return describe(each); }, listen));
  print_broker(config.broker, report);
  print_stores(config, report);
  print_routes(config, report);
  print_slips(config, report);
  report.section("consume");
  report.line(std::string("a message that cannot be delivered is ") +
              (config.undeliverable_reject ? "rejected without requeue" : "parked") +
              "; a delivery waits up to " + show_time(config.hold_max_ms) + " for an unavailable store");
  if (!config.consume_stores.empty())
    report.line("payloads are fetched only from " + quoted_list(config.consume_stores));
  print_limits(config.limits, report);
  print_admin(config.admin, report);
  report.section("log");
  report.line(std::string(show_level(config.log_level)) + ", " + (config.log_json ? "json" : "text"));
  report.section("warnings");
  for (const auto& warnings :
       {loaded.warnings, config::retention_warnings(config), config::hold_warnings(config),
        config::slip_warnings(config), missing_folders(config)})
    for (const std::string& warning : warnings) report.line(warning);
  if (!at_broker) return 0;
  report.section("at broker");
  return check_broker(config, report) ? 0 : 1;
}

}  // namespace bellhop
