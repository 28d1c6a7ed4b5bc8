// All plugins in one program, installed in the plugin directory under each of their names: they share
// memory pages, and one can call another without starting a process.
#include "cni/bandwidth/bandwidth.h"
#include "cni/bridge/bridge.h"
#include "cni/host-local/host_local.h"
#include "cni/keelson-policy/policy_plugin.h"
#include "cni/loopback/loopback.h"
#include "cni/portmap/portmap.h"

int main(int, char** argv) {
  using namespace keelson::cni;
  return PluginMain(argv[0], {{"bandwidth", BandwidthPlugin()},
                              {"bridge", BridgePlugin()},
                              {"host-local", HostLocalPlugin()},
                              {"keelson-policy", NetworkPolicyPlugin()},
                              {"loopback", LoopbackPlugin()},
                              {"portmap", PortmapPlugin()}});
}
