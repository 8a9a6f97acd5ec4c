// One function a section of the file. Each reads its key out of the root, reports what is wrong, and fills
// its part of the Config. The order that load.cpp calls them in matters where a section looks at what an
// earlier one filled in.
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
void load_log(Section& root, Config& config);

// `claim_check` and `stamp` of the file and of a route alike: what the section leaves out stays as it is in
// `out`.
void read_claim_check(const Value& value, const Config& config, ClaimCheck& out);
void read_stamp(const Value& value, Stamp& out);
// A name that must be a configured store's; one that is not is reported, and returned all the same.
std::optional<std::string> read_store_name(const Value& value, const Config& config);

// `broker.tls`, after the URLs.
void load_tls(Section& broker_section, Broker& broker);

}  // namespace bellhop::config
