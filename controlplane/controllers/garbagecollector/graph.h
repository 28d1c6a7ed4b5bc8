// Who owns whom, over all kinds, as the informers tell it. Holds metadata alone.
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
  // Takes in an object as it is now. Returns the UIDs to look at: the object itself, and when its deletion
  // has begun to wait for its dependents, those too.
  std::vector<std::string> Observe(GraphNode node);
  // The object is gone. Returns its dependents, and owners that wait for them.
  std::vector<std::string> Forget(const std::string& uid);

  std::optional<GraphNode> Find(const std::string& uid) const;
  std::vector<GraphNode> Dependents(const std::string& uid) const;
  // Every owner is there and none waits for its dependents to go: nothing to do for the object.
  bool AllOwnersStand(const GraphNode& node) const;

 private:
  void Link(const GraphNode& node) REQUIRES(mutex_);
  void Unlink(const GraphNode& node) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<std::string, GraphNode> nodes_ GUARDED_BY(mutex_);  // by UID
  std::unordered_map<std::string, std::set<std::string>> dependents_
      GUARDED_BY(mutex_);  // by the owner's UID
};

// Owners that the API has said are not there, so that it is not asked for each of their dependents. An UID
// that is not there never comes back.
class AbsentOwners {  // thread safe
 public:
  bool Has(const std::string& ns, const metav1::OwnerReference& owner) const;
  void Add(const std::string& ns, const metav1::OwnerReference& owner);

 private:
  static constexpr size_t kMost = 500;

  mutable Mutex mutex_;
  std::set<std::string> keys_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
