// Internal to this room: the phases of join that make a machine part of the control plane. On a worker they do nothing.
#pragma once

#include "ctl/phases/init_run.h"
#include "ctl/phases/join_run.h"

namespace keelson::ctl::join {

// Whether the cluster can have one more, and this machine can be one. Part of the phase preflight.
Result<> CheckControlPlane(JoinRun& run);

Result<> DownloadCerts(JoinRun& run);
Result<> Certificates(JoinRun& run);
Result<> Kubeconfigs(JoinRun& run);
Result<> StartControlPlane(JoinRun& run);
// join_etcd.cc
Result<> CheckEtcd(JoinRun& run);
Result<> JoinEtcd(JoinRun& run);
Result<> MarkControlPlane(JoinRun& run);
Result<> WaitControlPlane(JoinRun& run);

}  // namespace keelson::ctl::join
