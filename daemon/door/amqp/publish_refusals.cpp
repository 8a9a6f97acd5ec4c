#include "daemon/door/amqp/publish_refusals.h"

#include "daemon/door/amqp/log_about.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

void PublishRefusals::refuse(Channel& channel, const PublishJob& job, uint16_t code, const std::string& text,
                             bool closes) {
  state_.meter.settle(job.mark, PublishOutcome::refused);
  // A store that takes nothing is one trouble, whatever it says about each payload.
  const bool is_of_store = job.store != nullptr && job.refused_code != 0;
  tell_trouble(trouble_publish_refused,
               is_of_store ? "store '" + job.store->name() + "'" : subject_of_reason(text), "publish refused",
               about(state_, channel.id, job).add({{"code", code}, {"reason", text}}));
  if (channel.confirm && !closes) {
    tracker_.settle_local(channel, tracker_.take_local_tag(channel), true);
    return;
  }
  closing_.close(channel, code, text, proto::method::basic_publish);
}

}  // namespace bellhop
