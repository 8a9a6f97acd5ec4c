// What the shared parts of a session ask of its two halves, without knowing them: up/ handles what the client
// says, down/ what the broker says. Implemented by Relay (relay.h).
#pragma once

#include <memory>

namespace bellhop {

class Delivery;
struct Channel;

class UpperHalf {
 public:
  // Drops the publish whose frames are arriving and all that wait, undoing what they stored; the rest of one
  // that the broker has half of still goes there.
  virtual void abandon_publishes(Channel& channel) = 0;

 protected:
  ~UpperHalf() = default;
};

class LowerHalf {
 public:
  // Parks what no_ack consumers were not handed: the broker has forgotten it.
  virtual void park_unhanded(Channel& channel) = 0;
  // Drops what is arriving and what is held, but for a content that is half out and returns.
  virtual void abandon_deliveries(Channel& channel) = 0;
  // basic.recover went up: the broker has everything unacknowledged back.
  virtual void recover(Channel& channel) = 0;
  // A hop came back: the client is handed its publish, as frames or (with a key) from its store.
  virtual void hand_back(Channel& channel, std::shared_ptr<Delivery> returned) = 0;

 protected:
  ~LowerHalf() = default;
};

}  // namespace bellhop
