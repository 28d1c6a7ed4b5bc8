#include <sys/inotify.h>
#include <sys/stat.h>

#include "kubelet/staticpod/parse.h"
#include "kubelet/staticpod/sources.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/base/wall_time.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet {

namespace {

constexpr uint32_t kChanges = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

// The files to read, or nothing where the path is not there.
std::vector<std::string> FilesOf(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode)) return {path};
  std::vector<std::string> files;
  auto names = ListDir(path);
  if (!names) return {};
  for (const std::string& name : *names) {
    const std::string file = path + "/" + name;
    if (name[0] == '.' || ::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files.push_back(file);
  }
  return files;
}

// When a file's contents, name or attributes were changed last; whoever moves an old file here cannot hide
// it.
WallTime ChangeOf(const std::string& file) {
  struct stat info = {};
  if (::stat(file.c_str(), &info) != 0) return WallTime::max();
  return WallTimeOf(info.st_ctim.tv_sec, static_cast<int32_t>(info.st_ctim.tv_nsec));
}

// The directory to watch: of a single file the one it is in, since editors replace files.
std::string WatchedDirectory(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return path;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::vector<corev1::Pod> ReadStaticPodFiles(const FileSourceOptions& options,
                                            std::map<std::string, std::string>& told) {
  std::vector<corev1::Pod> pods;
  std::map<std::string, std::string> problems;
  for (const std::string& file : FilesOf(options.path)) {
    const WallTime changed = ChangeOf(file);
    auto text = ReadFile(file);
    if (!text && text.error().Is(Code::kNotFound)) continue;  // it has just gone
    auto parsed = text ? ParseStaticPods(*text, {"file", file, options.node_name, &options.running, changed})
                       : Result<std::vector<corev1::Pod>>(text.error());
    if (parsed) {
      for (corev1::Pod& pod : *parsed) pods.push_back(std::move(pod));
      continue;
    }
    const std::string& message = problems[file] = parsed.error().message();
    if (auto it = told.find(file); it == told.end() || it->second != message) {
      log::Error("Could not process manifest file", {{"path", file}, {"err", message}});
    }
  }
  told = std::move(problems);
  return pods;
}

void RunFileSource(const FileSourceOptions& options, const StaticPodsFunction& tell, std::stop_token stop) {
  std::map<std::string, std::string> told;
  auto inotify = event::Inotify::Create();
  if (!inotify) log::Warn("Manifests are looked at now and then only", {{"err", inotify.error()}});
  std::string watched;
  int watch = -1;
  while (!stop.stop_requested()) {
    // The watch comes before the look: what changes in between is seen again.
    if (const std::string directory = WatchedDirectory(options.path); inotify && directory != watched) {
      if (watch >= 0) inotify->Remove(watch);
      auto added = inotify->Add(directory, kChanges);
      watched = added ? directory : "";
      watch = added ? *added : -1;
    }
    tell(ReadStaticPodFiles(options, told));
    if (!inotify) {
      Pause(Clock::Real(), options.period, stop);
      continue;
    }
    auto events = inotify->Wait(stop, options.period);
    if (!events) continue;  // time for a look without a reason
    for (const event::FileEvent& event : *events) {
      if (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) watched.clear();
    }
  }
}

}  // namespace keelson::kubelet
