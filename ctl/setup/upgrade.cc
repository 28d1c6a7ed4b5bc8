// nodectl upgrade plan|apply|node
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/host/paths.h"
#include "ctl/preflight/check.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/token/discovery.h"
#include "ctl/upgrade/upgrade_run.h"
#include "ctl/verb.h"
#include "lib/base/text.h"
#include "lib/base/version.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct Options {
  SetupOptions setup;  // its socket is not used
  std::string version, patches_dir;
  bool renew = true, yes = false, force = false, drain = false, drain_force = false,
       delete_empty_dirs = false;
  std::chrono::seconds drain_timeout{300};
};

constexpr char kConfigText[] = "File with kubeadm's UpgradeConfiguration";

void AddCommonFlags(CLI::App& verb, Options& options) {
  const component::FlagAdder add{verb};
  add("--config", options.setup.config_file, kConfigText);
  add("--patches", options.patches_dir,
      "Directory of kubeadm's patch files, kubeletconfiguration[suffix][+patchtype].json|yaml");
  add("--rootfs", options.setup.root, "Directory that stands for the root of the host's files");
  add("--ignore-preflight-errors", options.setup.ignored_checks,
      "Checks whose errors are warnings: ControlPlaneNodesReady,Packages; all: every check's");
  add("--skip-phases", options.setup.skipped_phases, "Phases to leave out");
  add("--dry-run", options.setup.dry_run, "Change nothing; say what would be done");
  add("--certificate-renewal", options.renew, "Renew the certificates of the control plane");
  AddProgressFlag(verb, options.setup.progress);
}

bool IsAgreedTo() {
  std::cout << "[upgrade] Are you sure you want to proceed? [y/N]: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return Lower(Trim(answer)) == "y";
}

Result<UpgradeConfiguration> Configure(const std::string& file, std::ostream& err) {
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(file));
  std::vector<std::string> warnings = documents.warnings;
  KEELSON_ASSIGN_OR_RETURN(UpgradeConfiguration config, ReadUpgrade(documents, warnings));
  if (!file.empty() && !documents.upgrade) {
    return Error(Code::kInvalid, file + " has no UpgradeConfiguration");
  }
  TellWarnings(warnings, err);
  return config;
}

// Of a version that a configuration names for a verb without such an argument.
Result<> CheckVersion(const std::string& wanted) {
  const std::string own = kGitVersion;
  if (wanted.empty() || wanted == own || "v" + wanted == own) return {};
  return Error(Code::kInvalid, "plan.kubernetesVersion " + wanted + " is not nodectl's (" + own +
                                   "): nodectl plans for its own version alone");
}

Result<int> Plan(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const UpgradeConfiguration config,
                           Configure(options.setup.config_file, std::cerr));
  KEELSON_RETURN_IF_ERROR(CheckVersion(config.plan.version));
  const std::unique_ptr<Host> host = NewHost(options.setup.root);
  std::string path = settings.kubeconfig.empty() ? host->RealPath(paths::kAdminConf) : settings.kubeconfig;
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig access, ReadAccess(*NewHost(""), path));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ClientFor(access, config.timeouts.api_call));
  KEELSON_ASSIGN_OR_RETURN(const ClusterVersions running, LookAtVersions(api));
  const auto machine = LookAtSetup(*host);
  const UpgradePlan plan =
      PlanUpgrade(running, LookAtPrograms(*host), machine ? machine->node_name : "", kGitVersion);
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(UpgradePlanDocument(plan));
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(UpgradePlanDocument(plan));
      break;
    case OutputFormat::kTable:
      std::cout << UpgradePlanTable(plan);
      break;
  }
  for (const auto* errors : {&plan.skew.mandatory, &plan.skew.skippable}) {
    for (const std::string& error : *errors) std::cerr << "nodectl: " << error << "\n";
  }
  return plan.skew.mandatory.empty() && plan.skew.skippable.empty() ? 0 : kFoundProblems;
}

// What the command line says, over what the file says.
Result<UpgradeOptions> ReadOptions(const CLI::App& verb, const Options& options, UpgradeOptions::Verb which,
                                   std::ostream& err) {
  const bool apply = which == UpgradeOptions::Verb::kApply;
  // What the file says too.
  std::vector<std::string> flags = {"--certificate-renewal", "--patches"};
  if (apply) flags.emplace_back("--force");
  KEELSON_RETURN_IF_ERROR(RefuseMixed(verb, flags));
  KEELSON_ASSIGN_OR_RETURN(const UpgradeConfiguration config, Configure(options.setup.config_file, err));
  const UpgradeVerbConfiguration& own = apply ? config.apply : config.node;
  UpgradeOptions out{
      .verb = which,
      .version = options.version.empty() ? own.version : options.version,
      .skip_phases = options.setup.skipped_phases.empty() ? own.skip_phases : options.setup.skipped_phases,
      .patches_dir = options.patches_dir.empty() ? own.patches_dir : options.patches_dir,
      .timeouts = config.timeouts,
      .renew_certificates = options.renew && own.renew_certificates,
      .dry_run = options.setup.dry_run || own.dry_run,
      .force = options.force || own.force,
      .drain = options.drain,
      .drain_options = {options.drain_force, options.delete_empty_dirs, options.drain_timeout}};
  std::vector<std::string> ignored = own.ignore_preflight_errors;
  ignored.insert(ignored.end(), options.setup.ignored_checks.begin(), options.setup.ignored_checks.end());
  KEELSON_ASSIGN_OR_RETURN(out.ignored_checks, IgnoredChecks(ignored));
  return out;
}

Result<int> Upgrade(const CLI::App& verb, const Options& options, UpgradeOptions::Verb which,
                    const Settings& settings) {
  const bool apply = which == UpgradeOptions::Verb::kApply;
  const SetupOptions& setup = options.setup;
  return RunReported(
      settings, "UpgradeReport", setup.progress,
      [&](VerbReport& report, boost::json::object& fields) -> Result<> {
        if (apply && !settings.kubeconfig.empty()) {
          return Error(Code::kInvalid, "'upgrade apply' works with " + std::string(paths::kAdminConf) +
                                           " of its own machine: --kubeconfig is of no use");
        }
        KEELSON_ASSIGN_OR_RETURN(UpgradeOptions run, ReadOptions(verb, options, which, report.err()));
        fields = {{"kubernetesVersion", kGitVersion}, {"controlPlane", apply}, {"dryRun", run.dry_run}};
        run.kubeconfig = settings.kubeconfig;
        if (apply && !options.yes && !run.force && !run.dry_run) {
          KEELSON_RETURN_IF_ERROR(RefuseToAsk(settings, setup.progress, "--yes"));
          run.agrees = IsAgreedTo;
        }
        run.log = &report.log();
        ChosenHost host(setup.root, run.dry_run, report.out());
        return UpgradeRun(host.get(), run, report.out(), report.err()).Run(PhaseName(setup));
      });
}

void AddPlan(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      parent.add_subcommand("plan", "Show the versions that run and what an upgrade would change");
  verb->fallthrough();
  const component::FlagAdder add{*verb};
  add("--config", options->setup.config_file, kConfigText);
  add("--rootfs", options->setup.root, "Directory that stands for the root of the host's files");
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return Plan(*options, settings); };
  });
}

void AddApply(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("apply", "Upgrade the first machine of the control plane");
  verb->fallthrough();
  AddCommonFlags(*verb, *options);
  const component::FlagAdder add{*verb};
  add("-y,--yes", options->yes, "Do not ask");
  add("-f,--force", options->force, "Go on past version differences that are not fatal; do not ask");
  AddPhaseVerb(*verb, options->setup, DescribeApplyPhases());
  verb->add_option("version", options->version, "nodectl's own version, as a check: v1.36.2");
  verb->footer("Phases:\n" + DescribeApplyPhases());
  verb->callback([options, verb, &chosen] {
    chosen = [options, verb](const Settings& settings) {
      return Upgrade(*verb, *options, UpgradeOptions::Verb::kApply, settings);
    };
  });
}

void AddNode(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("node", "Upgrade this node, after the control plane");
  verb->fallthrough();
  AddCommonFlags(*verb, *options);
  const component::FlagAdder add{*verb};
  add("--drain", options->drain, "Evict the node's pods before, and let pods come again after");
  add("--drain-force", options->drain_force, "Evict pods without a controller too; nothing makes them anew");
  add("--delete-emptydir-data", options->delete_empty_dirs,
      "Evict pods with emptyDir volumes too; their data is lost");
  add("--drain-timeout", options->drain_timeout, "How long pods may take to go");
  AddPhaseVerb(*verb, options->setup, DescribeNodePhases());
  verb->footer("Phases:\n" + DescribeNodePhases());
  verb->callback([options, verb, &chosen] {
    chosen = [options, verb](const Settings& settings) {
      return Upgrade(*verb, *options, UpgradeOptions::Verb::kNode, settings);
    };
  });
}

}  // namespace

void AddUpgrade(CLI::App& parent, Run& chosen) {
  CLI::App* upgrade =
      parent.add_subcommand("upgrade", "Upgrade a cluster after its packages, as kubeadm does");
  upgrade->require_subcommand(1)->fallthrough();
  AddPlan(*upgrade, chosen);
  AddApply(*upgrade, chosen);
  AddNode(*upgrade, chosen);
}

}  // namespace keelson::ctl
