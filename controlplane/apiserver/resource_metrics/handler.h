// metrics.k8s.io: resource usage of nodes and pods, as metrics-server serves it. Objects are created on
// demand from the pods and nodes of the watch caches; nothing is stored.
#pragma once

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/resource_metrics/usage_store.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class UsageHandler {
 public:
  UsageHandler(registry::Registry& registry, const UsageStore& usage) : registry_(registry), usage_(usage) {}

  static bool Serves(const api::ResourceInfo& row) { return row.group == "metrics.k8s.io"; }
  void Handle(Context& context) const;

 private:
  Result<> Get(Context& context) const;
  Result<> List(Context& context) const;
  // Null: no usage is known.
  registry::ObjectPtr Make(const api::ResourceInfo& row, const storage::Object& of) const;

  registry::Registry& registry_;
  const UsageStore& usage_;
};

}  // namespace keelson::apiserver
