// nodectl: sets up clusters and looks into nodes.
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/completion_verb.h"
#include "ctl/cri_verbs.h"
#include "ctl/inspect_verbs.h"
#include "ctl/verb.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"nodectl sets up Kubernetes clusters and looks into their nodes. Run it on the node, as root.",
               "nodectl"};
  app.require_subcommand(1);
  keelson::ctl::Settings settings;
  app.add_option(
      "--kubeconfig", settings.kubeconfig,
      "How to reach the API server; default: $KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf");
  app.add_option("-o,--output", settings.output, "Form of the output: table (text), json or yaml")
      ->check(CLI::IsMember({"table", "text", "json", "yaml"}));
  keelson::ctl::Run chosen;
  keelson::ctl::AddInit(app, chosen);
  keelson::ctl::AddJoin(app, chosen);
  keelson::ctl::AddReset(app, chosen);
  keelson::ctl::AddUpgrade(app, chosen);
  keelson::ctl::AddToken(app, chosen);
  keelson::ctl::AddCerts(app, chosen);
  keelson::ctl::AddConfig(app, chosen);
  keelson::ctl::AddEtcd(app, chosen);
  CLI::App* trace = app.add_subcommand("trace", "Where packets go, and why");
  trace->require_subcommand(1)->fallthrough();
  keelson::ctl::AddTraceService(*trace, chosen);
  CLI::App* proxy = app.add_subcommand("proxy", "What kube-proxy does");
  proxy->require_subcommand(1)->fallthrough();
  keelson::ctl::AddProxyDump(*proxy, chosen);
  CLI::App* why = app.add_subcommand("why", "Why something is as it is");
  why->require_subcommand(1)->fallthrough();
  keelson::ctl::AddWhyJob(*why, chosen);
  keelson::ctl::AddWhyNode(*why, chosen);
  keelson::ctl::AddWhyPod(*why, chosen);
  keelson::ctl::AddWhyPvc(*why, chosen);
  keelson::ctl::AddWhyService(*why, chosen);
  keelson::ctl::AddWhyConnection(*why, chosen);
  const std::function<keelson::Result<>()> check_cri_flags = keelson::ctl::AddCriVerbs(app, chosen);
  keelson::ctl::AddCompletion(app, chosen);
  if (std::optional<int> done = keelson::component::ParseProgram(app, argc, argv)) return *done;

  const keelson::Result<> fit = check_cri_flags();
  const keelson::Result<int> code = fit ? chosen(settings) : keelson::Result<int>(fit.error());
  if (!code) std::cerr << "nodectl: " << code.error().message() << "\n";
  return code.value_or(1);
}
