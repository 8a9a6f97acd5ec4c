#include "daemon/broker/private_channel.h"

#include <algorithm>

#include "daemon/wire/outbox.h"
#include "proto/content_header.h"
#include "proto/method.h"

namespace bellhop {

namespace {
constexpr size_t in_flight_max = 256;
}

void PrivateChannel::post(Item item) {
  waiting_.push_back(std::move(item));
  pump();
}

void PrivateChannel::pump() {
  if (waiting_.empty()) return;
  if (state_ == State::closed) {
    proto::put_empty_method(out_.tail(), proto::method::channel_open, id_, 1);
    state_ = State::opening;
    return;
  }
  while (state_ == State::ready && !waiting_.empty() && !declaring_ && in_flight_.size() < in_flight_max) {
    const bool alone =
        alone_ > 0 || waiting_.front().asks || (!in_flight_.empty() && in_flight_.front().item.asks);
    if (alone && !in_flight_.empty()) return;
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    if (item.prepare) item.prepare(item);
    if (item.declares) {
      declaring_ = true;
      proto::put_queue_declare(out_.tail(), id_, item.declare_queue, true);
    }
    send(std::move(item));
  }
}

void PrivateChannel::send(Item item) {
  out_.append(item.frames);
  const uint64_t tag = item.asks ? 0 : next_tag_++;
  in_flight_.push_back({std::move(item), tag, false, 0, {}});
}

// The exchange.declare-ok to a question.
void PrivateChannel::answered() {
  if (in_flight_.empty() || !in_flight_.front().item.asks) return;
  Item item = std::move(in_flight_.front().item);
  in_flight_.pop_front();
  if (alone_ > 0) alone_--;
  item.done({});
  pump();
}

bool PrivateChannel::on_frame(const proto::Frame& frame) {
  using namespace proto;
  if (return_open_) {
    if (frame.type == frame_header) {
      on_return(frame);
      if (return_rest_bytes_ == 0) return_open_ = false;
      return true;
    }
    if (frame.type != frame_body || frame.payload.size() > return_rest_bytes_) return false;
    return_rest_bytes_ -= frame.payload.size();
    if (return_rest_bytes_ == 0) return_open_ = false;
    return true;
  }
  if (frame.type != frame_method) return false;
  switch (method_number(frame.payload)) {
    case method::channel_open_ok:
      put_empty_method(out_.tail(), method::confirm_select, id_, 1);
      state_ = State::selecting;
      return true;
    case method::confirm_select_ok:
      state_ = State::ready;
      next_tag_ = 1;
      pump();
      return true;
    case method::queue_declare_ok:
      declaring_ = false;
      pump();
      return true;
    case method::exchange_declare_ok:
      answered();
      return true;
    case method::basic_ack:
    case method::basic_nack: {
      auto settled = decode_settle(frame.payload);
      if (!settled) return false;
      settle(settled.value().delivery_tag, settled.value().multiple,
             method_number(frame.payload) == method::basic_nack);
      return true;
    }
    case method::basic_return: {
      auto returned = decode_return(frame.payload);
      if (!returned) return false;
      return_open_ = true;
      return_code_ = returned.value().reply_code;
      return_text_ = returned.value().reply_text;
      return_exchange_ = returned.value().exchange;
      return_key_ = returned.value().routing_key;
      return true;
    }
    case method::channel_close:
      on_close(frame);
      return true;
    case method::channel_flow:
      return true;
    default:
      return false;
  }
}

// A return carries no tag: it belongs to the earliest item in flight that looks like it. Items that look
// alike share their fate.
void PrivateChannel::on_return(const proto::Frame& frame) {
  auto header = proto::decode_content_header(frame.payload);
  return_rest_bytes_ = header ? header.value().body_bytes : 0;
  if (!header) return;
  std::string_view message_id = header.value().text(proto::message_id);
  auto match = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const Flying& flying) {
    return !flying.returned && flying.item.exchange == return_exchange_ &&
           flying.item.routing_key == return_key_ && flying.item.message_id == message_id;
  });
  if (match == in_flight_.end()) return;
  match->returned = true;
  match->code = return_code_;
  match->text = return_text_;
}

void PrivateChannel::settle(uint64_t tag, bool multiple, bool nack) {
  std::vector<Flying> settled;
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    if (at->tag == tag || (multiple && (tag == 0 || at->tag < tag))) {
      settled.push_back(std::move(*at));
      at = in_flight_.erase(at);
    } else {
      ++at;
    }
  }
  if (alone_ > 0 && !settled.empty()) alone_--;
  for (Flying& flying : settled) {
    Outcome outcome;
    if (flying.returned && !flying.item.declare_queue.empty() && !flying.item.declares) {
      flying.item.declares = true;
      if (alone_ > 0) alone_++;
      waiting_.push_front(std::move(flying.item));
      continue;
    }
    if (flying.returned) {
      outcome = {Outcome::Kind::returned, flying.code, flying.text};
    } else if (nack) {
      outcome = {Outcome::Kind::nacked, 0, "nack"};
    }
    flying.item.done(outcome);
  }
  pump();
}

void PrivateChannel::on_close(const proto::Frame& frame) {
  auto close = proto::decode_close(frame.payload);
  proto::put_empty_method(out_.tail(), proto::method::channel_close_ok, id_);
  state_ = State::closed;
  declaring_ = false;
  return_open_ = false;
  std::deque<Flying> pending = std::move(in_flight_);
  in_flight_.clear();
  if (pending.size() == 1) {
    // It was alone, so it is the one that closed the channel.
    if (alone_ > 0) alone_--;
    Outcome outcome{Outcome::Kind::refused, 0, "channel closed"};
    if (close) {
      outcome.code = close.value().reply_code;
      outcome.text = close.value().reply_text;
    }
    pending.front().item.done(outcome);
  } else {
    alone_ = std::max(alone_, pending.size());
    while (!pending.empty()) {
      waiting_.push_front(std::move(pending.back().item));
      pending.pop_back();
    }
  }
  pump();
}

}  // namespace bellhop
