// Deletes objects whose owners are all gone, and implements the other propagation policies:
//
//   Background  owner deleted -> dependents deleted afterwards
//   Foreground  owner has finalizer foregroundDeletion -> dependents deleted, then the finalizer removed
//   Orphan      owner has finalizer orphan -> its UID removed from dependents, then the finalizer removed
//
// The graph only suggests: before a deletion the controller reads the object and its owners from the API. It holds the
// objects of all built-in kinds and of all that discovery finds. An object whose owner is of a kind that the server does
// not serve, which may be so only for now, is left alone.
#pragma once

#include <set>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/garbagecollector/graph.h"
#include "lib/client/discovered_informers.h"
#include "lib/client/metadata_client.h"

namespace keelson::controllers {

class GarbageCollector : public Controller {
 public:
  GarbageCollector(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                   Clock& clock, client::DiscoveredInformers& discovered);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a UID

 private:
  void Observe(const api::ResourceInfo& info, const client::Change<metav1::PartialObjectMetadata>& change);

  // The owners of an object, as read from the API.
  struct Classes {
    bool unknown = false;  // an owner's kind is not served, so that nothing can be said of the object
    bool solid = false;    // an owner exists and stays
    std::vector<std::string> waiting, absent;  // UIDs: in foreground deletion; not found
  };
  Result<Classes> Classify(const client::MetadataClient& api, const GraphNode& node,
                           const metav1::ObjectMeta& live);
  // Null when the server does not serve the kind.
  const api::ResourceInfo* ResourceOf(const metav1::OwnerReference& owner) const;
  Result<bool> IsAbsent(const client::MetadataClient& api, const api::ResourceInfo& info,
                        const GraphNode& node, const metav1::OwnerReference& owner);
  // Records an event for an owner that exists, but in a namespace from which it cannot own the object.
  void TellMisplaced(const GraphNode& node, const metav1::OwnerReference& owner);

  Result<> Collect(const client::MetadataClient& api, const GraphNode& node, const metav1::ObjectMeta& live);
  Result<> FinishForeground(const client::MetadataClient& api, const GraphNode& node,
                            const metav1::ObjectMeta& live);
  Result<> Orphan(const client::MetadataClient& api, const GraphNode& node, const metav1::ObjectMeta& live);
  Result<> RemoveFinalizer(const client::MetadataClient& api, const GraphNode& node,
                           const metav1::ObjectMeta& live, const std::string& finalizer);
  Result<> RemoveOwners(const client::MetadataClient& api, const GraphNode& node,
                        const std::vector<std::string>& uids);
  // Clears blockOwnerDeletion in the object's owner references. Returns the stored metadata.
  Result<metav1::ObjectMeta> UnblockOwners(const client::MetadataClient& api, const GraphNode& node,
                                           const metav1::ObjectMeta& live);
  Result<> DeleteNode(const client::MetadataClient& api, const GraphNode& node,
                      const metav1::ObjectMeta& live, const char* policy);

  client::MetadataClient api_;
  client::EventRecorder& events_;
  client::DiscoveredInformers& discovered_;
  OwnerGraph graph_;
  AbsentOwners absent_;
  Mutex mutex_;
  // UIDs of objects with owners of such kinds. They are looked at again when discovery brings something new.
  std::set<std::string> of_unknown_kinds_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
