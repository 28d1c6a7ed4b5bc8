// Which CPUs are whose, on disk: cpu_manager_state, in upstream's form (its checksum is left out, which it
// accepts).
#pragma once

#include <map>
#include <string>

#include "kubelet/cm/topology/cpu_set.h"

namespace keelson::kubelet {

struct CpuAssignments {
  CpuSet shared;                                             // of all that have none of their own
  std::map<std::string, std::map<std::string, CpuSet>> own;  // pod UID -> container -> CPUs
  bool operator==(const CpuAssignments&) const = default;

  // What is wrong with it on a machine with these CPUs; empty: nothing.
  std::string Problem(const CpuSet& machine, const CpuSet& reserved, bool strict_reservation) const;
};

// An absent file is `nothing`. kInvalid: the file is of another policy, or is no such file.
Result<CpuAssignments> LoadCpuAssignments(const std::string& path, const std::string& policy,
                                          const CpuAssignments& nothing);
Result<> SaveCpuAssignments(const std::string& path, const std::string& policy, const CpuAssignments& state);

}  // namespace keelson::kubelet
