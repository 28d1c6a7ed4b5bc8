#include "csi/controller/health/node_watcher.h"

#include <fmt/format.h>

namespace keelson::csi::controller {
namespace {

bool IsReadyNode(const corev1::Node& node) {
  for (const auto& condition : node.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return true;  // it has not started yet
}

}  // namespace

NodeWatcher::NodeWatcher(const Environment& environment, NodeWatcherOptions options)
    : Controller("failed-nodes", environment),
      options_(options),
      nodes_(environment.informers.Get<corev1::Node>()),
      volumes_(environment.informers.Get<Volume>()) {
  nodes_.AddHandler([this](const client::Change<corev1::Node>& change) {
    // Heartbeats are no news.
    const bool was = change.old_object && IsReadyNode(*change.old_object);
    const bool is = change.new_object && IsReadyNode(*change.new_object);
    if (!change.old_object || was != is) queue().Add(change.key);
  });
}

Result<Requeue> NodeWatcher::Reconcile(const std::string& key, std::stop_token stop) {
  const auto node = nodes_.Get(key);
  const SteadyTime now = environment().clock.SteadyNow();
  bool was_told = false;
  {
    MutexLock lock(mutex_);
    was_told = told_.count(key) > 0;
    if (node && IsReadyNode(*node)) {
      not_ready_.erase(key);
      if (!was_told) return Requeue{};
    } else if (was_told) {
      return Requeue{};
    } else if (node) {
      const SteadyTime since = not_ready_.try_emplace(key, now).first->second;
      if (now - since < options_.patience) {
        return Requeue{std::min(options_.poll, options_.patience - (now - since))};
      }
    }
  }
  // A node that was deleted has failed too.
  KEELSON_RETURN_IF_ERROR(TellClaims(key, !was_told, stop));
  MutexLock lock(mutex_);
  not_ready_.erase(key);
  if (was_told || !node) {
    told_.erase(key);
  } else {
    told_.insert(key);
  }
  return Requeue{};
}

Result<> NodeWatcher::TellClaims(const std::string& node, bool failed, std::stop_token stop) {
  client::ListOptions on_node;
  on_node.field_selector = "spec.nodeName=" + node;
  KEELSON_ASSIGN_OR_RETURN(const auto pods, Api(stop).List<corev1::Pod>("", on_node));
  std::map<std::string, std::string> users;  // pods by claim
  for (const corev1::Pod& pod : pods) {
    for (const auto& volume : pod.spec().volumes()) {
      std::string claim = volume.volume_source().persistent_volume_claim().claim_name();
      if (volume.volume_source().has_ephemeral()) claim = pod.metadata().name() + "-" + volume.name();
      if (!claim.empty()) users[pod.metadata().namespace_() + "/" + claim] += pod.metadata().name() + " ";
    }
  }
  if (users.empty()) return {};
  for (const auto& volume : volumes_.List()) {
    if (volume->spec().persistent_volume_source().csi().driver() != driver().name() ||
        volume->status().phase() != "Bound") {
      continue;
    }
    corev1::ObjectReference claim = volume->spec().claim_ref();
    const auto found = users.find(claim.namespace_() + "/" + claim.name());
    if (found == users.end()) continue;
    claim.set_kind("PersistentVolumeClaim");
    claim.set_api_version("v1");
    claim.clear_resource_version();
    if (failed) {
      environment().events.Record(
          claim, "Warning", "NodeFailed",
          fmt::format("Pods: [ {}] consuming PVC: {} in namespace: {} are now on a failed node: {}",
                      found->second, claim.name(), claim.namespace_(), node));
    } else {
      environment().events.Record(claim, "Warning", "NodeRecovered", "Node: " + node + " recovered");
    }
  }
  return {};
}

}  // namespace keelson::csi::controller
