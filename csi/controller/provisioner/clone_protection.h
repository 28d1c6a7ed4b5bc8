// Keeps claims that are cloned (finalizer provisioner.storage.kubernetes.io/cloning-protection) until no pending claim
// of their namespace is a clone of them.
#pragma once

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

class CloneProtection : public Controller {
 public:
  explicit CloneProtection(const Environment& environment);
  // Key: a claim with the finalizer. The provisioner sets it.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::Informer<Claim>& claims_;
};

}  // namespace keelson::csi::controller
