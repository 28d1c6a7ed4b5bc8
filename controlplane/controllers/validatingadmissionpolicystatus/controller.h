// Checks the types of ValidatingAdmissionPolicies, once each generation, and writes what it finds to their status: fields
// that objects do not have, values that do not fit together. Policies are in force without it; their expressions see
// objects without types (pkg/controller/validatingadmissionpolicystatus of kube-controller-manager).
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/validatingadmissionpolicystatus/type_check.h"

namespace keelson::controllers {

// Types come from the OpenAPI documents that the API server publishes. A kind without a document, or whose server does
// not answer, is not checked. A definition that comes later does not lead to another check.
class ValidatingAdmissionPolicyStatusController : public Controller {
 public:
  ValidatingAdmissionPolicyStatusController(client::RestClient api, client::InformerFactory& informers,
                                            client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a policy

 private:
  client::RestClient api_;
  client::Informer<admissionregistrationv1::ValidatingAdmissionPolicy>& policies_;
};

}  // namespace keelson::controllers
