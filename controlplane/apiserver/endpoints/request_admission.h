// Admission of one HTTP request: the chain of plugins, with what the request says of itself.
#pragma once

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

class RequestAdmission {
 public:
  // All arguments must outlive the object. `deletion`: of a DELETE; it may be filled in later.
  RequestAdmission(const AdmissionChain& chain, Context& context, bool dry_run,
                   const metav1::DeleteOptions* deletion = nullptr);

  // One phase, with its objects as registry::Admission has them. Adds annotations to the audit record,
  // warnings to the response, and a plugin's own Status for a rejected request.
  Result<> Run(registry::AdmissionPhase phase, registry::Operation operation, const api::ResourceInfo& info,
               api::Message* object, const api::Message* old_object);
  // Both phases, for operations without steps between them.
  Result<> RunBoth(registry::Operation operation, const api::ResourceInfo& info, api::Message* object,
                   const api::Message* old_object);

 private:
  void Publish(bool admitted);

  const AdmissionChain& chain_;
  Context& context_;
  const bool dry_run_;
  OperationOptions options_;
  AdmissionNotes notes_;
};

}  // namespace keelson::apiserver
