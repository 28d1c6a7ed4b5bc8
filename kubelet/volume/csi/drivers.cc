#include "kubelet/volume/csi/drivers.h"

namespace keelson::kubelet::csi {

void Drivers::Set(const std::string& name, Driver driver) {
  MutexLock lock(mutex_);
  drivers_[name] = std::move(driver);
}

void Drivers::Remove(const std::string& name, const std::string& endpoint) {
  MutexLock lock(mutex_);
  auto it = drivers_.find(name);
  if (it != drivers_.end() && it->second.endpoint == endpoint) drivers_.erase(it);
}

Driver Drivers::Find(const std::string& name) const {
  MutexLock lock(mutex_);
  auto it = drivers_.find(name);
  return it == drivers_.end() ? Driver() : it->second;
}

Result<std::shared_ptr<NodeClient>> Drivers::Client(const std::string& name) const {
  std::shared_ptr<NodeClient> client = Find(name).client;
  if (client) return client;
  return Error(Code::kUnavailable,
               "driver name " + name + " not found in the list of registered CSI drivers");
}

std::vector<std::string> Drivers::Names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, driver] : drivers_) out.push_back(name);
  return out;
}

}  // namespace keelson::kubelet::csi
