// Built-in admission: plugins that complete or refuse an object on its way into the store. One file each.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/user.h"
#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"

namespace keelson::apiserver {

struct AdmissionRequest {
  registry::Operation operation;
  const api::ResourceInfo& info;   // may be a subresource's row
  std::string_view ns, name;       // name: of the URL, empty on create
  api::Message* object;            // new state; null on delete
  const api::Message* old_object;  // null on create
  const User& user;

  bool Is(std::string_view group, std::string_view resource) const {
    return info.group == group && info.resource == resource;
  }
};

class AdmissionPlugin {  // thread safe; calls may be repeated for one request
 public:
  virtual ~AdmissionPlugin() = default;
  virtual std::string_view name() const = 0;
  virtual Result<> Mutate(const AdmissionRequest&) { return {}; }
  virtual Result<> Validate(const AdmissionRequest&) { return {}; }
};

// All plugins mutate, in order, then all validate.
class AdmissionChain {
 public:
  explicit AdmissionChain(std::vector<std::unique_ptr<AdmissionPlugin>> plugins)
      : plugins_(std::move(plugins)) {}
  Result<> Run(const AdmissionRequest& request) const;

 private:
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins_;
};

// 403 as admission says it: pods "x" is forbidden: why
Error NotAdmitted(const AdmissionRequest& request, std::string_view why);

std::unique_ptr<AdmissionPlugin> NewNamespaceLifecycle(storage::Store& store);
std::unique_ptr<AdmissionPlugin> NewServiceAccountAdmission(storage::Store& store);
std::unique_ptr<AdmissionPlugin> NewDefaultTolerationSeconds();
std::unique_ptr<AdmissionPlugin> NewTaintNodesByCondition();
std::unique_ptr<AdmissionPlugin> NewPriority(storage::Store& store);
std::unique_ptr<AdmissionPlugin> NewPodStatus();
std::unique_ptr<AdmissionPlugin> NewNodeRestriction(storage::Store& store);
std::unique_ptr<AdmissionPlugin> NewRbacEscalation(std::shared_ptr<const Authorizer> authorizer,
                                                   storage::Store& store);

}  // namespace keelson::apiserver
