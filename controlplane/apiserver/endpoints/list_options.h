// Parses query parameters of reads, as upstream does.
#pragma once

#include <optional>
#include <string_view>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// For list, watch and deletecollection. kBadRequest for invalid numbers and selectors; the registry checks
// their combinations.
Result<registry::ListOptions> ParseListOptions(const Context& context);

// True when the parameter is present, even if empty (?watch), and neither "false" nor "0".
bool IsSet(const http::Query& query, std::string_view name);
// Nullopt when missing. kBadRequest in Go's wording.
Result<std::optional<int64_t>> IntParameter(const http::Query& query, std::string_view name);

}  // namespace keelson::apiserver
