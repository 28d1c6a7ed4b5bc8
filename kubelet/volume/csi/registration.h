// Registers CSI drivers that the plugin watcher finds (plugin registration v1, type CSIPlugin), and keeps the number of
// volumes that they take up to date (CSIDriver.spec.nodeAllocatableUpdatePeriodSeconds, KEP-4876).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/plugins/handler.h"
#include "kubelet/volume/csi/drivers.h"
#include "kubelet/volume/csi/node_info_manager.h"
#include "lib/base/clock.h"

namespace keelson::kubelet::csi {

class Registration : public PluginHandler {  // thread safe
 public:
  struct Dependencies {
    Drivers& drivers;
    NodeInfoManager& node_info;
    // The CSIDriver object's period; nullopt: no updates.
    std::function<std::optional<std::chrono::seconds>(const std::string& driver)> update_period;
    std::function<std::shared_ptr<NodeClient>(const std::string& driver, const std::string& socket)> dial =
        NewNodeClient;
  };
  explicit Registration(Dependencies dependencies, Clock& clock = Clock::Real())
      : deps_(std::move(dependencies)), clock_(clock) {}

  // PluginHandler. Validate refuses a driver whose name another one has with the same or a higher version.
  Result<> Validate(const std::string& name, const std::string& endpoint,
                    const std::vector<std::string>& versions) override;
  // An error leaves no trace of the driver.
  Result<> Register(const std::string& name, const std::string& endpoint,
                    const std::vector<std::string>& versions, std::stop_token stop) override;
  void Deregister(const std::string& name, const std::string& endpoint) override;

  // A driver or a period may have changed. Does not block.
  void Look();
  // The node takes fewer volumes of the driver than it said: updates the CSINode soon. Does not block.
  void UpdateSoon(const std::string& name);
  // Updates the CSINode, once each period of a driver, until `stop`.
  void RunUpdates(std::stop_token stop);

 private:
  struct Due {
    std::chrono::seconds period;
    SteadyTime next;
  };
  Result<Version> CheckVersions(const char* caller, const std::string& name, const std::string& endpoint,
                                const std::vector<std::string>& versions) const;
  Result<> Record(const std::string& name, NodeClient& client, std::stop_token stop);
  void Undo(const std::string& name, const std::string& endpoint);
  void Update(const std::string& name, std::stop_token stop);

  const Dependencies deps_;
  Clock& clock_;
  Mutex mutex_;
  CondVar wake_;
  bool looked_ KEELSON_GUARDED_BY(mutex_) = false;
  std::set<std::string> asked_ KEELSON_GUARDED_BY(mutex_);  // drivers whose entry is to be updated soon
};

}  // namespace keelson::kubelet::csi
