#include "controlplane/apiserver/handlers/component_status.h"

#include "controlplane/apiserver/endpoints/response.h"

namespace keelson::apiserver {

void HandleComponentStatus(Context& context, const std::string& etcd_problem) {
  constexpr const char* kName = "etcd-0";
  context.warnings.push_back("v1 ComponentStatus is deprecated in v1.19+");
  corev1::ComponentStatus status;
  status.mutable_metadata()->set_name(kName);
  corev1::ComponentCondition& condition = *status.add_conditions();
  condition.set_type("Healthy");
  condition.set_status(etcd_problem.empty() ? "True" : "False");
  condition.set_message(etcd_problem.empty() ? "ok" : etcd_problem);
  registry::ObjectPtr object = storage::Object::FromMessage(*context.resource, status, 0);
  if (context.info.verb == "list") {
    registry::ObjectList list;
    list.items.push_back(std::move(object));
    ReplyList(context, list);
  } else if (context.info.name == kName) {
    ReplyObject(context, 200, object);
  } else {
    ReplyError(context, registry::NotFoundError(*context.resource, context.info.name));
  }
}

}  // namespace keelson::apiserver
