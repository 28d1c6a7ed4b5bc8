#include "csi/controller/api_access.h"

#include <cstdlib>

#include "lib/base/file.h"

namespace keelson::csi::controller {
namespace {

constexpr char kAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

}  // namespace

Result<client::RestConfig> ApiAccess(const std::string& kubeconfig) {
  client::RestConfig out;
  if (!kubeconfig.empty()) {
    KEELSON_ASSIGN_OR_RETURN(out, client::LoadKubeconfig(kubeconfig));
  } else {
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !port || !*host || !*port) {
      return Error(Code::kInvalid, "--kubeconfig is required outside of a pod");
    }
    const std::string name = host;
    out.server = "https://" + (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port;
    out.token_file = std::string(kAccount) + "/token";
    out.ca_file = std::string(kAccount) + "/ca.crt";
    KEELSON_ASSIGN_OR_RETURN(out.ca_pem, ReadFile(out.ca_file));
  }
  out.user_agent = "keelson-csi-controller";
  return out;
}

std::string OwnNamespace() {
  const Result<std::string> ns = ReadFile(std::string(kAccount) + "/namespace");
  return ns && !ns->empty() ? *ns : "default";
}

}  // namespace keelson::csi::controller
