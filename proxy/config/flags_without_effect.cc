#include "proxy/config/flags_without_effect.h"

#include <CLI/CLI.hpp>

namespace keelson::proxy {
namespace {

using Form = FlagWithoutEffect::Form;

constexpr char kLog[] = "each line is written to standard error at once";
constexpr char kCadvisor[] = "there is no cAdvisor";
constexpr char kRequests[] = "a few watches are all that is asked of the API server";

constexpr FlagWithoutEffect kFlags[] = {
    {"--boot-id-file", Form::kText, kCadvisor},
    {"--config-sync-period", Form::kField, "watches tell of changes; nothing is read again by the clock"},
    {"--iptables-localhost-nodeports", Form::kField, "NodePorts are not served on loopback addresses"},
    {"--kube-api-burst", Form::kField, kRequests},
    {"--kube-api-content-type", Form::kField, "protobuf is spoken wherever the API has it"},
    {"--kube-api-qps", Form::kField, kRequests},
    {"--log-flush-frequency", Form::kField, kLog},
    {"--log-json-info-buffer-size", Form::kText, kLog},
    {"--log-json-split-stream", Form::kSwitch, kLog},
    {"--log-text-info-buffer-size", Form::kText, kLog},
    {"--log-text-split-stream", Form::kSwitch, kLog},
    {"--machine-id-file", Form::kText, kCadvisor},
    {"--profiling", Form::kField, "there are no profiles"},
    {"--proxy-port-range", Form::kText, "there is no mode userspace"},
    {"--show-hidden-metrics-for-version", Form::kField, "there are no hidden metrics"},
    {"--vmodule", Form::kText, "verbosity is one for the whole program (-v)"},
};

}  // namespace

std::span<const FlagWithoutEffect> FlagsWithoutEffect() { return kFlags; }

void AddFlagsWithoutEffect(CLI::App& app) {
  for (const FlagWithoutEffect& flag : kFlags) {
    if (flag.form == Form::kText) {
      app.add_option_function<std::string>(flag.name, [](const std::string&) {})->take_last()->group("");
    } else if (flag.form == Form::kSwitch) {
      app.add_flag_function(flag.name, [](int64_t) {})->group("");
    }
  }
}

std::vector<FlagWithoutEffect> GivenWithoutEffect(const CLI::App& app) {
  std::vector<FlagWithoutEffect> out;
  for (const FlagWithoutEffect& flag : kFlags) {
    if (app.count(flag.name) > 0) out.push_back(flag);
  }
  return out;
}

}  // namespace keelson::proxy
