// Deletes the content of namespaces in phase Terminating, then finalizes them.
//
//   DELETE namespace         -> deletionTimestamp, phase Terminating (the API server)
//   delete all its objects   -> wait until they are gone (pods: grace period; others: their finalizers)
//   remove the finalizer "kubernetes" through /finalize -> the API server removes the namespace
#pragma once

#include <map>
#include <vector>

#include "controlplane/controllers/common/controller.h"
#include "lib/client/discovered_informers.h"

namespace keelson::controllers {

class NamespaceController : public Controller {
 public:
  NamespaceController(client::RestClient api, client::InformerFactory& informers,
                      client::EventRecorder& events, Clock& clock, client::DiscoveredInformers& discovered);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

  // The content that remains in a namespace after a pass.
  struct Content {
    std::map<std::string, int> remaining;   // by "pods." or "deployments.apps"
    std::map<std::string, int> finalizers;  // number of objects per finalizer
    std::vector<std::string> failures;
    std::string
        discovery_failure;  // why there may be content of kinds that are not known; empty: there is none
    std::chrono::seconds grace{0};  // the longest remaining grace period of a pod
  };

 private:
  Result<> DeleteContent(const client::RestClient& api, const api::ResourceInfo& info, const std::string& ns,
                         Content& content);
  // Deletes pods first, so that network policies and claims outlive the pods that they protect.
  Result<> DeleteAll(const client::RestClient& api, const std::string& ns, std::stop_token stop,
                     Content& content);
  Result<> WriteStatus(const client::RestClient& api, const corev1::Namespace& ns, const Content& content);

  // The resources that discovery finds beside the built-in ones, as of now: a definition may be younger than what the
  // informers know.
  std::vector<const api::ResourceInfo*> Discovered(const client::RestClient& api, std::stop_token stop,
                                                   Content& content) const;

  client::RestClient api_;
  client::Informer<corev1::Namespace>& namespaces_;
};

// Sets the five conditions that report the progress of a deletion.
void SetDeletionConditions(const NamespaceController::Content& content, WallTime now,
                           corev1::NamespaceStatus& status);

}  // namespace keelson::controllers
