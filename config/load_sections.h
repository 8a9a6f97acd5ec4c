// One function for each section of the file. Each reads its key from the root, reports what is wrong, and
// fills its part of the Config. load.cpp's order matters where a section looks at what an earlier one filled
// in.
#pragma once

#include <optional>
#include <string>

#include "config/config.h"
#include "config/reader.h"

namespace bellhop::config {

void load_service(Section& root, Config& config);
void load_broker(Section& root, Config& config);
void load_listen(Section& root, Config& config);  // after broker
void load_stores(Section& root, Config& config);
void load_claim_check(Section& root, Config& config);  // after stores
void load_stamp(Section& root, Config& config);
void load_pipelines(Section& root, Config& config);
void load_routes(Section& root, Config& config);   // after stores, claim_check, stamp, pipelines
void load_slip(Section& root, Config& config);     // after pipelines, routes
void load_consume(Section& root, Config& config);  // after stores
void load_limits(Section& root, Config& config);   // after broker
void load_admin(Section& root, Config& config);    // after listen
void load_log(Section& root, Config& config);

// For `claim_check` and `stamp` of the file and of a route alike: what the section leaves out stays as it is
// in `out`.
void read_claim_check(const Value& value, const Config& config, ClaimCheck& out);
void read_stamp(const Value& value, Stamp& out);
// Reads the name of a configured store. Reports a name that is none, and returns it all the same.
std::optional<std::string> read_store_name(const Value& value, const Config& config);

// `broker.tls`, after the URLs.
void load_tls(Section& broker_section, Broker& broker);

}  // namespace bellhop::config
