// What an API server needs to know of its peers, the other API servers of the cluster (KEP-4020).
#pragma once

#include <string>

#include "controlplane/apiserver/peers/peer_leases.h"

namespace keelson::apiserver {

struct PeerOptions {
  PeerLeases* leases = nullptr;  // where servers publish their addresses; null: this one does not
  std::string host;              // an IP address at which peers reach this server, and the port
  int port = 0;
  // The CAs of the peers' serving certificates, PEM. Empty: requests that this server cannot serve are not passed on.
  std::string ca_pem;
};

}  // namespace keelson::apiserver
