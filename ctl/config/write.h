// Configurations as documents, for kubeadm-config and for `nodectl config print`.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "ctl/config/documents.h"
#include "ctl/output.h"

namespace keelson::ctl {

// A completed ClusterConfiguration, as kubeadm keeps it in the ConfigMap kubeadm-config: any kubeadm of this release
// reads it.
boost::json::object ClusterDocument(const ClusterConfiguration& cluster);

// Documents with all defaults: YAML with "---" between two, or one JSON document after the other.
std::string InitDefaults(OutputFormat format = OutputFormat::kYaml);
std::string JoinDefaults(OutputFormat format = OutputFormat::kYaml);
std::string ResetDefaults(OutputFormat format = OutputFormat::kYaml);
std::string UpgradeDefaults(OutputFormat format = OutputFormat::kYaml);

}  // namespace keelson::ctl
