// Admission policies that this server stores for others to enforce, but does not enforce itself. Users who rely on them get a warning.
#pragma once

#include <string_view>

#include "lib/api/scheme.h"

namespace keelson::storage {
class Store;
}

namespace keelson::registry {

// The warning for a client that writes an object of this (main) resource; empty: the server enforces it.
std::string_view UnenforcedWarning(const api::ResourceInfo& info);
// Logs one line about an object, when it is created or found at start.
void LogUnenforced(const api::ResourceInfo& info, std::string_view name);
void LogAllUnenforced(const storage::Store& store);

}  // namespace keelson::registry
