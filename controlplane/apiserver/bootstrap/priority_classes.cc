#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/proto/scheduling_v1.pb.h"

namespace keelson::apiserver {

Result<> EnsurePriorityClasses(registry::Registry& registry, std::stop_token stop) {
  struct Row {
    const char* name;
    int32_t value;
    const char* description;
  };
  constexpr Row kRows[] = {{"system-cluster-critical", 2000000000,
                            "Used for system critical pods that must run in the cluster, but can be moved to "
                            "another node if necessary."},
                           {"system-node-critical", 2000001000,
                            "Used for system critical pods that must not be moved from their current node."}};
  for (const Row& row : kRows) {
    api::scheduling::v1::PriorityClass object;
    object.mutable_metadata()->set_name(row.name);
    object.set_value(row.value);
    object.set_description(row.description);
    object.set_preemption_policy("PreemptLowerPriority");
    KEELSON_RETURN_IF_ERROR(CreateIfAbsent(registry, object, stop));
  }
  return {};
}

}  // namespace keelson::apiserver
