// nodectl why service NAMESPACE/NAME
#include <CLI/CLI.hpp>

#include "ctl/inspect_verbs.h"
#include "ctl/why/service/service_judge.h"

namespace keelson::ctl {
namespace {

Result<int> WhyService(const std::string& service, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const ObjectName name, ParseObjectName(service));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(const ServiceHealthView view, ReadServiceHealth(api, name.ns, name.name));
  const WhyReport report = JudgeService(view);
  PrintAnswer(settings, WhyText(report), ToDocument(report));
  return ExitCode(report);
}

}  // namespace

void AddWhyService(CLI::App& parent, Run& chosen) {
  auto service = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(
      "service",
      "why a Service does not answer, as the API server has it; exit code 2: something keeps it from that");
  verb->add_option("service", *service, "NAMESPACE/NAME")->required();
  verb->callback([service, &chosen] {
    chosen = [service](const Settings& settings) { return WhyService(*service, settings); };
  });
}

}  // namespace keelson::ctl
