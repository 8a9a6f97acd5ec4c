#include "daemon/broker/control_login.h"

#include "daemon/ops/signals.h"

namespace bellhop {

BrokerLogin log_in_to_broker(const config::Broker& config, const std::string& vhost) {
  BrokerLogin out;
  if (!config.has_credentials() && !config.has_certificate_login()) {
    out.has_no_credentials = true;
    out.problems.emplace_back(
        "cannot be asked: the file has no credentials for it (broker.username and password, in the URL, or "
        "broker.tls.cert)");
    return out;
  }
  ignore_other_signals();
  if (config.uses_tls()) {
    auto opened = TlsContext::open(config.tls);
    if (!opened) {
      out.problems.push_back("cannot be asked: " + opened.error());
      return out;
    }
    out.tls = std::move(opened.value());
  }
  for (const config::BrokerUrl& url : config.urls) {
    auto opened = ControlConnection::open(config, url, out.tls, -1);
    if (opened && !vhost.empty()) opened.value()->use_vhost(vhost);
    const Result<void> logged_in =
        opened ? opened.value()->log_in() : Result<void>(Error{"cannot be reached: " + opened.error()});
    if (logged_in) {
      out.connection = std::move(opened.value());
      out.shown_url = url.shown;
      return out;
    }
    out.problems.push_back(url.shown + " " + logged_in.error());
  }
  return out;
}

}  // namespace bellhop
