// The program: settings to services.
#pragma once

namespace keelson::kubelet {

// Returns the exit code.
int RunKubelet(int argc, char** argv);

}  // namespace keelson::kubelet
