#include "kubelet/volume/csi/node_info_manager.h"

namespace keelson::kubelet::csi {

namespace {
// Another writer of the object may come between reading and writing it.
constexpr int kTries = 5;
}  // namespace

Result<> NodeInfoManager::ChangeCsiNode(const client::RestClient& api, const Change& change) {
  for (int attempt = 1;; ++attempt) {
    auto object = api.Get<CsiNode>("", node_);
    Result<CsiNode> stored = CsiNode();
    if (object) {
      if (!change(*object)) return {};
      stored = api.Update(*object);
    } else if (object.error().Is(Code::kNotFound)) {
      KEELSON_ASSIGN_OR_RETURN(const corev1::Node node, api.Get<corev1::Node>("", node_));
      CsiNode fresh = NewCsiNode(node);
      change(fresh);
      stored = api.Create(fresh);
    } else {
      return object.error();
    }
    if (stored) return {};
    const bool again = stored.error().Is(Code::kConflict) || stored.error().Is(Code::kAlreadyExists);
    if (!again || attempt == kTries) return stored.error();
  }
}

Result<> NodeInfoManager::PatchNode(const client::RestClient& api, const Plan& plan) {
  KEELSON_ASSIGN_OR_RETURN(const corev1::Node node, api.Get<corev1::Node>("", node_));
  KEELSON_ASSIGN_OR_RETURN(auto patch, plan(node));
  if (!patch) return {};
  auto patched = api.Patch<corev1::Node>("", node_, client::PatchType::kStrategicMerge, std::move(*patch));
  return patched ? Result<>() : patched.error();
}

Result<> NodeInfoManager::Initialize(std::stop_token stop) {
  const client::RestClient api = api_.With(std::move(stop));
  MutexLock lock(mutex_);
  auto done = ChangeCsiNode(api, SetMigratedPlugins);
  return done ? done : done.error().Wrap("error updating CSINode annotation");
}

Result<> NodeInfoManager::Install(const std::string& driver, const NodeInfo& info, std::stop_token stop) {
  if (info.node_id.empty()) {
    return Error(Code::kInvalid, "error adding CSI driver node info: driverNodeID must not be empty");
  }
  const client::RestClient api = api_.With(stop);
  {
    MutexLock lock(mutex_);
    auto patched = PatchNode(api, [&](const corev1::Node& node) { return InstallPatch(node, driver, info); });
    if (!patched) return patched.error().Wrap("error updating Node object with CSI driver node info");
  }
  return Update(driver, info, std::move(stop));
}

Result<> NodeInfoManager::Update(const std::string& driver, const NodeInfo& info, std::stop_token stop) {
  const client::RestClient api = api_.With(std::move(stop));
  MutexLock lock(mutex_);
  auto done = ChangeCsiNode(api, [&](CsiNode& object) { return InstallDriver(object, driver, info); });
  return done ? done : done.error().Wrap("error updating CSINode object with CSI driver node info");
}

Result<> NodeInfoManager::Uninstall(const std::string& driver, std::stop_token stop) {
  const client::RestClient api = api_.With(std::move(stop));
  MutexLock lock(mutex_);
  auto done = client::UpdateWithRetry<CsiNode>(
      api, "", node_, "", [&](CsiNode& object) -> Result<bool> { return UninstallDriver(object, driver); });
  if (!done && !done.error().Is(Code::kNotFound)) {
    return done.error().Wrap("error uninstalling CSI driver from CSINode object");
  }
  auto patched = PatchNode(api, [&](const corev1::Node& node) { return UninstallPatch(node, driver); });
  return patched ? patched : patched.error().Wrap("error removing CSI driver node info from Node object");
}

}  // namespace keelson::kubelet::csi
