// ChannelClose: how far a channel's end has come. Closing (closing.h) alone changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace bellhop {

class ChannelClose {
 public:
  enum class State : uint8_t {
    open,
    client_closing,  // the client's channel.close went up
    broker_closing,  // the broker's channel.close was handed on
    local_closing,   // closed by bellhop: the broker is told, then the client
  };

  bool is_open() const { return state_ == State::open; }
  bool is_client_closing() const { return state_ == State::client_closing; }
  bool is_broker_closing() const { return state_ == State::broker_closing; }
  bool is_local() const { return state_ == State::local_closing; }
  // Open, or the client's close is on its way up: what the broker said before it read that is still the
  // client's.
  bool is_served() const { return is_open() || (is_client_closing() && broker_owes_close_ok_); }
  // Closed by bellhop, and the broker has answered: nothing more comes from there.
  bool is_over_at_broker() const { return is_local() && broker_close_ok_; }
  // Closed by bellhop, and the client does not know yet.
  bool is_untold() const { return untold_.has_value(); }
  // bellhop closes it when the publish that is being relayed has gone up whole.
  bool waits_for_whole() const { return when_whole_.has_value(); }

 private:
  friend class Closing;
  // Why bellhop closes the channel. The broker is told at once, the client when the broker has answered all
  // that the channel said before.
  struct Reason {
    uint16_t code = 0;
    std::string text;
    uint32_t method = 0;
    bool answers_client = false;  // the client's own close was on its way
  };

  State state_ = State::open;
  std::optional<Reason> untold_;  // local_closing: the client does not know yet
  bool crossed_ = false;          // local_closing: the client's close was answered
  bool broker_close_ok_ = false;  // local_closing: the broker has answered
  // client_closing, broker_closing: closes that were relayed and are not answered. Both, when they crossed.
  bool client_owes_close_ok_ = false, broker_owes_close_ok_ = false;
  std::optional<Reason> when_whole_;  // a local close that waits for the end of a publish that is relayed
};

}  // namespace bellhop
