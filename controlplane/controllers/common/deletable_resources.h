// Resources that generic controllers (namespaces, garbage collector) process.
#pragma once

#include <vector>

#include "lib/api/scheme.h"

namespace keelson::controllers {

// Main resources with list, watch and delete; one per etcd prefix: events once, one version of
// HorizontalPodAutoscaler.
const std::vector<const api::ResourceInfo*>& DeletableResources();

// Returns the resource for an owner reference's apiVersion and kind, in any version; null for kinds that are
// not built in.
const api::ResourceInfo* RestMapping(std::string_view api_version, std::string_view kind);

}  // namespace keelson::controllers
