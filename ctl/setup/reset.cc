// nodectl reset [phase NAME]
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/phases/reset_run.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/verb.h"
#include "lib/base/text.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct Options {
  SetupOptions setup;
  std::string certificates_dir = "/etc/kubernetes/pki";
  bool force = false, clean_tmp_dir = false, remove_volumes = false;
};

bool IsAgreedTo() {
  std::cout
      << "[reset] WARNING: Changes made to this host by 'nodectl init' or 'nodectl join' will be reverted.\n"
         "[reset] Are you sure you want to proceed? [y/N]: "
      << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return Lower(Trim(answer)) == "y";
}

Result<ResetConfiguration> Configure(const CLI::App& verb, const Options& options, std::ostream& err) {
  KEELSON_RETURN_IF_ERROR(RefuseMixed(verb, {"--cert-dir", "--cleanup-tmp-dir"}));
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(options.setup.config_file));
  std::vector<std::string> warnings = documents.warnings;
  KEELSON_ASSIGN_OR_RETURN(ResetConfiguration config, ReadReset(documents, warnings));
  TellWarnings(warnings, err);
  const SetupOptions& setup = options.setup;
  if (setup.config_file.empty()) {
    config.certificates_dir = options.certificates_dir;
    config.clean_tmp_dir = options.clean_tmp_dir;
  }
  if (!setup.cri_socket.empty()) config.cri_socket = setup.cri_socket;
  if (!setup.skipped_phases.empty()) config.skip_phases = setup.skipped_phases;
  config.ignore_preflight_errors.insert(config.ignore_preflight_errors.end(), setup.ignored_checks.begin(),
                                        setup.ignored_checks.end());
  config.dry_run = config.dry_run || setup.dry_run;
  config.force = config.force || options.force;
  config.remove_volumes = options.remove_volumes;
  if (!config.certificates_dir.starts_with('/') || config.certificates_dir == "/") {
    return Error(Code::kInvalid, "certificatesDir: Invalid value: \"" + config.certificates_dir +
                                     "\": path is not absolute, or the root");
  }
  return config;
}

Result<int> Reset(const CLI::App& verb, const Options& options, const Settings& settings) {
  const SetupOptions& setup = options.setup;
  return RunReported(
      settings, "ResetReport", setup.progress,
      [&](VerbReport& report, boost::json::object& fields) -> Result<> {
        KEELSON_ASSIGN_OR_RETURN(const ResetConfiguration config, Configure(verb, options, report.err()));
        fields["dryRun"] = config.dry_run;
        if (!config.force && !config.dry_run) {
          KEELSON_RETURN_IF_ERROR(RefuseToAsk(settings, setup.progress, "--force"));
          if (!IsAgreedTo()) {
            return Error(Code::kCancelled,
                         "won't proceed; the user didn't answer (Y|y) in order to continue");
          }
        }
        ChosenHost host(setup.root, config.dry_run, report.out());
        const std::string volumes = VolumesThatStay(host.get(), config);
        if (!volumes.empty()) fields["volumesDir"] = volumes;
        return RunReset(host.get(), config, report.out(), report.err(), {PhaseName(setup), &report.log()});
      });
}

}  // namespace

void AddReset(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("reset", "Take back what init and join have done on this machine");
  verb->fallthrough();
  AddSetupOptions(*verb, options->setup, false);
  const component::FlagAdder add{*verb};
  add("--cert-dir", options->certificates_dir, "Where certificates are; the directory is emptied");
  add("--cleanup-tmp-dir", options->clean_tmp_dir, "Empty /etc/kubernetes/tmp too");
  add("--remove-local-volumes", options->remove_volumes,
      "Remove the volumes of keelson-csi-local too; their data is lost");
  add("-f,--force", options->force, "Do not ask");
  AddProgressFlag(*verb, options->setup.progress);
  AddPhaseVerb(*verb, options->setup, DescribeResetPhases());
  verb->footer("Phases:\n" + DescribeResetPhases());
  verb->callback([options, verb, &chosen] {
    chosen = [options, verb](const Settings& settings) { return Reset(*verb, *options, settings); };
  });
}

}  // namespace keelson::ctl
