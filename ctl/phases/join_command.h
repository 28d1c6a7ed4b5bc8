// What joins a node, as kubeadm prints it.
#pragma once

#include <string>

namespace keelson::ctl {

// "nodectl join HOST:PORT --token TOKEN \" and, on a second line, the pin of the CA's key. `one_line`: without the break.
std::string JoinCommand(const std::string& endpoint, const std::string& token, const std::string& pin,
                        bool one_line);

}  // namespace keelson::ctl
