// keelson-csi-controller: what the cluster's side of CSI drivers needs, in place of the stock sidecars.
#include <CLI/CLI.hpp>

#include "csi/controller/services.h"
#include "lib/base/signals.h"
#include "lib/component/flag_adder.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"

namespace {

using keelson::Result;
namespace controller = keelson::csi::controller;

struct Flags {
  controller::Config config;
  std::string log_format = "text";
  int verbosity = 0;
};

void AddProvisionerFlags(const keelson::component::FlagAdder& add, controller::Config& config) {
  add("--volume-name-prefix", config.volume_name_prefix, "First part of the names of volumes");
  add("--volume-name-uuid-length", config.volume_name_uuid_length,
      "How much of the claim's UID the name has; -1: all of it, with its dashes");
  add("--default-fstype", config.default_fs_type, "File system of classes that name none");
  add("--extra-create-metadata", config.extra_create_metadata,
      "Tell the driver the names of claim and volume, or of snapshot and content, as parameters");
  add("--controller-publish-readonly", config.publish_read_only,
      "Make volumes of claims that are ReadOnlyMany alone read-only");
  add("--strict-topology", config.strict_topology,
      "Ask for volumes in the topology of the selected node alone");
  add("--immediate-topology", config.immediate_topology,
      "Name all topologies to the driver where no node is selected");
  add("--node-deployment", config.node_deployment,
      "Serve the driver of this node: claims whose selected node it is, volumes that it alone reaches");
  add("--node-deployment-immediate-binding", config.node_deployment_immediate_binding, "Not supported");
  add("--node-name", config.node_name, "This node's name, for --node-deployment")->envname("NODE_NAME");
  add("--enable-capacity", config.enable_capacity,
      "Publish how much space the driver has (CSIStorageCapacity)");
  add("--capacity-poll-interval", config.capacity_poll, "How often the driver is asked for it");
  add("--capacity-for-immediate-binding", config.capacity_immediate,
      "Also for classes that bind immediately");
  add("--capacity-ownerref-level", config.capacity_ownerref_level,
      "Owner of the objects; only -1 (none) is supported");
  add("--capacity-namespace", config.capacity_namespace,
      "Namespace of the objects; empty: the pod's, or default")
      ->envname("NAMESPACE");
}

void AddSnapshotFlags(const keelson::component::FlagAdder& add, controller::Config& config) {
  add("--snapshot-name-prefix", config.snapshot_name_prefix, "First part of the names of snapshots");
  add("--snapshot-name-uuid-length", config.snapshot_name_uuid_length,
      "How much of the snapshot's UID the name has; -1: all of it, with its dashes");
  add("--enable-distributed-snapshotting", config.distributed_snapshotting,
      "Label contents with the node of their volume, for a snapshotter on each node; --node-deployment "
      "implies it");
}

void AddHealthFlags(const keelson::component::FlagAdder& add, controller::Config& config) {
  add("--list-volumes-interval", config.list_volumes_interval,
      "How often ListVolumes is called for the volumes' conditions");
  add("--monitor-interval", config.monitor_interval,
      "How often each volume is asked for where the driver has no ListVolumes; how often failing nodes are "
      "looked at");
  add("--enable-node-watcher", config.enable_node_watcher,
      "Tell claims in events that the node of their pods has failed");
}

void AddFlags(CLI::App& app, Flags& flags) {
  const keelson::component::FlagAdder add{app};
  controller::Config& config = flags.config;
  add("--kubeconfig", config.kubeconfig, "How to reach the API server; empty: as the pod's ServiceAccount");
  add("--csi-address", config.addresses, "Socket of the driver; several drivers by repetition");
  add("--controllers", config.controllers,
      "Which to run: provisioner, attacher, resizer, modifier, snapshotter, snapshot-controller, "
      "health-monitor; * is all, -NAME all but that");
  add("--timeout", config.timeout, "Limit of each call of the driver");
  add("--worker-threads,--workers", config.worker_threads, "Most operations of one kind at a time");
  add("--feature-gates", config.feature_gates,
      "GATE=true or GATE=false, as the stock sidecars have them; a gate can only be set to what is in "
      "effect");
  add("--retry-interval-start", config.retry_start,
      "Wait after the first failure; doubles with each failure");
  add("--retry-interval-max", config.retry_max, "Longest wait after a failure");
  add("--http-endpoint", config.http_endpoint, "IP:PORT or :PORT of /metrics and /healthz; empty: none");
  add("--metrics-path", config.metrics_path, "Path of the metrics");
  add("--leader-election", config.leader_election, "Work only while the Lease of the driver is held");
  add("--leader-election-namespace", config.leader_election_namespace,
      "Namespace of the Leases; empty: the pod's, or default");
  add("--leader-election-lease-duration", config.lease_duration, "How long others wait for a silent leader");
  add("--leader-election-renew-deadline", config.renew_deadline, "How long a leader tries to renew");
  add("--leader-election-retry-period", config.retry_period, "Period of renewals");
  AddProvisionerFlags(add, config);
  AddSnapshotFlags(add, config);
  AddHealthFlags(add, config);
  add("--logging-format", flags.log_format, "Log format: text or json");
  add("-v,--v", flags.verbosity, "Log verbosity; 4 and above show debugging messages");
}

Result<int> Run(const Flags& flags) {
  KEELSON_RETURN_IF_ERROR(
      keelson::component::StartLogging({.format = flags.log_format, .verbosity = flags.verbosity}));
  return controller::RunController(flags.config);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"keelson-csi-controller provisions, attaches, expands and snapshots volumes of CSI drivers",
               "keelson-csi-controller"};
  Flags flags;
  AddFlags(app, flags);
  if (std::optional<int> done = keelson::component::ParseProgram(app, argc, argv)) return *done;
  return keelson::component::ExitCode(Run(flags), "Cannot start");
}
