// Deletes objects whose owners are all gone, and implements the other propagation policies:
//
//   Background  owner deleted -> dependents deleted afterwards
//   Foreground  owner has finalizer foregroundDeletion -> dependents deleted, then the finalizer removed
//   Orphan      owner has finalizer orphan -> its UID removed from dependents, then the finalizer removed
//
// The graph only suggests: before a deletion the controller reads the object and its owners from the API.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/garbagecollector/graph.h"

namespace keelson::controllers {

class GarbageCollector : public Controller {
 public:
  GarbageCollector(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                   Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a UID

 private:
  void Observe(const api::ResourceInfo& info, const client::Change<metav1::PartialObjectMetadata>& change);

  // The owners of an object, as read from the API.
  struct Owners {
    bool solid = false;                        // an owner exists and stays
    std::vector<std::string> waiting, absent;  // UIDs: in foreground deletion; not found
  };
  Result<Owners> Classify(const client::RestClient& api, const GraphNode& node,
                          const metav1::ObjectMeta& live);
  Result<bool> IsAbsent(const client::RestClient& api, const GraphNode& node,
                        const metav1::OwnerReference& owner);
  // Records an event for an owner that exists, but in a namespace from which it cannot own the object.
  void TellMisplaced(const GraphNode& node, const metav1::OwnerReference& owner);

  Result<> Collect(const client::RestClient& api, const GraphNode& node, const metav1::ObjectMeta& live);
  Result<> FinishForeground(const client::RestClient& api, const GraphNode& node,
                            const metav1::ObjectMeta& live);
  Result<> Orphan(const client::RestClient& api, const GraphNode& node, const metav1::ObjectMeta& live);
  Result<> RemoveFinalizer(const client::RestClient& api, const GraphNode& node,
                           const metav1::ObjectMeta& live, const std::string& finalizer);
  Result<> RemoveOwners(const client::RestClient& api, const GraphNode& node,
                        const std::vector<std::string>& uids);
  // Clears blockOwnerDeletion in the object's owner references. Returns the stored metadata.
  Result<metav1::ObjectMeta> UnblockOwners(const client::RestClient& api, const GraphNode& node,
                                           const metav1::ObjectMeta& live);
  Result<> DeleteNode(const client::RestClient& api, const GraphNode& node, const metav1::ObjectMeta& live,
                      const char* policy);

  client::RestClient api_;
  client::EventRecorder& events_;
  OwnerGraph graph_;
  AbsentOwners absent_;
};

}  // namespace keelson::controllers
