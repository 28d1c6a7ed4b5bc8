// Configuration of the bridge plugin; the fields are the CNI reference plugin's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

struct BridgeConfig {
  std::string bridge = "cni0";
  bool is_gateway = false;          // the bridge has the subnet's gateway address
  bool is_default_gateway = false;  // also the container's default route leads to it
  bool force_address = false;       // remove the bridge's old address of an overlapping subnet
  bool masquerade = false;          // ipMasq
  bool hairpin = false, promisc = false;
  int mtu = 0;
  int vlan = 0;                       // the container's VLAN, untagged on its own side; 0: none
  std::vector<int> trunk;             // VLANs that the container may tag its frames with
  bool preserve_default_vlan = true;  // the port also stays in the bridge's default VLAN
  bool check_mac = false;             // macspoofchk: drop frames with another source address
  bool isolated = false;              // portIsolation: no frames to other isolated ports
  bool leave_down = false;            // disableContainerInterface
  bool FiltersVlans() const { return vlan != 0 || !trunk.empty(); }
  std::optional<netlink::MacAddress> mac;  // for the container's end, if the runtime requests one
  std::string ipam;                        // plugin name; empty: no addresses
  Dns dns;
};

Outcome<BridgeConfig> ReadBridgeConfig(const Request& request);

}  // namespace keelson::cni
