// Files that are taken up when they change, without a restart: certificates, keys, configuration. What makes
// no sense is told of, in the log and on /metrics, and leaves things as they are; it is looked at again when
// it changes again.
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
    std::string name;                // of the flag, for people: "token-auth-file"
    std::vector<std::string> files;  // belong together; empty names are left out
    std::function<Result<>()> reload;
    // Upstream's metrics apiserver_NAME_automatic_reloads_total and so on:
    // "authentication_config_controller".
    std::string controller = "";
  };
  // The files have just been read: they are taken as they are.
  void Add(Watched watched);

  // One look at all files.
  void Check();
  // Looks whenever the kernel tells of a change beside them, and once a minute.
  void Run(std::stop_token stop);

 private:
  struct State {
    Watched watched;
    std::string seen;     // a hash of what the files hold; of the last that was tried
    std::string problem;  // that files could not be read for, told once
  };
  void Check(State& state);
  std::set<std::string> Directories() const;
  // Blocks until there may be something new.
  void Wait(std::stop_token stop);

  Clock& clock_;
  std::vector<State> all_;
};

}  // namespace keelson::http
