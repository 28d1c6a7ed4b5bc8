// Empties and removes namespaces that are being deleted.
//
//   DELETE namespace        -> deletionTimestamp, phase Terminating (the API server)
//   delete all its objects  -> wait until they are gone (pods take their grace period, finalizers their time)
//   remove spec.finalizers "kubernetes" through /finalize -> the API server removes the namespace
#pragma once

#include <map>
#include <vector>

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class NamespaceController : public Controller {
 public:
  NamespaceController(client::RestClient api, client::InformerFactory& informers,
                      client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

  // What is left in a namespace after a pass.
  struct Content {
    std::map<std::string, int> remaining;   // by "pods." or "deployments.apps"
    std::map<std::string, int> finalizers;  // objects that wait for each
    std::vector<std::string> failures;
    std::chrono::seconds grace{0};  // the longest that a pod may still take
  };

 private:
  Result<> DeleteContent(const client::RestClient& api, const api::ResourceInfo& info, const std::string& ns,
                         Content& content);
  // Pods first: what protects them (network policies, their claims) stays as long as they do.
  Result<> DeleteAll(const client::RestClient& api, const std::string& ns, std::stop_token stop,
                     Content& content);
  Result<> WriteStatus(const client::RestClient& api, const corev1::Namespace& ns, const Content& content);

  client::RestClient api_;
  client::Informer<corev1::Namespace>& namespaces_;
};

// The five conditions that tell what a deletion waits for.
void SetDeletionConditions(const NamespaceController::Content& content, WallTime now,
                           corev1::NamespaceStatus& status);

}  // namespace keelson::controllers
