// nodectl etcd expose --control-plane-endpoint HOST:PORT
#include <boost/json.hpp>

#include "ctl/preflight/check.h"
#include "ctl/setup/etcd_verbs.h"
#include "ctl/setup/verb_report.h"
#include "ctl/upgrade/expose_etcd.h"

namespace keelson::ctl {
namespace {

struct Options {
  ExposeOptions expose;
  std::vector<std::string> ignored_checks;
  std::string root;
};

Result<> Expose(const Options& options, VerbReport& report, boost::json::object& fields) {
  ExposeOptions expose = options.expose;
  KEELSON_ASSIGN_OR_RETURN(expose.ignored_checks, IgnoredChecks(options.ignored_checks));
  ChosenHost host(options.root, expose.dry_run, report.out());
  fields["dryRun"] = expose.dry_run;
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint,
                           ExposeEtcd(host.get(), expose, report.out(), report.err()));
  fields["controlPlaneEndpoint"] = endpoint;
  report.out() << "\nFurther control planes can join now, after their certificates are uploaded:\n\n"
                  "  nodectl init phase upload-certs --upload-certs --control-plane-endpoint "
               << endpoint << "\n  nodectl token create --print-join-command --certificate-key KEY\n";
  return {};
}

}  // namespace

void AddEtcdExpose(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand(
      "expose",
      "Let other machines reach the etcd of a single control plane, so that control planes can join");
  verb->fallthrough();
  const component::FlagAdder add{*verb};
  add("--control-plane-endpoint", options->expose.endpoint,
      "Stable address or name of the control plane, HOST:PORT; default: the cluster's");
  add("--ignore-preflight-errors", options->ignored_checks,
      "Checks whose errors are warnings: Port-2379; all: every check's");
  add("--rootfs", options->root, "Directory that stands for the root of the host's files");
  add("--dry-run", options->expose.dry_run, "Change nothing; say what would be done");
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) {
      return RunReported(settings, "EtcdExposeReport", [&](VerbReport& report, boost::json::object& fields) {
        return Expose(*options, report, fields);
      });
    };
  });
}

}  // namespace keelson::ctl
