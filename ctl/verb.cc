#include "ctl/verb.h"

#include <unistd.h>

#include <cstdlib>

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

}  // namespace keelson::ctl
