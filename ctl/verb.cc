#include "ctl/verb.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "ctl/inspect_verbs.h"

namespace keelson::ctl {

OutputFormat Settings::format() const {
  return output == "json"   ? OutputFormat::kJson
         : output == "yaml" ? OutputFormat::kYaml
                            : OutputFormat::kTable;
}

std::string DefaultKubeconfig() {
  if (const char* given = std::getenv("KUBECONFIG"); given && *given) return given;
  const char* home = std::getenv("HOME");
  std::string own = std::string(home ? home : "/root") + "/.kube/config";
  return ::access(own.c_str(), R_OK) == 0 ? own : "/etc/kubernetes/admin.conf";
}

Result<client::RestClient> ConnectApi(const Settings& settings) {
  std::string path = settings.kubeconfig.empty() ? DefaultKubeconfig() : settings.kubeconfig;
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, client::LoadKubeconfig(path));
  config.user_agent = "nodectl/keelson";
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(config));
  return client::RestClient(std::move(transport));
}

void PrintAnswer(const Settings& settings, const std::string& table, const boost::json::value& document) {
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(document);
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(document);
      break;
    case OutputFormat::kTable:
      std::cout << table;
      break;
  }
}

Result<ObjectName> ParseObjectName(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string::npos) {
    return Error(Code::kInvalid, "want NAMESPACE/NAME, not \"" + text + "\"");
  }
  return ObjectName{text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace keelson::ctl
