#include "daemon/cli/make_snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/cli/open_stores.h"

namespace bellhop {

namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// What of a listener is bound, and cannot be another without losing connections.
bool is_same_place(const config::Listen& one, const config::Listen& other) {
  const auto* one_unix = std::get_if<config::UnixListen>(&one);
  const auto* other_unix = std::get_if<config::UnixListen>(&other);
  if (one_unix != nullptr && other_unix != nullptr)
    return one_unix->path == other_unix->path && one_unix->mode == other_unix->mode &&
           one_unix->group == other_unix->group;
  const auto* one_tcp = std::get_if<config::TcpListen>(&one);
  const auto* other_tcp = std::get_if<config::TcpListen>(&other);
  return one_tcp != nullptr && other_tcp != nullptr && one_tcp->host == other_tcp->host &&
         one_tcp->port == other_tcp->port;
}

// A store's objects are found again by its place. What a memory store has is lost with it.
bool is_same_place(const config::Store& one, const config::Store& other) {
  if (one.kind.index() != other.kind.index()) return false;
  if (const auto* files = std::get_if<config::FilesystemStore>(&one.kind))
    return files->path == std::get<config::FilesystemStore>(other.kind).path;
  if (const auto* s3 = std::get_if<config::S3Store>(&one.kind)) {
    const auto& there = std::get<config::S3Store>(other.kind);
    return s3->endpoint == there.endpoint && s3->region == there.region && s3->bucket == there.bucket &&
           s3->prefix == there.prefix;
  }
  return one == other;
}

}  // namespace

Result<std::shared_ptr<const Snapshot>> make_snapshot(std::shared_ptr<const config::Config> config,
                                                      Meter& meter, const Snapshot* before) {
  auto made = std::make_shared<Snapshot>();
  made->generation = before == nullptr ? 1 : before->generation + 1;
  if (config->broker.uses_tls()) {
    auto tls = TlsContext::open(config->broker.tls);
    if (!tls) return Error{tls.error()};
    made->tls = std::move(tls.value());
  }
  Result<std::unique_ptr<Stores>> stores(nullptr);
  if (before == nullptr) {
    stores = open_stores(*config, &meter);
  } else {
    const StoresBefore known{*before->config, *before->stores};
    stores = open_stores(*config, &meter, &known);
  }
  if (!stores) return Error{stores.error()};
  made->stores = std::move(stores.value());
  made->names = meter.names();
  made->routing = std::make_unique<config::RoutingTable>(
      config, [&names = *made->names](const std::string& route) { return names.route(route); });
  made->origin = config->service + "@" + host_name();
  made->config = std::move(config);
  return std::shared_ptr<const Snapshot>(std::move(made));
}

std::vector<std::string> what_needs_restart(const config::Config& before, const config::Config& after,
                                            const std::string& file) {
  std::vector<std::string> lines;
  const auto say = [&](const std::string& key, const std::string& what) {
    lines.push_back(file + ": " + key + ": " + what + ": restart bellhop for that");
  };
  const bool same_listeners =
      std::equal(before.listen.begin(), before.listen.end(), after.listen.begin(), after.listen.end(),
                 [](const auto& one, const auto& other) { return is_same_place(one, other); });
  if (!same_listeners)
    say("listen",
        "an address, its mode, its group and the order of the entries cannot change while bellhop runs");
  if (before.admin.socket != after.admin.socket) say("admin.socket", "cannot change while bellhop runs");
  if (before.admin.tcp != after.admin.tcp) say("admin.tcp", "cannot change while bellhop runs");
  if (before.log_json != after.log_json) say("log.format", "cannot change while bellhop runs");
  for (const config::Store& store : before.stores) {
    const auto now = std::find_if(after.stores.begin(), after.stores.end(),
                                  [&](const config::Store& each) { return each.name == store.name; });
    const bool in_memory = std::holds_alternative<config::MemoryStore>(store.kind);
    if (now == after.stores.end() && in_memory)
      say("stores." + store.name, "a memory store and its payloads would be gone");
    if (now == after.stores.end() || is_same_place(store, *now)) continue;
    say("stores." + store.name, in_memory ? "a memory store's settings cannot change while bellhop runs"
                                          : "a store's type and place cannot change while bellhop runs");
  }
  return lines;
}

}  // namespace bellhop
