// Admission policies and webhook configurations: stored for whoever enforces them, and not enforced here.
// Nobody who relies on them should miss that.
#pragma once

#include <string_view>

#include "lib/api/scheme.h"

namespace keelson::storage {
class Store;
}

namespace keelson::registry {

// The warning for who writes an object of this (main) resource; empty: what it says is done.
std::string_view UnenforcedWarning(const api::ResourceInfo& info);
// One line for an object that was created, or is there when the server starts.
void LogUnenforced(const api::ResourceInfo& info, std::string_view name);
void LogAllUnenforced(const storage::Store& store);

}  // namespace keelson::registry
