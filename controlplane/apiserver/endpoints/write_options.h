// Parses query parameters of writes.
#pragma once

#include <string>
#include <string_view>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// Reads ?fieldValidation=, ?dryRun=, ?fieldManager=, ?force= and the user. kInvalid in upstream's wording for
// invalid values. `apply`: server-side apply, which allows `force` and requires a manager.
Result<registry::WriteOptions> ParseWriteOptions(const Context& context, bool apply = false);

// The default field manager: the program name in the User-Agent.
std::string ManagerOfUserAgent(std::string_view user_agent);

}  // namespace keelson::apiserver
