// The verbs of nodectl. One file adds a verb to the command line and runs it.
#pragma once

#include <functional>
#include <string>

#include "ctl/output.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace CLI {
class App;
}

namespace keelson::ctl {

// What all verbs share. "text" is kubeadm's word for "table".
struct Settings {
  std::string kubeconfig;  // empty: DefaultKubeconfig()
  std::string output = "table";

  OutputFormat format() const;  // of `output`
};

// $KUBECONFIG, ~/.kube/config, or what kubeadm leaves on a control plane node.
std::string DefaultKubeconfig();
// A client for the API server of that kubeconfig.
Result<client::RestClient> ConnectApi(const Settings& settings);

// Runs the chosen verb. The result is the exit code: 0 or kFoundProblems.
using Run = std::function<Result<int>(const Settings&)>;
inline constexpr int kFoundProblems = 2;

// Each adds a subcommand to `parent`. Parsing that subcommand sets `chosen`; it must outlive `parent`.
void AddTraceService(CLI::App& parent, Run& chosen);
void AddProxyDump(CLI::App& parent, Run& chosen);
void AddWhyPod(CLI::App& parent, Run& chosen);
void AddWhyPvc(CLI::App& parent, Run& chosen);
void AddWhyConnection(CLI::App& parent, Run& chosen);
// What sets up clusters, in kubeadm's terms.
void AddInit(CLI::App& parent, Run& chosen);
void AddJoin(CLI::App& parent, Run& chosen);
void AddReset(CLI::App& parent, Run& chosen);
void AddUpgrade(CLI::App& parent, Run& chosen);
void AddToken(CLI::App& parent, Run& chosen);
void AddCerts(CLI::App& parent, Run& chosen);
void AddConfig(CLI::App& parent, Run& chosen);
void AddEtcd(CLI::App& parent, Run& chosen);

}  // namespace keelson::ctl
