// volume_manager_selinux_*: upstream's gauges that only grow.
#pragma once

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

// Errors keep a pod from its volume; warnings would with the gate SELinuxMount.
struct SeLinuxRefusals {
  metrics::Family &errors, &warnings;
};

struct SeLinuxMetrics {
  SeLinuxRefusals container, pod;  // labels: access_mode
  SeLinuxRefusals volume;          // volume_plugin, access_mode
  metrics::Family& admitted;       // volume_plugin, access_mode
};

SeLinuxMetrics MakeSeLinuxMetrics();

}  // namespace keelson::kubelet
