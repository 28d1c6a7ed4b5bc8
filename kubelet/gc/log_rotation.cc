#include "kubelet/gc/log_rotation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <set>
#include <thread>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"

namespace keelson::kubelet {

namespace {

constexpr std::string_view kCompressed = ".gz", kTemporary = ".tmp";

std::string Stamp(WallTime now) {
  const time_t seconds = std::chrono::system_clock::to_time_t(now);
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, ::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &parts));
}

// Beside the original, under its final name only once it is whole.
Result<> Compress(const std::string& path) {
  const std::string temporary = path + std::string(kTemporary);
  // Pods may be able to write to this directory: no link of theirs leads to another file.
  KEELSON_ASSIGN_OR_RETURN(UniqueFd in, OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  KEELSON_ASSIGN_OR_RETURN(UniqueFd out, OpenFile(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0640));
  gzFile zipped = ::gzdopen(out.Release(), "wb");
  if (!zipped) return Error(Code::kInternal, "compress " + path);
  std::vector<char> buffer(256 << 10);
  bool written = true;
  ssize_t got = 0;
  while (written && (got = ::read(in.get(), buffer.data(), buffer.size())) > 0) {
    written = ::gzwrite(zipped, buffer.data(), static_cast<unsigned>(got)) == got;
  }
  written = ::gzclose(zipped) == Z_OK && written && got == 0;
  if (!written || ::rename(temporary.c_str(), (path + std::string(kCompressed)).c_str()) != 0) {
    Error failed = ErrnoError("compress " + path);
    (void)RemoveFile(temporary);
    return failed;
  }
  return RemoveFile(path);
}

}  // namespace

LogPlan PlanLogs(std::vector<std::string> names, int max_files) {
  LogPlan plan;
  std::set<std::string> all(names.begin(), names.end());
  std::vector<std::string> kept;
  for (const std::string& name : names) {
    // From a kubelet that was killed during compression.
    const bool unused = name.ends_with(kTemporary) ||
                        (!name.ends_with(kCompressed) && all.count(name + std::string(kCompressed)));
    (unused ? plan.remove : kept).push_back(name);
  }
  std::sort(kept.begin(), kept.end());  // times sort as text
  // Room for the log that is written and for the one that is about to be turned away.
  const size_t most = static_cast<size_t>(std::max(max_files - 2, 0));
  const size_t excess = kept.size() > most ? kept.size() - most : 0;
  plan.remove.insert(plan.remove.end(), kept.begin(), kept.begin() + static_cast<ptrdiff_t>(excess));
  for (size_t i = excess; i < kept.size(); ++i) {
    if (!kept[i].ends_with(kCompressed)) plan.compress.push_back(kept[i]);
  }
  return plan;
}

Result<> LogRotator::Rotate(const std::string& id, const std::string& log, std::stop_token stop) {
  const size_t slash = log.rfind('/');
  const std::string directory = log.substr(0, slash), prefix = log.substr(slash + 1) + ".";
  std::vector<std::string> parts;
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(directory));
  for (std::string& name : names) {
    if (name.compare(0, prefix.size(), prefix) == 0) parts.push_back(std::move(name));
  }
  const LogPlan plan = PlanLogs(std::move(parts), options_.max_files);
  for (const std::string& name : plan.remove) KEELSON_RETURN_IF_ERROR(RemoveFile(directory + "/" + name));
  for (const std::string& name : plan.compress) KEELSON_RETURN_IF_ERROR(Compress(directory + "/" + name));
  const std::string rotated = log + "." + Stamp(clock_.Now());
  if (::rename(log.c_str(), rotated.c_str()) != 0) return ErrnoError("rotate log " + log);
  auto reopened = runtime_.ReopenContainerLog(id, stop);
  if (reopened) return {};
  // The runtime still writes where it did: that has to be found under the name it had.
  if (::rename(rotated.c_str(), log.c_str()) != 0) {
    log::Error("Cannot take back the rotation of a log", {{"log", log}});
  }
  return reopened.error().Wrap("reopen container log " + id);
}

void LogRotator::RotateAll(std::stop_token stop) {
  std::vector<ContainerLog> grown;
  for (ContainerLog& log : running_()) {
    struct stat info = {};
    if (::stat(log.path.c_str(), &info) == 0) {
      if (info.st_size >= options_.max_size) grown.push_back(std::move(log));
    } else if (errno == ENOENT) {
      // A rotation that was interrupted before the call to the runtime.
      if (auto reopened = runtime_.ReopenContainerLog(log.container_id, stop); !reopened) {
        log::Debug("Cannot reopen a log", {{"log", log.path}, {"err", reopened.error()}});
      }
    }
  }
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < grown.size() && !stop.stop_requested(); i = next++) {
      if (auto rotated = Rotate(grown[i].container_id, grown[i].path, stop); !rotated) {
        log::Error("Failed to rotate log for container",
                   {{"containerID", grown[i].container_id}, {"err", rotated.error()}});
      }
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < options_.workers && static_cast<size_t>(i) < grown.size(); ++i) {
    others.emplace_back(work);
  }
  work();
}

void LogRotator::Run(std::stop_token stop) {
  if (options_.max_size < 0) return;
  while (Pause(clock_, options_.interval, stop)) RotateAll(stop);
}

}  // namespace keelson::kubelet
