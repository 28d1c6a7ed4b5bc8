#include "lib/http/server/file_reloader.h"

#include <sys/inotify.h>

#include <filesystem>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/server_identity.h"
#include "lib/event/inotify.h"
#include "lib/metrics/metrics.h"

namespace keelson::http {
namespace {

constexpr std::chrono::minutes kPeriod{1};
// The polling period without inotify.
constexpr std::chrono::seconds kBlindPeriod{1};
// The time to wait after a change: a program that replaces several files needs a moment for all of them.
constexpr std::chrono::milliseconds kSettled{100};
constexpr uint32_t kChanges =
    IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB;

std::string HashOf(const std::string& text) { return "sha256:" + crypto::Sha256Hex(text); }

// A hash per file, so that moving content between files is a change too.
Result<std::string> Hashes(const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : files) {
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
    all += (all.empty() ? "" : " ") + HashOf(text);
  }
  return all;
}

void Count(const FileReloader::Watched& watched, bool good, WallTime now) {
  const std::string status = good ? "success" : "failure";
  metrics::Counter("keelson_file_reloads_total", "Changed files that were looked at, by flag.",
                   {"flag", "status"})
      .With({watched.name, status})
      .Increment();
  if (watched.controller.empty()) return;
  const std::string prefix = "apiserver_" + watched.controller;
  metrics::Counter(prefix + "_automatic_reloads_total", "Changes of the configuration that were looked at.",
                   {"apiserver_id_hash", "status"})
      .With({crypto::ApiServerIdHash(), status})
      .Increment();
  metrics::Gauge(prefix + "_automatic_reload_last_timestamp_seconds",
                 "When the configuration last changed, or failed to.", {"apiserver_id_hash", "status"})
      .With({crypto::ApiServerIdHash(), status})
      .Set(static_cast<double>(std::chrono::system_clock::to_time_t(now)));
}

// Reports which configuration is in use.
void TellInForce(const FileReloader::Watched& watched, const std::string& hash) {
  if (watched.controller.empty()) return;
  metrics::Family& info =
      metrics::Gauge("apiserver_" + watched.controller + "_last_config_info",
                     "The configuration that is in force, by its hash.", {"apiserver_id_hash", "hash"});
  info.Clear();
  info.With({crypto::ApiServerIdHash(), hash}).Set(1);
}

}  // namespace

void FileReloader::Add(Watched watched) {
  std::vector<std::string> files;
  for (std::string& file : watched.files) {
    if (!file.empty()) files.push_back(std::move(file));
  }
  if (files.empty()) return;
  watched.files = std::move(files);
  State state{std::move(watched), "", ""};
  if (Result<std::string> hashes = Hashes(state.watched.files)) state.seen = std::move(*hashes);
  TellInForce(state.watched, state.seen);
  all_.push_back(std::move(state));
}

void FileReloader::Check() {
  for (State& state : all_) Check(state);
}

void FileReloader::Check(State& state) {
  const Watched& watched = state.watched;
  Result<std::string> hashes = Hashes(watched.files);
  if (hashes && *hashes == state.seen) {
    state.problem.clear();
    return;
  }
  Result<> done;
  if (!hashes) {
    // The files may be readable again soon: a renewal may take two steps.
    if (std::exchange(state.problem, hashes.error().message()) == hashes.error().message()) return;
    done = hashes.error();
  } else {
    state.problem.clear();
    state.seen = *hashes;
    done = watched.reload();
  }
  Count(watched, static_cast<bool>(done), clock_.Now());
  if (done) {
    log::Info("Took up a file that has changed", {{"flag", watched.name}});
    TellInForce(watched, state.seen);
  } else {
    log::Error("Cannot take up a file that has changed", {{"flag", watched.name}, {"err", done.error()}});
  }
}

// The directories of the names and of their link targets: either may be replaced.
std::set<std::string> FileReloader::Directories() const {
  std::set<std::string> out;
  for (const State& state : all_) {
    for (const std::string& file : state.watched.files) {
      std::error_code ignored;
      out.insert(std::filesystem::absolute(file, ignored).parent_path());
      const auto real = std::filesystem::canonical(file, ignored);
      if (!ignored) out.insert(real.parent_path());
    }
  }
  return out;
}

void FileReloader::Wait(std::stop_token stop) {
  auto inotify = event::Inotify::Create();
  bool blind = !inotify;
  for (const std::string& directory : Directories()) blind = blind || !inotify->Add(directory, kChanges);
  // Catch changes from before the watches were set up.
  Check();
  if (blind) {
    Pause(Clock::Real(), kBlindPeriod, stop);
    return;
  }
  if (!inotify->Wait(stop, kPeriod)) return;
  while (inotify->Wait(stop, kSettled)) {
  }
}

void FileReloader::Run(std::stop_token stop) {
  while (!stop.stop_requested()) Wait(stop);
}

}  // namespace keelson::http
