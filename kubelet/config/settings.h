// All that the kubelet is told at its start: command line and configuration files. A flag that sets a field
// of the configuration wins over the files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/config/config.h"

namespace keelson::kubelet {

struct KubeletFlags {
  std::string kubeconfig, bootstrap_kubeconfig;
  std::string config, config_dir;
  std::string hostname_override, node_ip;
  std::string root_dir = "/var/lib/kubelet", cert_dir;
  StringMap node_labels;
  std::string cloud_provider;  // "external": the node waits for one
  std::string image_credential_provider_config, image_credential_provider_bin_dir;
  std::string lock_file, runtime_cgroups, pod_infra_container_image;
  bool exit_on_lock_contention = false;
  bool allocatable_ignores_eviction = false;  // --experimental-allocatable-ignore-eviction
  Duration minimum_container_ttl{0};
  int32_t maximum_dead_containers_per_container = 1, maximum_dead_containers = -1;
};

struct Settings {
  KubeletConfig config;
  KubeletFlags flags;
  StringMap flag_values;  // of all flags by their names: as given, else the default; the files do not count
};

// What was set on the command line, apart from what is there by default.
struct CommandLine {
  KubeletFlags flags;
  std::vector<std::pair<std::string, std::string>> config_flags;  // name, value; in their order
  std::vector<std::string> without_effect;  // names of flags that were given and change nothing here
  bool help = false, version = false;
};

// As pflag reads: --name=value, --name value, --switch, --under_scored. kBadRequest in its words.
Result<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);
// Puts the values of flags over `config`.
Result<> ApplyFlags(const std::vector<std::pair<std::string, std::string>>& flags, KubeletConfig& config);
std::string FlagUsage();
StringMap FlagValues(const CommandLine& given);

// The command line, the files it names, checked. The log gets its format from them. `exit_code` is set when
// all has been said already: --help, --version and mistakes in flags.
Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code);

}  // namespace keelson::kubelet
