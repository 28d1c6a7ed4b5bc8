// The operator: installs its definitions, serves its webhooks, and, once elected, looks after Fleets.
#include <CLI/CLI.hpp>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/base/signals.h"
#include "lib/client/events.h"
#include "lib/client/leader_election.h"
#include "lib/event/loop.h"
#include "tests/operator/manifests.h"
#include "tests/operator/reconciler.h"
#include "tests/operator/webhooks.h"

namespace keelson::test_operator {
namespace {

struct Options {
  std::string kubeconfig, certificate_file, key_file, ca_file, register_dir, identity;
  uint16_t port = 0;
  int die_at = 0;
};

int Run(const Options& options) {
  Result<client::RestConfig> config = client::LoadKubeconfig(options.kubeconfig);
  if (!config) {
    log::Error("Cannot read the kubeconfig", {{"err", config.error()}});
    return 1;
  }
  Result<std::shared_ptr<client::Transport>> transport = client::NewHttpTransport(*config);
  Result<std::unique_ptr<http::Server>> server =
      ServeWebhooks(options.port, options.certificate_file, options.key_file);
  Result<std::string> ca = ReadFile(options.ca_file);
  if (!transport || !server || !ca) {
    log::Error("Cannot start", {{"transport", bool(transport)}, {"server", bool(server)}, {"ca", bool(ca)}});
    return 1;
  }
  Writes writes(options.die_at);
  const JsonApi api(*transport, writes);
  client::EventRecorder events(client::RestClient(*transport), "fleet-operator");
  client::LeaderElectionOptions election;
  election.ns = "default";
  election.name = "fleet-operator";
  election.identity = options.identity;
  election.lease_duration = std::chrono::seconds(3);
  election.renew_deadline = std::chrono::seconds(2);
  election.retry_period = std::chrono::milliseconds(300);
  client::LeaderElector elector(client::RestClient(*transport, std::chrono::seconds(1)), events, election);
  ServiceGroup group;
  group.Add({"webhooks", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return (*server)->Run(stop);
             }});
  group.Add({"events", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               ready();
               events.Run(stop);
               return {};
             }});
  group.Add({"fleets", {"webhooks"}, [&](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               KEELSON_RETURN_IF_ERROR(
                   Install(api, "https://127.0.0.1:" + std::to_string((*server)->port()), *ca));
               ready();
               Reconciler reconciler(api, writes, options.register_dir);
               return elector.Run(
                   stop,
                   [&](std::stop_token leading) -> Result<> {
                     log::Info("Leading", {});
                     while (!leading.stop_requested()) {
                       // Watches end, and the API server may be away for a while.
                       if (Result<> ran = reconciler.Run(leading); !ran) {
                         log::Warn("Looks again", {{"err", ran.error()}});
                       }
                     }
                     return {};
                   },
                   [] { ::_exit(1); });
             }});
  const int code = group.RunUntilSignal();
  log::Info("Writes", {{"count", writes.count()}});
  return code;
}

}  // namespace
}  // namespace keelson::test_operator

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  keelson::test_operator::Options options;
  CLI::App app("A test's operator", "test-operator");
  app.add_option("--kubeconfig", options.kubeconfig, "Of the cluster")->required();
  app.add_option("--tls-cert-file", options.certificate_file, "Of the webhooks")->required();
  app.add_option("--tls-private-key-file", options.key_file, "Of the webhooks")->required();
  app.add_option("--ca-file", options.ca_file, "Of the webhooks' certificate")->required();
  app.add_option("--register-dir", options.register_dir, "Where fleets are registered")->required();
  app.add_option("--identity", options.identity, "In the election of the leader")->required();
  app.add_option("--port", options.port, "Of the webhooks; 0: any");
  app.add_option("--die-at", options.die_at, "2n: before write n; 2n+1: after it");
  CLI11_PARSE(app, argc, argv);
  return keelson::test_operator::Run(options);
}
