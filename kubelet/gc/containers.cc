#include "kubelet/gc/containers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "kubelet/container/labels.h"
#include "lib/base/file.h"
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
    // By their numbers: the clock that times come from may have been set back in between.
    std::sort(group.begin(), group.end(), [](const cri::Container* a, const cri::Container* b) {
      return std::make_tuple(a->attempt, a->created_at) > std::make_tuple(b->attempt, b->created_at);
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

Result<> RemoveRun(cri::RuntimeService& runtime, const Paths& paths, const cri::ContainerStatus& run,
                   std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(runtime.RemoveContainer(run.id, stop));
  if (const size_t slash = run.log_path.rfind('/'); slash != std::string::npos) {
    const std::string directory = run.log_path.substr(0, slash), log = run.log_path.substr(slash + 1);
    if (auto names = ListDir(directory)) {
      for (const std::string& name : *names) {
        if (name == log || name.compare(0, log.size() + 1, log + ".") == 0) {
          (void)RemoveFile(directory + "/" + name);
        }
      }
    }
  }
  auto uid = run.labels.find(kPodUidLabel), name = run.labels.find(kContainerNameLabel);
  if (uid == run.labels.end() || name == run.labels.end()) return {};
  // Ours only: a volume may be mounted at the message's place.
  const std::string own = paths.Container(uid->second, name->second) + "/";
  for (const cri::Mount& mount : run.mounts) {
    if (mount.host_path.compare(0, own.size(), own) == 0) (void)RemoveFile(mount.host_path);
  }
  return {};
}

Result<> CollectContainers(cri::RuntimeService& runtime, const Paths& paths,
                           const ContainerGcOptions& options, WallTime now, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::Container> containers, runtime.ListContainers({}, stop));
  for (const std::string& id : PlanContainerGc(containers, options, now)) {
    if (stop.stop_requested()) break;
    auto run = runtime.GetContainerStatus(id, stop);
    if (!run && run.error().Is(Code::kNotFound)) continue;
    if (auto removed = run ? RemoveRun(runtime, paths, *run, stop) : Result<>(run.error()); !removed) {
      log::Debug("Cannot remove a dead container", {{"containerID", id}, {"err", removed.error()}});
    }
  }
  return {};
}

}  // namespace keelson::kubelet
