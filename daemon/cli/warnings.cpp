#include "daemon/cli/warnings.h"

#include <string>

#include "config/hold_warnings.h"
#include "config/retention_warnings.h"
#include "config/slip_warnings.h"
#include "daemon/cli/missing_folders.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

void tell_warnings(const config::Config& config) {
  if (config.broker.uses_tls() && !config.broker.tls.verify)
    log_warn("broker.tls.verify is false: anybody between bellhop and the broker can pose as the broker");
  for (const std::string& warning : config::retention_warnings(config)) log_warn(warning);
  for (const std::string& warning : config::slip_warnings(config)) log_warn(warning);
  for (const std::string& warning : config::hold_warnings(config)) log_warn(warning);
  if (const std::string wrong = missing_scratch_folder(config); !wrong.empty()) log_warn(wrong);
}

}  // namespace bellhop
