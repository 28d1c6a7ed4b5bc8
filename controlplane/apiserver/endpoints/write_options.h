// What a write's query says of how it is to be done.
#pragma once

#include <string>
#include <string_view>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// ?fieldValidation=, ?dryRun=, ?fieldManager=, ?force= and the user; 422 in upstream's words for what they
// may not be. `apply`: the write is an apply, which takes `force` and needs a manager.
Result<registry::WriteOptions> ParseWriteOptions(const Context& context, bool apply = false);

// Who manages what a client writes that does not say: the name of its program.
std::string ManagerOfUserAgent(std::string_view user_agent);

}  // namespace keelson::apiserver
