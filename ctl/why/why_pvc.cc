// nodectl why pvc NAMESPACE/NAME
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/verb.h"
#include "ctl/why/claim_judge.h"

namespace keelson::ctl {
namespace {

Result<int> WhyPvc(const std::string& claim, const Settings& settings) {
  const size_t slash = claim.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == claim.size()) {
    return Error(Code::kInvalid, "want NAMESPACE/NAME, not \"" + claim + "\"");
  }
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(ClaimView view, ReadClaim(api, claim.substr(0, slash), claim.substr(slash + 1)));
  const ClaimReport report = JudgeClaim(view);
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(ToDocument(report));
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(ToDocument(report));
      break;
    case OutputFormat::kTable:
      std::cout << WhyClaimText(report);
      break;
  }
  return report.problems.empty() ? 0 : kFoundProblems;
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
