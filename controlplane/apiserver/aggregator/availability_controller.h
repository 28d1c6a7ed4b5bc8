// Keeps the condition Available of all APIServices, and the documents of those whose servers answer. Looks again every
// 30 seconds, after a change of the APIService, its Service or EndpointSlices, and after a failure with a growing delay
// of up to 30 seconds.
#pragma once

#include <stop_token>
#include <string>

#include "controlplane/apiserver/aggregator/availability.h"
#include "controlplane/apiserver/aggregator/extension_documents.h"
#include "controlplane/registry/registry.h"
#include "lib/client/workqueue.h"

namespace keelson::apiserver {

class AvailabilityController {  // thread safe
 public:
  // All must outlive this.
  AvailabilityController(registry::Registry& registry, const ApiServices& services, ExtensionClients& clients,
                         ExtensionDocuments& documents, Clock& clock);
  // Changes, from a Reflector.
  void Changed(const std::string& name) { queue_.Add(name); }
  void ServiceChanged(std::string_view key);  // namespace/name
  void SliceChanged(const storage::Object& slice);
  void SliceRemoved(std::string_view key);  // namespace/name
  void Run(std::stop_token stop);

 private:
  Result<client::Requeue> Reconcile(const std::string& name, std::stop_token stop);
  Result<> Write(const ApiServiceEntry& entry, const Availability& availability, std::stop_token stop);

  registry::Registry& registry_;
  const ApiServices& services_;
  ExtensionClients& clients_;
  ExtensionDocuments& documents_;
  Clock& clock_;
  client::WorkQueue queue_;
};

}  // namespace keelson::apiserver
