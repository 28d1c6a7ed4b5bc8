// The ownership graph over all resources, built from informers. It holds metadata only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

struct GraphNode {
  const api::ResourceInfo* info = nullptr;
  std::string ns, name, uid;
  std::vector<metav1::OwnerReference> owners;
  bool deleting = false;    // deletionTimestamp is set
  bool foreground = false;  // ... and the finalizer foregroundDeletion
  bool orphaning = false;   // ... and the finalizer orphan
};

class OwnerGraph {  // thread safe
 public:
  // Adds or updates an object. Returns the UIDs to process: the object's, and those of its dependents when
  // its foreground deletion or orphaning has begun.
  std::vector<std::string> Observe(GraphNode node);
  // Removes an object. Returns the UIDs of its dependents, and of owners that wait for them.
  std::vector<std::string> Forget(const std::string& uid);

  std::optional<GraphNode> Find(const std::string& uid) const;
  std::vector<GraphNode> Dependents(const std::string& uid) const;
  // True when every owner is in the graph and none is in foreground deletion: the object needs no processing.
  bool AllOwnersStand(const GraphNode& node) const;

 private:
  void Link(const GraphNode& node) KEELSON_REQUIRES(mutex_);
  void Unlink(const GraphNode& node) KEELSON_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<std::string, GraphNode> nodes_ KEELSON_GUARDED_BY(mutex_);  // by UID
  std::unordered_map<std::string, std::set<std::string>> dependents_
      KEELSON_GUARDED_BY(mutex_);  // by the owner's UID
};

// A cache of owners that the API reported as not found, so that each dependent does not query again. A UID
// that is gone never comes back.
class AbsentOwners {  // thread safe
 public:
  bool Has(const std::string& ns, const metav1::OwnerReference& owner) const;
  void Add(const std::string& ns, const metav1::OwnerReference& owner);

 private:
  static constexpr size_t kMost = 500;

  mutable Mutex mutex_;
  std::set<std::string> keys_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
