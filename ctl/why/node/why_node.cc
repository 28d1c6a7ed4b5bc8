// nodectl why node NAME
#include <CLI/CLI.hpp>

#include "ctl/inspect_verbs.h"
#include "ctl/why/node/node_judge.h"

namespace keelson::ctl {
namespace {

Result<int> WhyNode(const std::string& name, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(const NodeHealthView view, ReadNodeHealth(api, name, "", Clock::Real().Now()));
  const WhyReport report = JudgeNode(view);
  PrintAnswer(settings, WhyText(report), ToDocument(report));
  return ExitCode(report);
}

}  // namespace

void AddWhyNode(CLI::App& parent, Run& chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(
      "node", "what keeps a node from being Ready or from taking pods; exit code 2: something does");
  verb->add_option("node", *name, "Name of the Node; on the node itself also its certificate is looked at")
      ->required();
  verb->callback(
      [name, &chosen] { chosen = [name](const Settings& settings) { return WhyNode(*name, settings); }; });
}

}  // namespace keelson::ctl
