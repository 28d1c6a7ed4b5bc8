#include "controlplane/registry/unenforced.h"

#include "controlplane/storage/store.h"
#include "lib/base/log.h"

namespace keelson::registry {

std::string_view UnenforcedWarning(const api::ResourceInfo& info) {
  if (info.group != "admissionregistration.k8s.io" || info.resource.ends_with("webhookconfigurations")) {
    return {};
  }
  return "stored but not enforced: this API server evaluates no admission policies";
}

void LogUnenforced(const api::ResourceInfo& info, std::string_view name) {
  log::Warn("An admission rule is stored and not enforced", {{"kind", info.kind}, {"name", name}});
}

void LogAllUnenforced(const storage::Store& store) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty() || info.IsSubresource() || UnenforcedWarning(info).empty()) continue;
    store.ForEach(info, [&](const storage::ObjectPtr& object) {
      // Versions that share their storage are reported once.
      if (&object->info() == &info) LogUnenforced(info, object->name());
    });
  }
}

}  // namespace keelson::registry
