// Query parameters of reads, as upstream's conversions read them.
#pragma once

#include <optional>
#include <string_view>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// Of list, watch and deletecollection. kBadRequest for what is no number or no selector; which of them go
// together is for the registry to say.
Result<registry::ListOptions> ParseListOptions(const Context& context);

// A flag is set by anything but "false" and "0", also by nothing at all: ?watch
bool IsSet(const http::Query& query, std::string_view name);
// nullopt: not given. kBadRequest in Go's words.
Result<std::optional<int64_t>> IntParameter(const http::Query& query, std::string_view name);

}  // namespace keelson::apiserver
