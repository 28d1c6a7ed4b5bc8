// Bootstrap tokens for people and for programs, as kubeadm prints them.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/token/token.h"

namespace keelson::ctl {

// A table with a row a token.
std::string TokenTable(const std::vector<BootstrapToken>& tokens, WallTime now);
// BootstrapToken of output.kubeadm.k8s.io/v1alpha3.
boost::json::value TokenDocument(const BootstrapToken& token);

}  // namespace keelson::ctl
