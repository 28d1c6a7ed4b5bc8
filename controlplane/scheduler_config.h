// The process settings in kube-scheduler's --config file, merged with the flags, and --write-config-to.
#pragma once

#include "controlplane/options/options.h"
#include "controlplane/scheduler/config/config.h"

namespace keelson::controlplane {

struct SchedulerRole {
  scheduler::Config config;
  // With the file's leaderElection, over which flags that were given win, and with its kubeconfig, which wins over
  // --kubeconfig.
  Options options;
};

// Reads --config; without it, the defaults. kInvalid with all mistakes.
Result<SchedulerRole> ReadSchedulerRole(const Options& options);

// --write-config-to: writes the configuration with all defaults and with the flags that change it. kInvalid when
// --config is invalid.
Result<> WriteSchedulerConfig(const Options& options);

}  // namespace keelson::controlplane
