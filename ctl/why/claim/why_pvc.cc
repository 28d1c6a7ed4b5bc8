// nodectl why pvc NAMESPACE/NAME
#include <CLI/CLI.hpp>

#include "ctl/inspect_verbs.h"
#include "ctl/why/claim/claim_judge.h"

namespace keelson::ctl {
namespace {

Result<int> WhyPvc(const std::string& claim, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const ObjectName name, ParseObjectName(claim));
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(ClaimView view, ReadClaim(api, name.ns, name.name));
  const WhyReport report = JudgeClaim(view);
  PrintAnswer(settings, WhyText(report), ToDocument(report));
  return ExitCode(report);
}

}  // namespace

void AddWhyPvc(CLI::App& parent, Run& chosen) {
  auto claim = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(
      "pvc", "what keeps a claim from being bound, used, expanded or deleted; exit code 2: something does");
  verb->add_option("claim", *claim, "NAMESPACE/NAME")->required();
  verb->callback(
      [claim, &chosen] { chosen = [claim](const Settings& settings) { return WhyPvc(*claim, settings); }; });
}

}  // namespace keelson::ctl
