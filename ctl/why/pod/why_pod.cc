// nodectl why pod NAMESPACE/NAME [--scheduler URL]
#include <CLI/CLI.hpp>

#include "ctl/inspect_verbs.h"
#include "ctl/why/pod/pod_judge.h"

namespace keelson::ctl {
namespace {

struct Options {
  std::string pod;
  std::string scheduler = "http://127.0.0.1:10251";
};

Result<WhyReport> Explain(const client::RestClient& api, const ObjectName& name, const Options& options) {
  Result<PodView> view = ReadPod(api, name.ns, name.name, options.scheduler, Clock::Real().Now());
  if (view) return JudgePod(*view);
  if (!view.error().Is(Code::kNotFound)) return view.error();
  KEELSON_ASSIGN_OR_RETURN(const AbsentPodView absent, ReadAbsentPod(api, name.ns, name.name));
  return JudgeAbsentPod(absent);
}

Result<int> WhyPod(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const ObjectName name, ParseObjectName(options.pod));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(const WhyReport report, Explain(api, name, options));
  PrintAnswer(settings, WhyText(report), ToDocument(report));
  return ExitCode(report);
}

}  // namespace

void AddWhyPod(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand(
      "pod",
      "what keeps a pod from being created, scheduled, started, ready or gone; exit code 2: something does");
  verb->add_option("pod", options->pod,
                   "NAMESPACE/NAME; of a pod that could not be created also the name of its owner")
      ->required();
  verb->add_option("--scheduler", options->scheduler,
                   "Debug endpoint of the scheduler (kube-controlplane --scheduler-debug-port), for what "
                   "each node lacks")
      ->capture_default_str();
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return WhyPod(*options, settings); };
  });
}

}  // namespace keelson::ctl
