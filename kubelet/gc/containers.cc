#include "kubelet/gc/containers.h"

#include <algorithm>
#include <map>

#include "kubelet/container/labels.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

using Group = std::vector<const cri::Container*>;  // newest first

// All but the `kept` newest.
void Trim(Group& group, size_t kept, Group& removed) {
  while (group.size() > kept) {
    removed.push_back(group.back());
    group.pop_back();
  }
}

}  // namespace

std::vector<std::string> PlanContainerGc(const std::vector<cri::Container>& containers,
                                         const ContainerGcOptions& options, WallTime now) {
  const int64_t newest =
      std::chrono::duration_cast<std::chrono::nanoseconds>((now - options.minimum_age).time_since_epoch())
          .count();
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const cri::Container& container : containers) {
    if (container.state == cri::ContainerState::kRunning || container.created_at > newest) continue;
    auto uid = container.labels.find(kPodUidLabel);
    if (uid == container.labels.end()) continue;  // not ours
    groups[{uid->second, container.name}].push_back(&container);
  }
  Group removed;
  size_t left = 0;
  for (auto& [key, group] : groups) {
    std::sort(group.begin(), group.end(), [](const cri::Container* a, const cri::Container* b) {
      return a->created_at != b->created_at ? a->created_at > b->created_at : a->attempt > b->attempt;
    });
    if (options.per_container >= 0) Trim(group, static_cast<size_t>(options.per_container), removed);
    left += group.size();
  }
  if (options.in_all >= 0 && left > static_cast<size_t>(options.in_all)) {
    const size_t most = static_cast<size_t>(options.in_all);
    // One of each stays for as long as there is room.
    Group rest;
    for (auto& [key, group] : groups) {
      Trim(group, std::max<size_t>(most / groups.size(), 1), removed);
      rest.insert(rest.end(), group.begin(), group.end());
    }
    std::sort(rest.begin(), rest.end(),
              [](const cri::Container* a, const cri::Container* b) { return a->created_at > b->created_at; });
    Trim(rest, most, removed);
  }
  std::sort(removed.begin(), removed.end(),
            [](const cri::Container* a, const cri::Container* b) { return a->created_at < b->created_at; });
  std::vector<std::string> ids;
  for (const cri::Container* container : removed) ids.push_back(container->id);
  return ids;
}

Result<> CollectContainers(cri::RuntimeService& runtime, const ContainerGcOptions& options, WallTime now,
                           std::stop_token stop) {
  ASSIGN_OR_RETURN(std::vector<cri::Container> containers, runtime.ListContainers({}, stop));
  for (const std::string& id : PlanContainerGc(containers, options, now)) {
    if (stop.stop_requested()) break;
    if (auto removed = runtime.RemoveContainer(id, stop); !removed)
      log::Debug("Cannot remove a dead container", {{"containerID", id}, {"error", removed.error()}});
  }
  return {};
}

}  // namespace keelson::kubelet
