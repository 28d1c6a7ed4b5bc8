// How kube-controlplane runs on this machine: as a unit of systemd, or as a static pod of the kubelet. Its flags are in the same files in
// both cases (ControlPlaneFiles()).
#pragma once

#include <string>

#include "ctl/host/host.h"
#include "ctl/phases/init_run.h"

namespace keelson::ctl {

// A machine has the one that it was given, until the other one is asked for.
bool HasStaticControlPlane(const Host& host);
// Whether it has been started, in either way.
bool ControlPlaneStarted(const Host& host);

// (Re)starts it as `run` wants it, and returns before it is ready. What was there before in the other way ends. kNotFound: a static pod
// needs the user kube-controlplane.
Result<> StartControlPlane(InitRun& run);
// The same, and returns when the new process is ready: as systemd knows it, or as the API shows the static pod. In a dry run it does not wait.
Result<> RestartControlPlane(InitRun& run);

// "see '...'", for an error.
std::string HowToSeeControlPlane(const Host& host);

}  // namespace keelson::ctl
