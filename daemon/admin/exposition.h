// /metrics: what the daemon counts, in Prometheus' text format. The serializer is prometheus-cpp's; its
// registry is not used, because a session counts for itself and without a lock.
#pragma once

#include <string>

#include "daemon/admin/sources.h"

namespace bellhop {

// Any thread.
std::string exposition(const AdminSources& sources);

inline constexpr const char* exposition_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace bellhop
