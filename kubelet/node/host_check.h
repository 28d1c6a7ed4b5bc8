// What the machine has to be like before pods run on it.
#pragma once

#include <functional>

#include "kubelet/config/config.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

// What is told where cgroup v1 is used.
inline constexpr char kCgroupV1Warning[] =
    "cgroup v1 support is unsupported and will be removed in a future release";

// kInvalid when it is not, in upstream's words. Sets what the kubelet may set: kernel parameters, and its own
// place among those that the kernel kills when memory runs out.
Result<> PrepareHost(const KubeletConfig& config, const linux::Cgroups& cgroups);

// Of PrepareHost: whether these cgroups may be used, and cgroupRoot is one of them.
Result<> CheckCgroups(const KubeletConfig& config, const linux::Cgroups& cgroups);

// How many files this process may have open.
Result<> SetOpenFiles(int64_t most);

struct Sysctls {
  std::function<Result<std::string>(std::string_view key)> read;
  std::function<Result<>(std::string_view key, std::string_view value)> write;
};
// Kernel parameters that upstream's kubelet counts on. With `protect` those that differ are mistakes, else
// they are set.
Result<> TuneKernel(bool protect, const Sysctls& sysctls);

}  // namespace keelson::kubelet
