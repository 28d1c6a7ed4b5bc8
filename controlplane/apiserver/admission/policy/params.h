// The parameters of admission policies: objects of any kind, which bindings choose by name or labels.
#pragma once

#include <memory>
#include <vector>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"

namespace keelson::apiserver::policy {

// One parameter; without a message: the policy is evaluated without one.
struct Param {
  std::shared_ptr<const api::Message> message;
  const api::ResourceInfo* row = nullptr;
};

// The resource of a paramKind. kInvalid, in upstream's words: there is none.
Result<const api::ResourceInfo*> ResourceOfParams(const api::admissionregistration::v1::ParamKind& kind,
                                                  const KindFinder& find_kind);

// What a binding chooses of the resource. `ns`: of the request. None: the binding is passed over. An error is one of
// configuration.
Result<std::vector<Param>> CollectParams(const api::ResourceInfo& row,
                                         const api::admissionregistration::v1::ParamRef& reference,
                                         std::string_view ns, storage::Store& store, SteadyTime deadline);

}  // namespace keelson::apiserver::policy
