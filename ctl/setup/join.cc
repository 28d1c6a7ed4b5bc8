// nodectl join HOST:PORT [phase NAME]
#include <CLI/CLI.hpp>

#include "ctl/phases/join_run.h"
#include "ctl/phases/reports.h"
#include "ctl/preflight/check.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct Options {
  SetupOptions setup;
  std::string endpoint, token, discovery_token, tls_bootstrap_token, discovery_file;
  std::vector<std::string> ca_hashes;
  std::string patches_dir;
  bool unsafe_skip_ca_verification = false, control_plane = false;
  JoinControlPlane plane;
};

const std::vector<std::string> kConfigFlags = {"--token",
                                               "--discovery-token",
                                               "--tls-bootstrap-token",
                                               "--discovery-file",
                                               "--control-plane",
                                               "--apiserver-advertise-address",
                                               "--apiserver-bind-port",
                                               "--certificate-key",
                                               "--patches",
                                               "--discovery-token-ca-cert-hash",
                                               "--discovery-token-unsafe-skip-ca-verification"};

void AddFlags(CLI::App& verb, Options& options) {
  const component::FlagAdder add{verb};
  verb.add_option("api-server-endpoint", options.endpoint, "HOST:PORT of the API server");
  add("--token", options.token, "Token for discovery and for TLS bootstrapping");
  add("--discovery-token", options.discovery_token, "Token for discovery; default: --token");
  add("--tls-bootstrap-token", options.tls_bootstrap_token, "Token for TLS bootstrapping; default: --token");
  add("--discovery-file", options.discovery_file,
      "File or https URL of a kubeconfig to discover the cluster by");
  add("--discovery-token-ca-cert-hash", options.ca_hashes,
      "Pin of the CA's public key, sha256:HEX; may be repeated");
  add("--discovery-token-unsafe-skip-ca-verification", options.unsafe_skip_ca_verification,
      "Join without a pin: whoever has the token can pose as the cluster");
  add("--patches", options.patches_dir,
      "Directory of kubeadm's patch files, kubeletconfiguration[suffix][+patchtype].json|yaml");
  add("--control-plane", options.control_plane, "Make this machine part of the control plane");
  add("--apiserver-advertise-address", options.plane.advertise_address,
      "Of a control plane: address that others reach it at; default: the default route's");
  add("--apiserver-bind-port", options.plane.bind_port, "Of a control plane: port of its API server");
  add("--certificate-key", options.plane.certificate_key,
      "Of a control plane: key of the certificates that 'nodectl init --upload-certs' has uploaded");
}

Result<JoinConfiguration> Configure(const CLI::App& verb, const Options& options, const MachineFacts& machine,
                                    std::ostream& err) {
  KEELSON_RETURN_IF_ERROR(RefuseMixed(verb, kConfigFlags));
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(options.setup.config_file));
  std::vector<std::string> warnings = documents.warnings;
  KEELSON_ASSIGN_OR_RETURN(JoinConfiguration config, ReadJoin(documents, warnings));
  if (options.setup.config_file.empty()) {
    config.api_server_endpoint = options.endpoint;
    config.discovery_file = options.discovery_file;
    if (config.discovery_file.empty()) {
      config.token = options.discovery_token.empty() ? options.token : options.discovery_token;
    }
    config.tls_bootstrap_token =
        options.tls_bootstrap_token.empty() ? options.token : options.tls_bootstrap_token;
    config.ca_hashes = options.ca_hashes;
    config.patches_dir = options.patches_dir;
    config.unsafe_skip_ca_verification = options.unsafe_skip_ca_verification;
    if (options.control_plane) config.control_plane = options.plane;
    if (!options.control_plane && !options.plane.certificate_key.empty()) {
      return Error(Code::kInvalid, "--certificate-key has no effect without --control-plane");
    }
  }
  Override(config, options.setup);
  const auto complete = Complete(config, machine, warnings);
  TellWarnings(warnings, err);
  if (!complete) return complete.error();
  if (!config.control_plane &&
      (!options.setup.control_plane_mode.empty() || !options.setup.control_plane_image.empty())) {
    return Error(Code::kInvalid,
                 "--control-plane-mode and --control-plane-image have no effect without --control-plane");
  }
  return config;
}

Result<> Join(const CLI::App& verb, const Options& options, VerbReport& report, boost::json::object& fields) {
  ChosenHost host(options.setup.root, false);
  const MachineFacts machine = LookAtMachine(host.get());
  KEELSON_ASSIGN_OR_RETURN(const JoinConfiguration config, Configure(verb, options, machine, report.err()));
  ChosenHost chosen(options.setup.root, config.dry_run, report.out());
  JoinOptions join{{}, machine.host_name};
  KEELSON_ASSIGN_OR_RETURN(join.ignored_checks, IgnoredChecks(config.node.ignore_preflight_errors));
  join.log = &report.log();
  ChooseControlPlane(join, options.setup);
  JoinRun run(chosen.get(), config, join, report.out(), report.err());
  Result<> done = run.Run(PhaseName(options.setup));
  if (report.has_document()) fields = JoinReport(run);
  return done;
}

Result<int> RunJoin(const CLI::App& verb, const Options& options, const Settings& settings) {
  return RunReported(
      settings, "JoinReport", options.setup.progress,
      [&](VerbReport& report, boost::json::object& fields) { return Join(verb, options, report, fields); });
}

}  // namespace

void AddJoin(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("join", "Make this machine a node of a cluster, as kubeadm does");
  verb->fallthrough();
  AddSetupOptions(*verb, options->setup, true);
  AddFlags(*verb, *options);
  AddControlPlaneFlags(*verb, options->setup);
  AddProgressFlag(*verb, options->setup.progress);
  AddPhaseVerb(*verb, options->setup, DescribeJoinPhases());
  verb->footer("Phases:\n" + DescribeJoinPhases());
  verb->callback([options, verb, &chosen] {
    chosen = [options, verb](const Settings& settings) { return RunJoin(*verb, *options, settings); };
  });
}

}  // namespace keelson::ctl
