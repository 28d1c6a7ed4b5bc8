// The kubelet's settings: command line and configuration files. Flags win over the files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/config/config.h"
#include "lib/component/flags_without_effect.h"

namespace keelson::kubelet {

struct KubeletFlags {
  std::string kubeconfig, bootstrap_kubeconfig;
  std::string config, config_dir;
  std::string hostname_override, node_ip;
  std::string root_dir = "/var/lib/kubelet", cert_dir;
  StringMap node_labels;
  std::string cloud_provider;  // "external": the cloud controller manager initializes the node
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
  StringMap flag_values;  // of all flags, by name: as given, or the default; without the files
};

// What the command line sets.
struct CommandLine {
  KubeletFlags flags;
  std::vector<std::pair<std::string, std::string>> config_flags;    // name, value; in their order
  std::vector<const component::FlagWithoutEffect*> without_effect;  // flags that change nothing here
  std::string told;  // help or the version, which was asked for and is all that there is to do
};

// As pflag reads (lib/component/flags.h). kBadRequest in its words. One thread at a time.
Result<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);
// Sets the flags' fields in `config`. kBadRequest: a value cannot be parsed.
Result<> ApplyFlags(const std::vector<std::pair<std::string, std::string>>& flags, KubeletConfig& config);
std::string FlagUsage();  // for --help
// As Settings::flag_values.
StringMap FlagValues(const CommandLine& given);

// Reads the command line and the files that it names, validates them, and sets the log format. `exit_code` is set
// when the program has to exit without further messages: --help, --version, mistakes in flags.
Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code);

}  // namespace keelson::kubelet
