// KubeSchedulerConfiguration as a document with every default in its place, as --write-config-to prints it.
#pragma once

#include <boost/json.hpp>

namespace keelson::scheduler {

// Sets the defaults of kubescheduler.config.k8s.io/v1 at Kubernetes 1.36: of the configuration, of its profiles
// and of the arguments of their plugins. `multiPoint` of each profile lists its plugins in full. The result
// configures the same as `document`, which ParseConfig has accepted, and is its own result.
boost::json::object WithDefaults(boost::json::object document);

}  // namespace keelson::scheduler
