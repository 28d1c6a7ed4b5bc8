// ResourceClaims, ResourceSlices and DeviceClasses as the API server has shown them, plus what the scheduler has decided:
//
//   pending claims   an allocation that Reserve has chosen and PreBind is still to write
//   assumed claims   as a write has returned them, until the informer shows that version or a newer one
//
// The devices of all of these are in use. No other pod gets a claim while it is pending: its allocation may still fail.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controlplane/scheduler/devices/pools.h"
#include "controlplane/scheduler/devices/uses.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

class DeviceCatalog {  // thread safe but for Refresh()
 public:
  using Claim = resourcev1::ResourceClaim;
  using ClaimPtr = std::shared_ptr<const Claim>;
  using ClassPtr = std::shared_ptr<const resourcev1::DeviceClass>;

  // These set what the API server shows, by "namespace/name" or name; null: it is gone.
  void SetClaim(const std::string& key, ClaimPtr claim);
  void SetSlice(const std::string& name, SlicePtr slice);
  void SetClass(const std::string& name, ClassPtr device_class);

  // The assumed or else the shown claim; null: none.
  ClaimPtr FindClaim(std::string_view ns, std::string_view name) const;
  ClassPtr FindClass(const std::string& name) const;

  // Makes the claim, which has an allocation by now, pending. False: it is pending already.
  bool AddPending(ClaimPtr claim);
  bool IsPending(const std::string& uid) const;
  // The claim is no longer pending. True: it was.
  bool RemovePending(const std::string& uid);
  // Assumes the claim as a write has returned it. Without effect when it is gone, or a newer version is shown.
  void Assume(const Claim& claim);
  // Drops an assumed claim: the shown one counts again.
  void Restore(const std::string& key);

  // Sets a function that is called after each change but AddPending(), with the catalog's lock held. Before the first object.
  void OnChange(std::function<void()> changed);

  // Pools and uses as of now. Both belong to the scheduling thread, and stay as they are until its next call.
  struct View {
    PoolIndex pools;
    DeviceUses uses;
  };
  View& Refresh();

 private:
  void Changed() KEELSON_REQUIRES(mutex_);
  ClaimPtr Current(const std::string& key) const KEELSON_REQUIRES(mutex_);
  mutable Mutex mutex_;
  std::function<void()> changed_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, ClaimPtr, std::less<>> shown_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, ClaimPtr, std::less<>> assumed_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_map<std::string, ClaimPtr> pending_ KEELSON_GUARDED_BY(mutex_);  // by UID
  std::unordered_map<std::string, ClassPtr> classes_ KEELSON_GUARDED_BY(mutex_);
  // What view_ does not have yet.
  std::set<std::string> stale_claims_ KEELSON_GUARDED_BY(mutex_);   // keys
  std::set<std::string> stale_pending_ KEELSON_GUARDED_BY(mutex_);  // UIDs
  std::map<std::string, SlicePtr> new_slices_ KEELSON_GUARDED_BY(mutex_);
  // Of the scheduling thread: the view, and the claims that its uses count, by key and by UID.
  std::unordered_map<std::string, ClaimPtr> counted_, counted_pending_;
  View view_;
};

}  // namespace keelson::scheduler
