// What joins a node, as kubeadm prints it.
#pragma once

#include <string>

namespace keelson::ctl {

// "nodectl join HOST:PORT --token TOKEN \" and, on a second line, the pin of the CA's key; with a certificate key, on a third
// line, what makes it a control plane. `one_line`: without the breaks.
std::string JoinCommand(const std::string& endpoint, const std::string& token, const std::string& pin,
                        bool one_line, const std::string& certificate_key = "");

}  // namespace keelson::ctl
