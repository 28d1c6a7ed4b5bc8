// The verbs of stored resources.
#pragma once

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/handlers/watch.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class ResourceHandler {  // thread safe
 public:
  ResourceHandler(registry::Registry& registry, WatchManager& watches, const AdmissionChain& admission,
                  const Authorizer& authorizer)
      : registry_(registry), watches_(watches), admission_(admission), authorizer_(authorizer) {}

  // `context.resource` must be set, and must have the verb.
  void Handle(Context& context);

 private:
  Result<> Get(Context& context);
  Result<> List(Context& context);
  Result<> Watch(Context& context);
  Result<> Create(Context& context);
  Result<> Update(Context& context);
  Result<> Patch(Context& context);
  Result<> Delete(Context& context);
  Result<> DeleteCollection(Context& context);
  Result<registry::WriteOptions> Options(Context& context, bool apply = false,
                                         const metav1::DeleteOptions* deletion = nullptr) const;
  Result<> MayCreate(const Context& context) const;
  Result<> MayDeleteUnreadable(const Context& context) const;

  registry::Registry& registry_;
  WatchManager& watches_;
  const AdmissionChain& admission_;
  const Authorizer& authorizer_;
};

}  // namespace keelson::apiserver
