#include "controlplane/file_reloader.h"

#include <utility>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/http/signing_key.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::seconds kPeriod{1};

std::string HashOf(const std::string& text) { return "sha256:" + http::Sha256Hex(text); }

// Each file's hash: what two files hold must not look like what two others do.
Result<std::string> Hashes(const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(file));
    all += (all.empty() ? "" : " ") + HashOf(text);
  }
  return all;
}

void Count(const FileReloader::Watched& watched, bool good, WallTime now) {
  const std::string status = good ? "success" : "failure";
  metrics::Counter("keelson_apiserver_file_reloads_total", "Changed files that were looked at, by flag.",
                   {"flag", "status"})
      .With({watched.name, status})
      .Increment();
  if (watched.controller.empty()) return;
  const std::string prefix = "apiserver_" + watched.controller;
  metrics::Counter(prefix + "_automatic_reloads_total", "Changes of the configuration that were looked at.",
                   {"status"})
      .With({status})
      .Increment();
  metrics::Gauge(prefix + "_automatic_reload_last_timestamp_seconds",
                 "When the configuration last changed, or failed to.", {"status"})
      .With({status})
      .Set(static_cast<double>(std::chrono::system_clock::to_time_t(now)));
}

// Which configuration is in force.
void TellInForce(const FileReloader::Watched& watched, const std::string& hash) {
  if (watched.controller.empty()) return;
  metrics::Family& info = metrics::Gauge("apiserver_" + watched.controller + "_last_config_info",
                                         "The configuration that is in force, by its hash.", {"hash"});
  info.Clear();
  info.With({hash}).Set(1);
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
    // It may be there again soon: whoever renews files may take two steps to it.
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
    log::Error("Cannot take up a file that has changed", {{"flag", watched.name}, {"error", done.error()}});
  }
}

void FileReloader::Run(std::stop_token stop) {
  Mutex mutex;
  CondVar changed;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    changed.notify_all();
  });
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mutex);
      const SteadyTime next = clock_.SteadyNow() + kPeriod;
      while (!stop.stop_requested() && clock_.SteadyNow() < next) clock_.WaitUntil(mutex, changed, next);
    }
    if (!stop.stop_requested()) Check();
  }
}

}  // namespace keelson::controlplane
