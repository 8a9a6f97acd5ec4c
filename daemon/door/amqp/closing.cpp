#include "daemon/door/amqp/closing.h"

#include <utility>

#include "daemon/ops/trouble.h"
#include "proto/method.h"

namespace bellhop {

using namespace proto;
using State = ChannelClose::State;

void Closing::close(Channel& channel, uint16_t code, const std::string& text, uint32_t method) {
  if (!channel.end.is_open()) return;
  if (channel.is_half_sent()) {
    // The broker has half a publish: a close between its frames would cost the whole connection.
    if (!channel.end.when_whole_) channel.end.when_whole_ = {code, text, 0};
    return;
  }
  tell_trouble("channel closed", subject_of_reason(text), "channel closed by bellhop",
               state_.who({{"channel", channel.id}, {"code", code}, {"reason", text}}));
  lower_.park_unhanded(channel);
  channel.end.state_ = State::local_closing;
  channel.end.untold_ = {code, text, method, channel.publishes.ends_with_close()};
  untold_.push_back(channel.id);
  upper_.abandon_publishes(channel);
  put_close(to_broker_.tail(), method::channel_close, channel.id, {200, "closed", 0, 0});
}

void Closing::close_when_whole(Channel& channel) {
  BELLHOP_ASSERT(channel.end.waits_for_whole() && !channel.is_half_sent(),
                 "a close waits for a whole publish");
  const auto reason = *std::exchange(channel.end.when_whole_, std::nullopt);
  close(channel, reason.code, reason.text);
}

void Closing::on_client_close(Channel& channel) {
  channel.end.state_ = State::client_closing;
  channel.end.broker_owes_close_ok_ = true;
  lower_.park_unhanded(channel);
}

bool Closing::on_client_frame(Channel& channel, const Frame& frame) {
  const uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  ChannelClose& end = channel.end;
  BELLHOP_ASSERT(!end.is_open(), "an open channel's frames are no matter of its closing");
  if (!end.is_local()) {
    if (number == method::channel_close && !end.broker_owes_close_ok_) {
      to_broker_.relay(frame.raw);
      end.broker_owes_close_ok_ = true;
    } else if (number == method::channel_open && end.is_client_closing()) {
      // Before its close-ok: the broker's answer, which the client must not wait for in vain.
      host_.close_connection(504, "CHANNEL_ERROR - second 'channel.open' seen", number);
    } else if (number == method::channel_close_ok && end.client_owes_close_ok_) {
      to_broker_.relay(frame.raw);
      end.client_owes_close_ok_ = false;
      end_relayed(channel);
    }
    return false;
  }
  // bellhop ignores what follows the client's close, as the broker does.
  if (end.untold_) {
    if (number == method::channel_close) end.untold_->answers_client = true;
  } else if (number == method::channel_close) {
    end.crossed_ = true;
    put_empty_method(to_client_.own(), method::channel_close_ok, channel.id);
  } else if (number == method::channel_close_ok) {
    forget(channel.id);
  } else if (number == method::channel_open && end.crossed_) {
    // The closes crossed: the client has its answer already.
    forget(channel.id);
    return true;
  }
  return false;
}

void Closing::on_broker_close(Channel& channel, const Frame& frame) {
  ChannelClose& end = channel.end;
  auto close = decode_close(frame.payload);
  if (close) {
    tell_trouble("channel closed by the broker", subject_of_reason(std::string(close.value().reply_text)),
                 "channel closed by the broker",
                 state_.who({{"channel", channel.id},
                             {"code", close.value().reply_code},
                             {"reason", close.value().reply_text}}),
                 spdlog::level::info);
  }
  if (end.untold_) {
    // The closes crossed: the broker sent its own before it read bellhop's. Its close-ok is still to come.
    put_empty_method(to_broker_.tail(), method::channel_close_ok, channel.id);
    if (close)
      end.untold_ = {close.value().reply_code, std::string(close.value().reply_text),
                     uint32_t{close.value().class_id} << 16 | close.value().method_id,
                     end.untold_->answers_client};
    return;
  }
  lower_.park_unhanded(channel);
  if (end.is_open()) end.state_ = State::broker_closing;
  end.client_owes_close_ok_ = true;
  if (channel.publishes.ends_with_close()) {
    // The closes crossed: bellhop answers the client's as the broker would.
    to_broker_.append(channel.publishes.back().frames);
    end.broker_owes_close_ok_ = true;
  }
  abandon(channel);
  to_client_.relay_answer(channel, frame.raw);
}

void Closing::on_broker_close_ok(Channel& channel, const Frame& frame) {
  if (channel.end.is_local()) {
    channel.end.broker_close_ok_ = true;
    return;
  }
  to_client_.relay_answer(channel, frame.raw);
  channel.end.broker_owes_close_ok_ = false;
  end_relayed(channel);
}

bool Closing::pump() {
  bool has_given_back = !untold_.empty() && tell_untold();
  if (unended_.empty()) return has_given_back;
  for (uint16_t id : std::exchange(unended_, {})) {
    Channel* found = channels_.find(id);
    if (found != nullptr && (found->end.is_client_closing() || found->end.is_broker_closing()) &&
        end_relayed(*found))
      has_given_back = true;
  }
  return has_given_back;
}

// True: a channel was told.
bool Closing::tell_untold() {
  const size_t ended = std::erase_if(untold_, [this](uint16_t id) {
    Channel* found = channels_.find(id);
    if (found == nullptr || !found->end.untold_) return true;
    // A return comes before the close that it may be the reason of.
    if (!found->end.broker_close_ok_ || !found->returns.empty()) return false;
    lower_.park_unhanded(*found);
    abandon(*found);
    const auto reason = *std::exchange(found->end.untold_, std::nullopt);
    put_close(to_client_.own(), method::channel_close, id,
              {reason.code, reason.text, static_cast<uint16_t>(reason.method >> 16),
               static_cast<uint16_t>(reason.method)});
    found->end.crossed_ = reason.answers_client;
    if (found->end.crossed_) put_empty_method(to_client_.own(), method::channel_close_ok, id);
    return true;
  });
  return ended != 0;
}

// Closes that were relayed: when no close-ok is owed any more and all returns are handed over, the id is free
// (true).
bool Closing::end_relayed(Channel& channel) {
  if (channel.end.client_owes_close_ok_ || channel.end.broker_owes_close_ok_) return false;
  if (!channel.returns.empty()) {
    unended_.push_back(channel.id);
    return false;
  }
  forget(channel.id);
  return true;
}

// Aborts what it has under way, and drops what it holds but for its returns: they are still the client's.
void Closing::abandon(Channel& channel) {
  upper_.abandon_publishes(channel);
  // Publishes of a transaction whose commit was never sent are in no queue.
  channel.sent.clear();
  lower_.abandon_deliveries(channel);
  channel.tags.clear();
}

void Closing::forget(uint16_t id) {
  Channel* ended = channels_.find(id);
  if (ended == nullptr) return;
  // What goes out in this turn may be borrowed from the frames that the channel holds.
  to_client_.detach();
  to_broker_.detach();
  abandon(*ended);
  channels_.remove(id);
}

void Closing::forget_all() {
  for (size_t id = 0; id < channels_.all().size(); ++id) forget(static_cast<uint16_t>(id));
}

}  // namespace bellhop
