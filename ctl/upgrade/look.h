// What an upgrade finds: the versions that run and are installed, and how this machine was set up.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/phases/cluster_maps.h"
#include "ctl/pki/kubeconfig.h"
#include "ctl/upgrade/plan.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

// kubeadm-config, /version and the Nodes.
Result<ClusterVersions> LookAtVersions(const client::RestClient& api);
// The version of the API server that answers.
Result<std::string> ServerVersion(const client::RestClient& api);
InstalledPrograms LookAtPrograms(const Host& host);

// How init or join has set up this machine, by the files that they have left.
struct MachineSetup {
  std::string node_name;  // by the certificate of its kubelet
  std::string cri_socket;
  boost::json::object instance;   // instance-config.yaml
  bool control_plane = false;     // the unit kube-controlplane is configured
  std::string advertise_address;  // of a control plane
  uint16_t bind_port = 0;         // of a control plane
};
// kNotFound: the machine is no node. kInvalid: a file cannot be understood.
Result<MachineSetup> LookAtSetup(const Host& host);

// What `nodectl init` would be told to make the cluster that runs, on this machine of its control plane. Without bootstrap tokens, and
// of nodectl's own version. kInvalid: the machine has no control plane, or the cluster's configuration is not complete.
Result<InitConfiguration> RunningConfiguration(const ClusterMaps& maps, const MachineSetup& machine);

// A kubeconfig of the machine, with the certificate that it names.
Result<Kubeconfig> ReadAccess(const Host& host, const std::string& path);

}  // namespace keelson::ctl
