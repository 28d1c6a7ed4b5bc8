#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "controlplane/apiserver/audit/legacy_line.h"
#include "controlplane/apiserver/audit/sink.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver::audit {
namespace {

// 2026-01-31T23-59-59.123, UTC.
std::string StampOf(WallTime now) {
  time_t seconds = std::chrono::system_clock::to_time_t(now);
  tm parts{};
  gmtime_r(&seconds, &parts);
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, millis);
}

class LogSink : public Sink {
 public:
  LogSink(LogOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {
    size_t slash = options_.path.rfind('/'), dot = options_.path.rfind('.');
    directory_ = slash == std::string::npos ? "." : options_.path.substr(0, slash);
    std::string name = slash == std::string::npos ? options_.path : options_.path.substr(slash + 1);
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) {
      stem_ = name + "-";
    } else {
      extension_ = options_.path.substr(dot);
      stem_ = name.substr(0, name.size() - extension_.size()) + "-";
    }
  }

  Result<> Open() {
    MutexLock lock(mutex_);
    return OpenLocked();
  }

  Result<> Write(const std::vector<EventJson>& events) override {
    std::string text;
    for (const EventJson& event : events) {
      text += options_.legacy ? LegacyLine(*event) : *event;
      text += '\n';
    }
    if (options_.path == "-") {
      MutexLock lock(mutex_);
      return WriteAll(STDOUT_FILENO, text, "audit log");
    }
    MutexLock lock(mutex_);
    if (!file_) KEELSON_RETURN_IF_ERROR(OpenLocked());
    if (size_ > 0 && size_ + static_cast<int64_t>(text.size()) > options_.max_bytes) {
      KEELSON_RETURN_IF_ERROR(Rotate());
    }
    KEELSON_RETURN_IF_ERROR(WriteAll(file_.get(), text, options_.path));
    size_ += static_cast<int64_t>(text.size());
    return {};
  }

 private:
  Result<> OpenLocked() KEELSON_REQUIRES(mutex_) {
    if (options_.path == "-") return {};
    KEELSON_RETURN_IF_ERROR(MakeDirs(directory_, 0755));
    KEELSON_ASSIGN_OR_RETURN(file_, OpenFile(options_.path, O_WRONLY | O_APPEND | O_CREAT, 0600));
    struct stat state {};
    size_ = fstat(file_.get(), &state) == 0 ? state.st_size : 0;
    return {};
  }

  Result<> Rotate() KEELSON_REQUIRES(mutex_) {
    file_.Reset();
    std::string backup = directory_ + "/" + stem_ + StampOf(clock_.Now()) + extension_;
    if (rename(options_.path.c_str(), backup.c_str()) != 0) {
      log::Warn("Cannot rotate the audit log", {{"err", ErrnoError(options_.path)}});
    }
    KEELSON_RETURN_IF_ERROR(OpenLocked());
    // Deletes old files in the background, one cleaner at a time; it repeats if files arrived meanwhile.
    ++rotations_;
    if (!std::exchange(cleaning_, true)) cleaner_ = std::jthread([this] { CleanUntilNothingComes(); });
    return {};
  }

  void CleanUntilNothingComes() {
    for (;;) {
      int64_t seen = 0;
      {
        MutexLock lock(mutex_);
        seen = rotations_;
      }
      Clean();
      MutexLock lock(mutex_);
      if (seen != rotations_) continue;
      cleaning_ = false;
      return;
    }
  }

  void Clean() const {
    Result<std::vector<std::string>> names = ListDir(directory_);
    if (!names) return;
    std::vector<std::string> backups;
    const size_t stamp = StampOf({}).size();
    for (const std::string& name : *names) {
      std::string_view rest = name;
      if (rest.substr(0, stem_.size()) != stem_) continue;
      rest.remove_prefix(stem_.size());
      if (rest.size() < stamp) continue;
      std::string_view end = rest.substr(stamp);
      if (end == extension_ || end == extension_ + ".gz") backups.push_back(name);
    }
    std::sort(backups.rbegin(), backups.rend());  // newest first
    const std::string oldest = stem_ + StampOf(clock_.Now() - options_.max_age);
    for (size_t i = 0; i < backups.size(); ++i) {
      const std::string path = directory_ + "/" + backups[i];
      bool too_many = options_.max_backups > 0 && i >= static_cast<size_t>(options_.max_backups);
      bool too_old = options_.max_age.count() > 0 && backups[i] < oldest;
      Result<> done;
      if (too_many || too_old) {
        done = RemoveFile(path);
      } else if (options_.compress && path.substr(path.size() - 3) != ".gz") {
        done = Compress(path);
      }
      if (!done) log::Warn("Cannot clean up audit logs", {{"err", done.error()}});
    }
  }

  static Result<> Compress(const std::string& path) {
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    KEELSON_RETURN_IF_ERROR(WriteFileAtomic(
        path + ".gz", http::Gzip({std::make_shared<const std::string>(std::move(text))}), 0600));
    return RemoveFile(path);
  }

  const LogOptions options_;
  Clock& clock_;
  std::string directory_, stem_, extension_;
  Mutex mutex_;
  UniqueFd file_ KEELSON_GUARDED_BY(mutex_);
  int64_t size_ KEELSON_GUARDED_BY(mutex_) = 0;
  int64_t rotations_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool cleaning_ KEELSON_GUARDED_BY(mutex_) = false;
  std::jthread cleaner_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Sink>> NewLogSink(LogOptions options, Clock& clock) {
  auto sink = std::make_unique<LogSink>(std::move(options), clock);
  KEELSON_RETURN_IF_ERROR(sink->Open());
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace keelson::apiserver::audit
