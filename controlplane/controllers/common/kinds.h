// The kinds whose objects controllers of all kinds (namespaces, garbage collector) look after.
#pragma once

#include <vector>

#include "lib/api/scheme.h"

namespace keelson::controllers {

// Main resources that can be listed, watched and deleted, one a storage: not events twice, not both versions
// of autoscalers.
const std::vector<const api::ResourceInfo*>& CollectableKinds();

// The resource behind an owner reference's apiVersion and kind, also of versions other than the stored one;
// null for kinds that are not built in.
const api::ResourceInfo* KindOf(std::string_view api_version, std::string_view kind);

}  // namespace keelson::controllers
