// For tests: a device plugin without a process, and pods and devices.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/cm/devices/plugin.h"
#include "lib/api/types.h"

namespace keelson::kubelet::devices {

// A plugin in this process, without a socket. Grants DEVICES=<ids>.
class FakePlugin : public DevicePlugin {
 public:
  // What the test sets and reads; outlives the plugin.
  struct Script {
    PluginOptions options;
    DeviceMap devices;  // listed at once; none: not listed
    Ids preferred;
    std::optional<Error> fail_options, fail_allocate, fail_pre_start;
    // Called once, during the next such call.
    std::function<void()> on_preferred, on_allocate;

    struct Preference {
      Ids available, must_include;
      size_t size = 0;
      bool operator==(const Preference&) const = default;
    };
    std::vector<Preference> preferences;
    std::vector<Ids> allocations, pre_starts;
    FakePlugin* latest = nullptr;
  };

  FakePlugin(std::string socket, Script& script) : socket_(std::move(socket)), script_(script) {
    script_.latest = this;
  }
  const std::string& socket() const override { return socket_; }
  Result<PluginOptions> Options(std::stop_token) override {
    if (script_.fail_options) return *script_.fail_options;
    return script_.options;
  }
  void Watch(Events events) override {
    events_ = std::move(events);
    if (!script_.devices.empty()) events_.listed(script_.devices);
  }
  Result<Ids> PreferredAllocation(const Ids& available, const Ids& must_include, size_t size,
                                  std::stop_token) override {
    script_.preferences.push_back({available, must_include, size});
    if (auto call = std::exchange(script_.on_preferred, nullptr)) call();
    return script_.preferred;
  }
  Result<Grant> Allocate(const Ids& ids, std::stop_token) override {
    script_.allocations.push_back(ids);
    if (auto call = std::exchange(script_.on_allocate, nullptr)) call();
    if (script_.fail_allocate) return *script_.fail_allocate;
    Grant grant;
    for (const std::string& id : ids) {
      std::string& list = grant.envs["DEVICES"];
      list += (list.empty() ? "" : ",") + id;
      grant.devices.push_back({"/dev/" + id, "/dev/host-" + id, "rw"});
    }
    return grant;
  }
  Result<> PreStart(const Ids& ids, std::stop_token) override {
    script_.pre_starts.push_back(ids);
    if (script_.fail_pre_start) return *script_.fail_pre_start;
    return {};
  }

  void List(DeviceMap devices) { events_.listed(std::move(devices)); }
  void Leave() { events_.gone(Error(Code::kUnavailable, "EOF")); }

 private:
  const std::string socket_;
  Script& script_;
  Events events_;
};

// A pod whose containers each want `amounts` of "example.com/dev"; names "sidecar..." and "init..." go to the
// init containers.
corev1::Pod DevicePod(const std::string& uid, const std::vector<std::pair<std::string, int>>& amounts);
const corev1::Container& ContainerOf(const corev1::Pod& pod, const std::string& name);
// "a", "b:1", "c:0,1", "!d" (not healthy), "e:" (says that it is near to none).
DeviceMap Devices(const std::vector<std::string>& list);

}  // namespace keelson::kubelet::devices
