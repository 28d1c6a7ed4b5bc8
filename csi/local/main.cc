// keelson-csi-local: volumes on this node's disk, by the Container Storage Interface.
#include <CLI/CLI.hpp>

#include "csi/local/services.h"
#include "lib/base/signals.h"
#include "lib/component/flag_adder.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"

namespace {

using keelson::Result;
namespace local = keelson::csi::local;

struct Flags {
  local::Config config;
  std::string log_format = "text";
  int verbosity = 0;
};

void AddFlags(CLI::App& app, Flags& flags) {
  const keelson::component::FlagAdder add{app};
  local::Config& config = flags.config;
  add("--csi-endpoint", config.endpoint, "Socket to serve, unix:///PATH")->envname("CSI_ENDPOINT");
  add("--node-id", config.node_id, "This node's name; also the value of its topology label")
      ->envname("KUBE_NODE_NAME");
  add("--data-dir", config.data_dir, "Where volumes and snapshots are kept");
  add("--driver-name", config.driver_name, "Name of the CSIDriver object");
  add("--kubelet-registration-dir", config.registration_dir,
      "The kubelet's directory plugins_registry, to register there; empty: a sidecar registers");
  add("--controller-expansion", config.controller_expansion,
      "Announce ControllerExpandVolume; false where one resizer serves drivers on several nodes");
  add("--max-volumes-per-node", config.max_volumes_per_node, "Most volumes on the node; 0: no limit");
  add("--overprovision-ratio", config.overprovision_ratio,
      "How many times the free space thin volumes may promise; 1: never more than there is");
  add("--lvm-volume-group", config.lvm_volume_group,
      "LVM's volume group for volumes of type lvm; empty: there are none on this node");
  add("--lvm-thin-pool", config.lvm_thin_pool, "The thin pool in that group");
  add("--directory-quotas", config.directory_quotas,
      "Refuse volumes of type directory where no project quota can hold their capacity; false: they take "
      "what they want");
  add("--logging-format", flags.log_format, "Log format: text or json");
  add("-v,--v", flags.verbosity, "Log verbosity; 4 and above show debugging messages");
}

Result<int> Run(const Flags& flags) {
  KEELSON_RETURN_IF_ERROR(
      keelson::component::StartLogging({.format = flags.log_format, .verbosity = flags.verbosity}));
  return local::RunDriver(flags.config);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"keelson-csi-local provides volumes on this node's disk by the Container Storage Interface",
               "keelson-csi-local"};
  Flags flags;
  AddFlags(app, flags);
  if (std::optional<int> done = keelson::component::ParseProgram(app, argc, argv)) return *done;
  return keelson::component::ExitCode(Run(flags), "Cannot start");
}
