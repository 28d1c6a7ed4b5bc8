#include "kubelet/plugins/socket_tree.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <vector>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

Result<SocketTree> SocketTree::Create(std::string root, Events events) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(root, 0750));
  KEELSON_ASSIGN_OR_RETURN(event::Inotify inotify, event::Inotify::Create());
  return SocketTree(std::move(root), std::move(events), std::move(inotify));
}

SocketTree::SocketTree(std::string root, Events events, event::Inotify inotify)
    : root_(std::move(root)), events_(std::move(events)), inotify_(std::move(inotify)) {}

Result<> SocketTree::Start() {
  KEELSON_RETURN_IF_ERROR(MakeDirs(root_, 0750));
  Scan(root_);
  if (dirs_.empty()) return Error(Code::kInternal, "cannot watch " + root_);
  return {};
}

// The watch comes before the look: what appears in between is seen twice, and told once.
void SocketTree::Scan(const std::string& dir) {
  auto watch =
      inotify_.Add(dir, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
  if (!watch) {
    log::Error("Failed to watch a folder of plugins", {{"dir", dir}, {"err", watch.error()}});
    return;
  }
  dirs_[*watch] = dir;
  auto names = ListDir(dir);
  if (!names) return;
  for (const std::string& name : *names) Look(dir + "/" + name);
}

void SocketTree::Look(const std::string& path) {
  struct stat info {};
  if (path[path.rfind('/') + 1] == '.' || ::lstat(path.c_str(), &info) != 0) return;
  if (S_ISDIR(info.st_mode)) return Scan(path);
  if (!S_ISSOCK(info.st_mode)) return;
  auto [it, fresh] = sockets_.emplace(path, info.st_ino);
  if (!fresh && it->second == info.st_ino) return;
  it->second = info.st_ino;
  events_.appeared(path);
}

// A socket, or a folder with all that is in it.
void SocketTree::Forget(const std::string& path) {
  auto within = [&](const std::string& other) { return other == path || other.starts_with(path + "/"); };
  for (auto it = sockets_.begin(); it != sockets_.end();) {
    if (!within(it->first)) {
      ++it;
      continue;
    }
    events_.disappeared(it->first);
    it = sockets_.erase(it);
  }
  // A folder that was moved away is watched still.
  for (const auto& [watch, dir] : std::map<int, std::string>(dirs_)) {
    if (within(dir)) {
      inotify_.Remove(watch);
      dirs_.erase(watch);
    }
  }
}

void SocketTree::Handle(const event::FileEvent& event) {
  auto dir = dirs_.find(event.watch);
  if (dir == dirs_.end()) return;
  if (event.mask & IN_IGNORED) {
    dirs_.erase(dir);
    return;
  }
  std::string path = dir->second + "/" + event.name;
  if (event.mask & (IN_CREATE | IN_MOVED_TO)) Look(path);
  if (event.mask & (IN_DELETE | IN_MOVED_FROM)) Forget(path);
}

Result<> SocketTree::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<event::FileEvent> events, inotify_.Wait(stop, timeout));
  for (const event::FileEvent& event : events) {
    // Events were lost: sockets may have been replaced as well.
    if (event.watch < 0) Forget(root_);
    Handle(event);
  }
  // Also when the folder itself was removed.
  return dirs_.empty() ? Start() : Result<>();
}

}  // namespace keelson::kubelet
