#include "kubelet/cm/cgroups/cgroup_driver.h"

namespace keelson::kubelet {

namespace {

class CgroupfsDriver : public CgroupDriver {
 public:
  explicit CgroupfsDriver(const linux::Cgroups& cgroups) : cgroups_(cgroups) {}

  std::string Path(const CgroupName& name) const override {
    std::string out;
    for (const std::string& part : name) out += "/" + part;
    return out;
  }
  std::optional<std::string> LastPart(const CgroupName&, const std::string& directory) const override {
    return directory;
  }
  Result<> Create(const CgroupName& name, const linux::CgroupLimits& limits) override {
    return cgroups_.Create(Path(name), limits);
  }
  Result<> Remove(const CgroupName& name) override { return cgroups_.Remove(Path(name)); }

 private:
  const linux::Cgroups cgroups_;
};

}  // namespace

std::unique_ptr<CgroupDriver> NewCgroupfsDriver(const linux::Cgroups& cgroups) {
  return std::make_unique<CgroupfsDriver>(cgroups);
}

}  // namespace keelson::kubelet
