// Expands volumes of one driver whose claims ask for more, as external-resizer does: ControllerExpandVolume, then the
// volume's object, then the claim's status. A driver that expands on the node alone gets that from the kubelet.
//
// The size that the driver is asked for is in the claim's status before the call (plan.h), so a killed resizer repeats
// the same call.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "csi/controller/common/controller.h"
#include "csi/controller/resizer/plan.h"

namespace keelson::csi::controller {

class Resizer : public Controller {
 public:
  explicit Resizer(const Environment& environment);
  // Key: a claim.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  struct Expanded {
    api::Amount size;
    bool node = false;  // the node has to act too
    // The driver's controller does not expand: only the node will give that size, and it may be less than the volume shows.
    bool node_only = false;
  };
  using Change = std::function<void(corev1::PersistentVolumeClaimStatus&)>;

  // As the API has it now; nullopt: it is gone, or another one has its name.
  Result<std::optional<Volume>> Live(const Volume& known, std::stop_token stop);
  bool Ours(const Claim& claim, const Volume& volume, const DriverInfo& info) const;
  Result<Expanded> Expand(const Volume& volume, const api::Amount& size, const DriverInfo& info,
                          std::stop_token stop);
  Result<> Record(const Claim& claim, const Volume& volume, const Expanded& expanded, std::stop_token stop);
  Result<Requeue> Fail(const Claim& claim, const Volume& volume, const Error& error, std::stop_token stop);
  // A pod that has not ended uses the claim.
  Result<bool> InUse(const Claim& claim, std::stop_token stop);
  Result<> ChangeStatus(const Claim& claim, const Change& change, std::stop_token stop);
  Result<> DropOldCapacity(const Volume& volume, std::stop_token stop);

  client::Informer<Claim>& claims_;
  client::Informer<Volume>& volumes_;

  Mutex mutex_;
  // By claim: the last attempt has failed for good; the driver does not expand volumes in use; when to try the same
  // size again.
  std::set<std::string> failed_ KEELSON_GUARDED_BY(mutex_), offline_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, SteadyTime> delays_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::csi::controller
