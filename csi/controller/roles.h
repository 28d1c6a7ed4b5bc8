// The controllers of one driver, by the Lease that they work under.
#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "csi/controller/common/controller.h"
#include "csi/controller/config.h"
#include "lib/client/custom/custom_informers.h"

namespace keelson::csi::controller {

struct Role {
  std::string name;
  std::vector<std::unique_ptr<Reconciler>> controllers;  // at least one
};

// `snapshots`: for the objects of snapshot.storage.k8s.io, which may never be there: only the snapshotter uses it, which
// comes last.
std::vector<Role> MakeRoles(const std::set<std::string>& chosen, const Config& config,
                            const Environment& environment, client::CustomInformers& snapshots);
Result<> RunRole(const Role& role, std::stop_token stop);

}  // namespace keelson::csi::controller
