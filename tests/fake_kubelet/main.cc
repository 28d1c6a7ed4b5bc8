// fake_kubelet: nodes without machines, for a cluster that --kubeconfig leads to.
#include <CLI/CLI.hpp>

#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/base/signals.h"
#include "lib/client/transport.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"
#include "tests/fake_kubelet/fake_kubelets.h"

int main(int argc, char** argv) {
  using namespace keelson;
  BlockSignals();
  event::LoopsOfProcess loops;
  fake_kubelet::Options options;
  std::string kubeconfig;
  int start_ms = 0, job_ms = 0;
  CLI::App app("Nodes without machines: their pods become Running, and nothing runs", "fake_kubelet");
  app.add_option("--kubeconfig", kubeconfig, "API server")->required();
  app.add_option("--nodes", options.nodes, "How many")->capture_default_str();
  app.add_option("--prefix", options.prefix, "Of their names, before a number")->capture_default_str();
  app.add_option("--cpu", options.cpu, "Of each")->capture_default_str();
  app.add_option("--memory", options.memory, "Of each")->capture_default_str();
  app.add_option("--pods", options.pods, "Room for so many on each")->capture_default_str();
  app.add_option("--taint", options.taint, "key:Effect on each node");
  app.add_option("--start-ms", start_ms, "From bound to Running")->capture_default_str();
  app.add_option("--job-ms", job_ms, "From Running to Succeeded, of pods that are not restarted")
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Requests at a time")->capture_default_str();
  if (std::optional<int> done = component::ParseProgram(app, argc, argv)) return *done;
  options.start_time = std::chrono::milliseconds(start_ms);
  options.job_time = std::chrono::milliseconds(job_ms);

  Result<client::RestConfig> config = client::LoadKubeconfig(kubeconfig);
  if (!config) return log::Error("Cannot read the kubeconfig", {{"err", config.error()}}), 1;
  config->user_agent = "kubelet/fake";
  Result<std::shared_ptr<client::Transport>> transport = client::NewHttpTransport(*config);
  if (!transport) return log::Error("Cannot reach the API server", {{"err", transport.error()}}), 1;

  fake_kubelet::FakeKubelets kubelets(client::RestClient(*transport), options);
  ServiceGroup group;
  group.Add({"kubelets", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               return kubelets.Run(stop, ready);
             }});
  return group.RunUntilSignal();
}
