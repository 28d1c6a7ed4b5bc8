// The CPU manager's checkpoint, cpu_manager_state, in upstream's format without its checksum, which upstream
// accepts.
#pragma once

#include <map>
#include <string>

#include "kubelet/cm/topology/cpu_set.h"

namespace keelson::kubelet {

struct CpuAssignments {
  CpuSet shared;                                             // of containers without exclusive CPUs
  std::map<std::string, std::map<std::string, CpuSet>> own;  // pod UID -> container -> CPUs
  bool operator==(const CpuAssignments&) const = default;

  // Why the checkpoint does not fit a machine with these CPUs; empty: it fits.
  std::string Problem(const CpuSet& machine, const CpuSet& reserved, bool strict_reservation) const;
};

// Returns `nothing` if there is no file. kInvalid: the file belongs to another policy, or is malformed.
Result<CpuAssignments> LoadCpuAssignments(const std::string& path, const std::string& policy,
                                          const CpuAssignments& nothing);
// Replaces the file.
Result<> SaveCpuAssignments(const std::string& path, const std::string& policy, const CpuAssignments& state);

}  // namespace keelson::kubelet
