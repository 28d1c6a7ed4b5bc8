// What the verbs that set up machines share: options of the command line, the machine's facts, configuration files.
#pragma once

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "ctl/config/complete.h"
#include "ctl/config/read.h"
#include "ctl/host/host.h"

namespace keelson::ctl {

// Options that init, join and reset have in common.
struct SetupOptions {
  std::string config_file, root, cri_socket, node_name;
  std::vector<std::string> ignored_checks, skipped_phases, phase;
  bool dry_run = false;
  std::string progress = "text";                        // of init, join and upgrade: see verb_report.h
  std::string control_plane_mode, control_plane_image;  // of init and join
};
// `for_node`: --node-name too.
void AddSetupOptions(CLI::App& verb, SetupOptions& options, bool for_node);
// Lets the options that were given win over a configuration of init or join.
template <typename Config>
void Override(Config& config, const SetupOptions& setup) {
  if (!setup.node_name.empty()) config.node.name = setup.node_name;
  if (!setup.cri_socket.empty()) config.node.cri_socket = setup.cri_socket;
  if (!setup.skipped_phases.empty()) config.skip_phases = setup.skipped_phases;
  config.dry_run = config.dry_run || setup.dry_run;
  auto& ignored = config.node.ignore_preflight_errors;
  ignored.insert(ignored.end(), setup.ignored_checks.begin(), setup.ignored_checks.end());
}
// How a machine's control plane runs.
void AddControlPlaneFlags(CLI::App& verb, SetupOptions& options);
// Lets a run have it: whether it is a static pod (nullopt: as the machine has it), and its image.
template <typename RunOptions>
void ChooseControlPlane(RunOptions& run, const SetupOptions& setup) {
  if (!setup.control_plane_mode.empty()) run.static_pod = setup.control_plane_mode == "static-pods";
  run.static_pod_image = setup.control_plane_image;
}
// The subcommand "phase NAME...", whose words name one phase.
void AddPhaseVerb(CLI::App& verb, SetupOptions& options, const std::string& phases);
std::string PhaseName(const SetupOptions& options);  // "certs/apiserver"; empty: all of them

MachineFacts LookAtMachine(const Host& host);
// Documents of the file; none when `path` is empty.
Result<ConfigDocuments> ReadConfigFile(const std::string& path);
// kInvalid "can not mix '--config' with arguments [...]" when any of these was given beside --config.
Result<> RefuseMixed(const CLI::App& verb, const std::vector<std::string>& flags);
void TellWarnings(const std::vector<std::string>& warnings, std::ostream& err = std::cerr);

// The real host or, in a dry run, one that changes nothing.
class ChosenHost {
 public:
  // `out`, where a dry run says what it would do, outlives the host.
  ChosenHost(const std::string& root, bool dry_run, std::ostream& out = std::cout);
  Host& get() { return dry_ ? *dry_ : *real_; }

 private:
  std::unique_ptr<Host> real_, dry_;
};

}  // namespace keelson::ctl
