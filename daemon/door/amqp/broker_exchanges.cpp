#include "daemon/door/amqp/broker_exchanges.h"

#include <algorithm>

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/message/stored_claim.h"
#include "daemon/ops/trouble.h"
#include "proto/method.h"

namespace bellhop {

namespace {

bool has(const std::vector<std::string>& pipelines, const std::string& name) {
  return std::find(pipelines.begin(), pipelines.end(), name) != pipelines.end();
}

// Exchange types that return a mandatory message and deliver it later all the same: plugins of RabbitMQ and
// its community.
bool is_keeping_type(std::string_view type) {
  return type == "x-recent-history" || type == "x-delayed-message" || type == "x-lvc";
}

}  // namespace

bool BrokerExchanges::know(const std::string& pipeline) {
  if (private_channel_ == nullptr || has(known_, pipeline)) return true;
  ask(pipeline);
  return false;
}

bool BrokerExchanges::ask_all() {
  if (private_channel_ == nullptr || know_all()) return true;
  for (const config::Pipeline& each : state_.config().pipelines) ask(each.name);
  return know_all();
}

bool BrokerExchanges::look_at_all() const {
  const std::vector<config::Pipeline>& pipelines = state_.config().pipelines;
  if (!std::all_of(pipelines.begin(), pipelines.end(),
                   [this](const config::Pipeline& each) { return has(known_, each.name); }))
    return false;
  all_known_of_ = state_.snapshot->generation;
  return true;
}

void BrokerExchanges::ask(const std::string& pipeline) {
  if (has(known_, pipeline) || has(asked_, pipeline)) return;
  asked_.push_back(pipeline);
  PrivateChannel::Item question;
  question.asks = true;
  proto::put_exchange_declare_passive(question.frames, private_channel_->id(), pipeline);
  question.done = [this, pipeline](const PrivateChannel::Outcome& outcome) {
    std::erase(asked_, pipeline);
    known_.push_back(pipeline);
    if (outcome.kind != PrivateChannel::Outcome::Kind::refused || outcome.code != 404) return;
    missing_.push_back(pipeline);
    tell_trouble("pipeline without an exchange", pipeline,
                 "the broker has no exchange of that name: bellhop sends messages to the pipeline's queues "
                 "by the default exchange; with declare: true bellhop declares the exchange and the queues",
                 state_.who({{"pipeline", pipeline}}), spdlog::level::info);
  };
  private_channel_->post(std::move(question));
}

void BrokerExchanges::forget(const std::string& pipeline) {
  all_known_of_ = 0;
  std::erase(known_, pipeline);
  std::erase(missing_, pipeline);
}

std::optional<BrokerExchanges::Keeps> BrokerExchanges::ask_what_it_keeps(
    const std::string& exchange, std::function<void(Keeps keeps)> answer) {
  if (keeps_nothing(exchange)) {
    return Keeps::nothing;
  }
  if (auto found = keeps_.find(exchange); found != keeps_.end()) {
    return found->second;
  }
  PrivateChannel::Item question;
  question.asks = true;
  proto::put_exchange_declare_as_direct(question.frames, private_channel_->id(), exchange);
  question.done = [this, exchange, answer = std::move(answer)](const PrivateChannel::Outcome& outcome) {
    const std::string type = type_in_refusal(outcome.text);
    Keeps keeps = is_plain_direct(outcome.text) ? Keeps::nothing : Keeps::unknown;
    if (is_keeping_type(type)) {
      keeps = Keeps::messages;
      tell_trouble("exchange that keeps messages", exchange,
                   "the exchange keeps messages and also returns them: bellhop counts a hop that it returns "
                   "as sent",
                   state_.who({{"exchange", exchange}, {"type", type}}), spdlog::level::info);
    } else if (outcome.code == 403) {
      tell_trouble("exchange of unknown type", exchange,
                   "bellhop cannot find out the exchange's type and refuses every hop that it returns, even "
                   "one that the exchange keeps: grant bellhop's user the permission to configure the "
                   "exchange",
                   state_.who({{"exchange", exchange}}));
    }
    keeps_[exchange] = keeps;
    answer(keeps);
  };
  private_channel_->post(std::move(question));
  return {};
}

bool is_plain_direct(std::string_view text) {
  return text.find("inequivalent arg 'alternate-exchange'") != std::string_view::npos &&
         text.ends_with("but current is none");
}

// "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'E' in vhost '/': received 'direct' but current
// is 'topic'", where RabbitMQ puts a type with a dash into two pairs of quotes.
std::string type_in_refusal(std::string_view text) {
  constexpr std::string_view before = "but current is '";
  const size_t at = text.rfind(before);
  if (text.find("inequivalent arg 'type'") == std::string_view::npos || at == std::string_view::npos)
    return {};
  text.remove_prefix(at + before.size());
  if (text.starts_with('\'')) text.remove_prefix(1);
  return std::string(text.substr(0, text.find('\'')));
}

}  // namespace bellhop
