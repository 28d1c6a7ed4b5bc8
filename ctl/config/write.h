// Configurations as documents, for kubeadm-config and for `nodectl config print`.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "ctl/config/documents.h"

namespace keelson::ctl {

// A completed ClusterConfiguration, as kubeadm keeps it in the ConfigMap kubeadm-config: any kubeadm of this release
// reads it.
boost::json::object ClusterDocument(const ClusterConfiguration& cluster);

// Documents with all defaults: YAML, "---" between two.
std::string InitDefaults();
std::string JoinDefaults();
std::string ResetDefaults();
std::string UpgradeDefaults();

}  // namespace keelson::ctl
