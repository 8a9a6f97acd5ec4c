// broker: where RabbitMQ is, and who bellhop is there.
#include "config/broker_url.h"
#include "config/expand.h"
#include "config/load_sections.h"
#include "config/names.h"

namespace bellhop::config {

namespace {

// What the configuration that comes with the package has for broker.url (deploy/bellhop.yaml).
constexpr std::string_view to_be_edited = "EDIT-ME";

// Of a URL that may lack what is expanded into it: `amqp://app:@host`.
bool has_password(std::string_view url) {
  const size_t begin = url.find("://");
  if (begin == std::string_view::npos) return false;
  const std::string_view rest = url.substr(begin + 3);
  const std::string_view login = rest.substr(0, rest.find('@'));
  const size_t colon = login.find(':');
  return login.size() < rest.size() && colon != std::string_view::npos && colon + 1 < login.size();
}

void load_urls(Section& section, Broker& broker) {
  const auto value = section.find("url");
  if (!value)
    return section.missing("url",
                           std::string("is missing, allowed: ") + broker_url_form + " or a list of them");
  std::vector<Value> urls{*value};
  if (value->is_sequence()) {
    urls = *value->sequence("URLs");
    if (urls.empty()) return value->error(std::string("is an empty list, allowed: ") + broker_url_form);
  }
  for (const Value& each : urls) {
    const auto text = each.text();
    if (!text) continue;
    if (*text == to_be_edited) {
      each.error(std::string("has still to be edited: write your broker's address here, allowed: ") +
                 broker_url_form);
      continue;
    }
    Result<BrokerUrl> url = parse_broker_url(*text);
    if (!url) {
      each.error(url.error());
      continue;
    }
    if (!broker.urls.empty() && broker.urls.front().username.empty() != url.value().username.empty())
      each.error("and the URL before it do not agree on having a user:password, allowed: all or none");
    if (has_password(written_in_file(each.node().text)))
      each.problems().note_secret(each.place(), each.path());
    broker.urls.push_back(std::move(url.value()));
  }
}

void load_credentials(Section& section, Broker& broker) {
  const auto username = section.find("username");
  const auto password = section.find("password");
  bool are_read = true;  // else that was told, and an empty one says nothing
  const auto take = [&are_read](std::optional<std::string> text, std::string& out) {
    if (text)
      out = std::move(*text);
    else
      are_read = false;
  };
  if (username) take(username->text(), broker.username);
  if (password) take(password->secret(), broker.password);

  const bool in_url = !broker.urls.empty() && !broker.urls.front().username.empty();
  if (in_url && (username || password)) {
    (username ? *username : *password)
        .error("stands beside a user:password in broker.url, allowed: one of the two");
  } else if (username && !password) {
    username->error("stands without broker.password, allowed: both or none");
  } else if (password && !username) {
    password->error("stands without broker.username, allowed: both or none");
  } else if (username && are_read && broker.username.empty() != broker.password.empty()) {
    // Both empty is how an unset pair of variables says that clients bring their own.
    (broker.username.empty() ? *username : *password)
        .error("is empty while the other of username and password is not, allowed: both or none");
  }
}

bool check_vhost(const Value& value, const std::string& vhost) {
  if (vhost.empty()) {
    value.error("is empty, allowed: a virtual host's name; the default one is \"/\"");
    return false;
  }
  return check_short_string(value, vhost);
}

void load_vhosts(Section& section, Broker& broker) {
  if (const auto value = section.find("vhosts")) {
    const auto items = value->sequence("virtual hosts");
    if (items && items->empty())
      value->error("is an empty list, allowed: at least one virtual host; without the key, any");
    for (const Value& item : items.value_or(std::vector<Value>{})) {
      const auto vhost = item.text();
      if (vhost && check_vhost(item, *vhost)) broker.vhosts.push_back(*vhost);
    }
  }
  if (const auto value = section.find("vhost_map")) {
    const bool in_url = !broker.urls.empty() && broker.urls.front().vhost.has_value();
    if (in_url)
      value->error(
          "stands beside a virtual host in broker.url, which every client gets, allowed: one of the two");
    const auto entries =
        value->named("virtual hosts: what the client asks for and what the broker is asked for");
    if (!entries) return;
    for (const auto& [asked, item] : *entries) {
      const auto vhost = item.text();
      if (vhost && check_vhost(item, *vhost) && check_vhost(item, asked)) broker.vhost_map[asked] = *vhost;
    }
  }
}

}  // namespace

void load_broker(Section& root, Config& config) {
  const auto value = root.find("broker");
  if (!value)
    return root.missing("broker.url",
                        std::string("is missing, allowed: ") + broker_url_form + " or a list of them");
  Section section(*value);
  if (!section.ok()) return;
  Broker& broker = config.broker;
  load_urls(section, broker);
  load_credentials(section, broker);
  load_vhosts(section, broker);
  load_tls(section, broker);
  if (const auto heartbeat = section.find("heartbeat")) {
    if (const auto time = heartbeat->time_ms(0, 65535000)) {
      // AMQP negotiates it in seconds, in 16 bits.
      if (*time % 1000 != 0)
        heartbeat->error_with_value("is not in whole seconds, allowed: 0 (off) or whole seconds");
      else
        broker.heartbeat_ms = static_cast<uint32_t>(*time);
    }
  }
  section.read_time_ms("connect_timeout", broker.connect_timeout_ms, 1);
  section.finish();
}

}  // namespace bellhop::config
