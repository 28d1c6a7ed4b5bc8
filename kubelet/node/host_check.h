// Checks and prepares the machine before pods run on it.
#pragma once

#include <functional>

#include "kubelet/config/config.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

// The message of the CgroupV1 event.
inline constexpr char kCgroupV1Warning[] =
    "cgroup v1 support is unsupported and will be removed in a future release";

// Sets kernel parameters, the kubelet's oom_score_adj and its limit of open files. kInvalid, with upstream's message:
// the kubelet must not run on this machine.
Result<> PrepareHost(const KubeletConfig& config, const linux::Cgroups& cgroups);

// Part of PrepareHost: kInvalid if these cgroups cannot be used, or cgroupRoot does not exist.
Result<> CheckCgroups(const KubeletConfig& config, const linux::Cgroups& cgroups);

// Sets how many files this process may have open (maxOpenFiles).
Result<> SetOpenFiles(int64_t most);

struct Sysctls {
  std::function<Result<std::string>(std::string_view key)> read;
  std::function<Result<>(std::string_view key, std::string_view value)> write;
};
// Sets the kernel parameters that upstream's kubelet sets; with `protect` (protectKernelDefaults) one that differs is
// an error.
Result<> TuneKernel(bool protect, const Sysctls& sysctls);

}  // namespace keelson::kubelet
