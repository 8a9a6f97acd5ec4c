#include "daemon/cli/adopt_sockets.h"

#include "daemon/cli/admin_side.h"
#include "daemon/ops/service_environment.h"

namespace bellhop {

Result<InheritedSockets> adopt_sockets(const std::vector<std::string>& names, const config::Config& config) {
  auto adopted = InheritedSockets::adopt(first_inherited_fd, names);
  if (!adopted) return adopted;
  std::vector<config::Listen> entries = config.listen;
  for (config::Listen& entry : AdminSide::entries_of(config.admin)) entries.push_back(std::move(entry));
  if (const auto matched = adopted.value().match(entries); !matched) return Error{matched.error()};
  return adopted;
}

}  // namespace bellhop
