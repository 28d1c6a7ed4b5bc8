// Reloads files when they change, without a restart: certificates, keys, configuration. A file that cannot
// be loaded is reported in the log and on /metrics, and the previous content stays in use until the file
// changes again.
#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::http {

class FileReloader {
 public:
  explicit FileReloader(Clock& clock = Clock::Real()) : clock_(clock) {}

  struct Watched {
    std::string name;                // the flag's name, for logs: "token-auth-file"
    std::vector<std::string> files;  // loaded together; empty names are dropped
    std::function<Result<>()> reload;
    // The NAME in upstream's metrics apiserver_NAME_automatic_reloads_total and so on:
    // "authentication_config_controller". Empty: no such metrics.
    std::string controller;
  };
  // Watches files whose current content the caller has already loaded.
  void Add(Watched watched);

  // Checks all files once.
  void Check();
  // Checks all files after each change in their directories, and once a minute.
  void Run(std::stop_token stop);

 private:
  struct State {
    Watched watched;
    std::string seen;     // the files' hashes at the last attempt
    std::string problem;  // why the files could not be read; reported once
  };
  void Check(State& state);
  std::set<std::string> Directories() const;
  // Blocks until something may have changed.
  void Wait(std::stop_token stop);

  Clock& clock_;
  std::vector<State> all_;
};

}  // namespace keelson::http
