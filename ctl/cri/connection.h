// Which container runtime to talk to: flags, environment and /etc/crictl.yaml, by crictl's rules.
//
// Source: crictl's documentation, https://github.com/kubernetes-sigs/cri-tools/blob/master/docs/crictl.md
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::ctl {

// Flags before the verb. An absent flag falls back to the environment, then to the file.
struct CriFlags {
  std::optional<std::string> config, runtime_endpoint, image_endpoint;
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<bool> debug;

  bool given() const { return config || runtime_endpoint || image_endpoint || timeout || debug; }
};

// crictl's configuration file. Empty endpoints and a timeout of zero are unset.
struct CriConfig {
  std::string runtime_endpoint, image_endpoint;
  std::chrono::seconds timeout{0};
  bool debug = false, pull_image_on_create = false, disable_pull_on_run = false;
};
// kInvalid: not YAML, an unknown key, or a value of the wrong type.
Result<CriConfig> ParseCriConfig(std::string_view yaml);

struct CriConnection {
  // Paths of sockets, in the order to try them. Several when nothing names one.
  std::vector<std::string> runtime_sockets, image_sockets;
  std::chrono::milliseconds timeout{2000};  // to connect, and of each question
  bool debug = false, pull_image_on_create = false, disable_pull_on_run = false;
};
using ReadEnvironment = std::function<std::optional<std::string>(const std::string& name)>;
// kInvalid: an endpoint that is not a Unix socket. `file`: the parsed file, if there is one.
Result<CriConnection> PlanCriConnection(const CriFlags& flags, const ReadEnvironment& environment,
                                        const CriConfig& file);

// The same from this process: reads the environment and the file. Only the default file may be absent.
Result<CriConnection> ReadCriConnection(const CriFlags& flags);

}  // namespace keelson::ctl
