// Internal to this room: checks of completed configurations, in kubeadm's words.
#pragma once

#include <string>
#include <vector>

#include "ctl/config/documents.h"

namespace keelson::ctl {

using ConfigProblems = std::vector<std::string>;

// "field: Invalid value: "value": why".
std::string InvalidField(const std::string& field, const std::string& value, const std::string& why);

void CheckCluster(const ClusterConfiguration& cluster, ConfigProblems& problems);
void CheckNode(const NodeRegistration& node, ConfigProblems& problems);
void CheckToken(const std::string& token, const std::string& field, ConfigProblems& problems);
void CheckArguments(const std::vector<Argument>& arguments, const std::string& field,
                    ConfigProblems& problems);

}  // namespace keelson::ctl
