// nodectl config print|validate
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>

#include "ctl/config/write.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/verb.h"

namespace keelson::ctl {
namespace {

// Reads every document of the file as its verb would.
Result<> Validate(const std::string& path, std::vector<std::string>& warnings) {
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(path));
  warnings = documents.warnings;
  const std::unique_ptr<Host> host = NewHost("");
  const MachineFacts machine = LookAtMachine(*host);
  if (documents.init || documents.cluster) {
    KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, ReadInit(documents, warnings));
    KEELSON_RETURN_IF_ERROR(Complete(config, machine, warnings));
  }
  if (documents.join) {
    KEELSON_ASSIGN_OR_RETURN(JoinConfiguration config, ReadJoin(documents, warnings));
    KEELSON_RETURN_IF_ERROR(Complete(config, machine, warnings));
  }
  if (documents.reset) KEELSON_RETURN_IF_ERROR(ReadReset(documents, warnings));
  if (documents.upgrade) KEELSON_RETURN_IF_ERROR(ReadUpgrade(documents, warnings));
  return {};
}

Result<> ReportValidity(const std::string& path, VerbReport& report, boost::json::object& fields) {
  std::vector<std::string> warnings;
  Result<> valid = Validate(path, warnings);
  fields["valid"] = static_cast<bool>(valid);
  boost::json::array& told = fields["warnings"].emplace_array();
  for (const std::string& warning : warnings) told.emplace_back(warning);
  if (!valid) return valid;
  TellWarnings(warnings, report.err());
  report.out() << "ok\n";
  return {};
}

void AddPrint(CLI::App& parent, Run& chosen) {
  CLI::App* print = parent.add_subcommand("print", "Print a configuration with all defaults");
  print->require_subcommand(1)->fallthrough();
  for (const auto& [name, text] :
       {std::pair("init-defaults", &InitDefaults), std::pair("join-defaults", &JoinDefaults),
        std::pair("reset-defaults", &ResetDefaults), std::pair("upgrade-defaults", &UpgradeDefaults)}) {
    CLI::App* verb = print->add_subcommand(
        name, std::string("Of ") + std::string(name).substr(0, std::string(name).find('-')));
    verb->fallthrough();
    verb->callback([text = text, &chosen] {
      chosen = [text](const Settings& settings) -> Result<int> {
        std::cout << text(settings.format());
        return 0;
      };
    });
  }
}

}  // namespace

void AddConfig(CLI::App& parent, Run& chosen) {
  CLI::App* config = parent.add_subcommand("config", "kubeadm's configuration documents");
  config->require_subcommand(1)->fallthrough();
  AddPrint(*config, chosen);
  auto path = std::make_shared<std::string>();
  CLI::App* validate = config->add_subcommand("validate", "Check a file of configuration documents");
  validate->fallthrough();
  validate->add_option("--config", *path, "The file")->required();
  validate->callback([path, &chosen] {
    chosen = [path](const Settings& settings) {
      return RunReported(settings, "ConfigReport", [&](VerbReport& report, boost::json::object& fields) {
        return ReportValidity(*path, report, fields);
      });
    };
  });
}

}  // namespace keelson::ctl
