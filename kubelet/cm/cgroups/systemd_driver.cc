#include <algorithm>
#include <limits>

#include "kubelet/cm/cgroups/cgroup_driver.h"

namespace keelson::kubelet {

namespace {

constexpr std::string_view kSuffix = ".slice";
constexpr uint64_t kInfinity = std::numeric_limits<uint64_t>::max();

// A dash parts the levels of slices, so that one inside a part has to become something else.
std::string Escape(std::string part) {
  std::replace(part.begin(), part.end(), '-', '_');
  return part;
}

std::string Unescape(std::string part) {
  std::replace(part.begin(), part.end(), '_', '-');
  return part;
}

// kubepods-burstable-pod1.slice
std::string UnitName(const CgroupName& name) {
  std::string out;
  for (const std::string& part : name) out += (out.empty() ? "" : "-") + Escape(part);
  return out + std::string(kSuffix);
}

// Micros of CPU time a second. systemd keeps it in steps of a hundredth: upwards, so as not to take any away.
uint64_t QuotaPerSecond(int64_t quota_us, uint64_t period_us) {
  constexpr uint64_t kStep = 10'000;
  if (quota_us < 0 || period_us == 0) return kInfinity;
  uint64_t micros = static_cast<uint64_t>(quota_us) * 1'000'000 / period_us;
  return (micros + kStep - 1) / kStep * kStep;
}

uint64_t OrInfinity(int64_t value) { return value < 0 ? kInfinity : static_cast<uint64_t>(value); }

linux::UnitProperties PropertiesOf(const std::string& unit, const linux::CgroupLimits& limits, bool v2) {
  linux::UnitProperties out = {{"Description", "pods of the kubelet: " + unit},
                               {"DefaultDependencies", false},
                               {"CPUAccounting", true},
                               {"MemoryAccounting", true},
                               {"TasksAccounting", true},
                               {v2 ? "IOAccounting" : "BlockIOAccounting", true}};
  if (limits.cpu_shares) {
    if (v2) {
      out.emplace_back("CPUWeight", linux::Cgroups::WeightOfShares(*limits.cpu_shares));
    } else {
      out.emplace_back("CPUShares", *limits.cpu_shares);
    }
  }
  if (limits.cpu_quota_us) {
    out.emplace_back("CPUQuotaPerSecUSec", QuotaPerSecond(*limits.cpu_quota_us, limits.cpu_period_us));
    out.emplace_back("CPUQuotaPeriodUSec", limits.cpu_period_us);
  }
  if (limits.memory_limit_bytes) {
    out.emplace_back(v2 ? "MemoryMax" : "MemoryLimit", OrInfinity(*limits.memory_limit_bytes));
  }
  if (v2 && limits.memory_min_bytes) out.emplace_back("MemoryMin", OrInfinity(*limits.memory_min_bytes));
  if (v2 && limits.memory_low_bytes) out.emplace_back("MemoryLow", OrInfinity(*limits.memory_low_bytes));
  if (limits.pids_max) out.emplace_back("TasksMax", OrInfinity(*limits.pids_max));
  return out;
}

class SystemdDriver : public CgroupDriver {
 public:
  SystemdDriver(const linux::Cgroups& cgroups, std::unique_ptr<linux::SystemdUnits> units)
      : cgroups_(cgroups), units_(std::move(units)) {}

  std::string Path(const CgroupName& name) const override {
    std::string out;
    for (auto end = name.begin(); end != name.end();) out += "/" + UnitName(CgroupName(name.begin(), ++end));
    return out;
  }

  std::optional<std::string> LastPart(const CgroupName& parent, const std::string& directory) const override {
    std::string prefix = parent.empty() ? "" : UnitName(parent);
    if (!prefix.empty()) prefix.replace(prefix.size() - kSuffix.size(), kSuffix.size(), "-");
    if (directory.size() <= prefix.size() + kSuffix.size() ||
        directory.compare(0, prefix.size(), prefix) != 0 ||
        directory.compare(directory.size() - kSuffix.size(), kSuffix.size(), kSuffix) != 0) {
      return std::nullopt;
    }
    return Unescape(directory.substr(prefix.size(), directory.size() - prefix.size() - kSuffix.size()));
  }

  Result<> Create(const CgroupName& name, const linux::CgroupLimits& limits) override {
    const std::string unit = UnitName(name);
    KEELSON_RETURN_IF_ERROR(units_->Start(unit, PropertiesOf(unit, limits, cgroups_.unified())));
    // On v1 systemd makes no cgroups for controllers that it does not use.
    return cgroups_.Create(Path(name), limits);
  }

  Result<> Remove(const CgroupName& name) override {
    if (!cgroups_.Processes(Path(name)).empty()) {
      return Error(Code::kUnavailable, "remove cgroup " + Path(name) + ": processes are inside");
    }
    if (cgroups_.Exists(Path(name))) KEELSON_RETURN_IF_ERROR(units_->Stop(UnitName(name)));
    return cgroups_.Remove(Path(name));
  }

 private:
  const linux::Cgroups cgroups_;
  const std::unique_ptr<linux::SystemdUnits> units_;
};

}  // namespace

std::unique_ptr<CgroupDriver> NewSystemdDriver(const linux::Cgroups& cgroups,
                                               std::unique_ptr<linux::SystemdUnits> units) {
  return std::make_unique<SystemdDriver>(cgroups, std::move(units));
}

}  // namespace keelson::kubelet
