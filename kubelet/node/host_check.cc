#include "kubelet/node/host_check.h"

#include <sys/resource.h>

#include <algorithm>
#include <sstream>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/k8s/feature_gates.h"
#include "lib/k8s/field_error.h"
#include "lib/linux/sysctl.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

struct Tunable {
  const char *key, *value;
};

constexpr Tunable kTunables[] = {
    {"kernel/keys/root_maxbytes", "25000000"},
    {"kernel/keys/root_maxkeys", "1000000"},
    {"kernel/panic", "10"},
    {"kernel/panic_on_oops", "1"},
    {"vm/overcommit_memory", "1"},
    {"vm/panic_on_oom", "0"},
};

Result<> TuneOne(const Tunable& tunable, bool protect, const Sysctls& sysctls) {
  KEELSON_ASSIGN_OR_RETURN(const std::string actual, sysctls.read(tunable.key));
  if (actual == tunable.value) return {};
  if (protect) {
    return Error(Code::kInvalid, std::string("invalid kernel flag: ") + tunable.key +
                                     ", expected value: " + tunable.value + ", actual value: " + actual);
  }
  log::Info("Updating kernel flag",
            {{"flag", tunable.key}, {"expectedValue", tunable.value}, {"actualValue", actual}});
  return sysctls.write(tunable.key, tunable.value);
}

// memory.high could hang a kernel before this one (KEP-2570).
bool ThrottlesSafely() {
  const std::string release = linux::ReadSysctl("kernel/osrelease").value_or("");
  int major = 0, minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) != 2) return true;
  return major > 5 || (major == 5 && minor >= 9);
}

}  // namespace

Result<> TuneKernel(bool protect, const Sysctls& sysctls) {
  std::vector<std::string> problems;
  for (const Tunable& tunable : kTunables) {
    if (auto done = TuneOne(tunable, protect, sysctls); !done) problems.push_back(done.error().message());
  }
  if (problems.empty()) return {};
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : ", ") + problem;
  if (problems.size() > 1) all = "[" + all + "]";
  return Error(Code::kInvalid, "Failed to start ContainerManager: " + all);
}

Result<> SetOpenFiles(int64_t most) {
  const rlimit limit{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return ErrnoError("setrlimit RLIMIT_NOFILE");
  return {};
}

Result<> CheckCgroups(const KubeletConfig& config, const linux::Cgroups& cgroups) {
  if (config.fail_cgroup_v1 && !cgroups.unified()) {
    return Error(Code::kInvalid, std::string("kubelet is configured to not run on a host using cgroup v1. ") +
                                     kCgroupV1Warning);
  }
  if (!config.cgroups_per_qos) return {};
  std::string path, name, missing;
  std::istringstream in(config.cgroup_root);
  for (std::string part; std::getline(in, part, '/');) {
    if (part.empty()) continue;
    path += "/" + part;
    name += (name.empty() ? "" : " ") + k8s::Quote(part);
  }
  for (const std::string& one : cgroups.Missing(path)) missing += (missing.empty() ? "" : ", ") + one;
  if (missing.empty()) return {};
  return Error(Code::kInvalid,
               "invalid configuration: cgroup [" + name + "] has some missing paths: " + missing);
}

Result<> PrepareHost(const KubeletConfig& config, const linux::Cgroups& cgroups) {
  KEELSON_RETURN_IF_ERROR(CheckCgroups(config, cgroups));
  metrics::Gauge("kubelet_cgroup_version", "cgroup version on the hosts.")
      .With()
      .Set(cgroups.unified() ? 2 : 1);
  if (!cgroups.unified()) {
    log::Warn(std::string("cgroup v1 detected. ") + kCgroupV1Warning + ". Please migrate to cgroup v2.");
  }
  auto swaps = ReadFile("/proc/swaps");
  if (config.fail_swap_on && swaps && std::count(swaps->begin(), swaps->end(), '\n') > 1) {
    return Error(Code::kInvalid,
                 "running with swap on is not supported, please disable swap or set --fail-swap-on flag to "
                 "false. /proc/swaps contained: " +
                     *swaps);
  }
  KEELSON_RETURN_IF_ERROR(
      TuneKernel(config.protect_kernel_defaults, {linux::ReadSysctl, linux::WriteSysctl}));
  if (auto set = SetOpenFiles(config.max_open_files); !set) {
    log::Error("Failed to set rlimit on max file handles", {{"err", set.error()}});
  }
  if (auto set = WriteFile("/proc/self/oom_score_adj", std::to_string(config.oom_score_adj)); !set) {
    log::Warn("Cannot protect the kubelet from the OOM killer", {{"err", set.error()}});
  }
  if (cgroups.unified() && k8s::FeatureEnabled(config.feature_gates, "MemoryQoS") && !ThrottlesSafely()) {
    log::Warn("memory.high, which MemoryQoS sets, can hang kernels older than 5.9", {});
  }
  return {};
}

}  // namespace keelson::kubelet
