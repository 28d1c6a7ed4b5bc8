// Gives volumes of one driver the attributes of another VolumeAttributesClass (ControllerModifyVolume) when their claim
// names one, as external-resizer does.
//
// status.modifyVolumeStatus names the class before the driver is called. While it is not known how a call has ended, the
// same class is asked for again, and only then another one; after a restart that holds for what is InProgress.
#pragma once

#include <map>
#include <set>

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

class Modifier : public Controller {
 public:
  explicit Modifier(const Environment& environment);
  // Key: a claim.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using Change = std::function<void(corev1::PersistentVolumeClaimStatus&)>;
  using AttributesClass = storagev1::VolumeAttributesClass;

  bool Wants(const Claim& claim) const;
  // The class that the driver is to be asked for; empty: none.
  std::string NextTarget(const Claim& claim);
  // nullopt: it does not exist, which the claim's status then says.
  Result<std::optional<AttributesClass>> FindClass(const Claim& claim, const std::string& name,
                                                   std::stop_token stop);
  Result<> Finish(const Claim& claim, const Volume& volume, const std::string& name, std::stop_token stop);
  Result<Requeue> Fail(const Claim& claim, const std::string& name, const Error& error, std::stop_token stop);
  Result<> ChangeStatus(const Claim& claim, const Change& change, std::stop_token stop);

  client::Informer<Claim>& claims_;
  client::Informer<Volume>& volumes_;

  Mutex mutex_;
  std::set<std::string> settled_ KEELSON_GUARDED_BY(mutex_);  // claims whose last call has failed for good
  struct Delay {
    std::string name;  // of the class
    SteadyTime until;
  };
  std::map<std::string, Delay> delays_ KEELSON_GUARDED_BY(mutex_);  // of calls that were infeasible, by claim
};

}  // namespace keelson::csi::controller
