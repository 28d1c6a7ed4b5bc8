#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {

registry::WriteOptions BootstrapWrite(std::stop_token stop) {
  registry::WriteOptions options;
  User user = ApiServerUser();
  options.user = {user.name, user.uid, user.groups, user.extra};
  options.field_manager = "kube-apiserver";
  options.stop = stop;
  return options;
}

Result<> CreateIfAbsent(registry::Registry& registry, const api::Message& object, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf(object.GetDescriptor());
  const metav1::ObjectMeta& meta = api::Meta(object);
  Result<registry::ObjectPtr> found = registry.Get(info, meta.namespace_(), meta.name(), "", stop);
  if (found) return {};
  if (!found.error().Is(Code::kNotFound)) return found.error();
  std::unique_ptr<api::Message> copy(object.New());
  copy->CopyFrom(object);
  auto created = registry.Create(info, meta.namespace_(), "", std::move(copy), BootstrapWrite(stop));
  if (created || created.error().Is(Code::kAlreadyExists)) return {};
  return created.error().Wrap("create " + std::string(info.resource) + " " + api::KeyOf(object));
}

Result<> EnsureSystemNamespaces(registry::Registry& registry, std::stop_token stop) {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    corev1::Namespace object;
    object.mutable_metadata()->set_name(name);
    KEELSON_RETURN_IF_ERROR(CreateIfAbsent(registry, object, stop));
  }
  return {};
}

}  // namespace keelson::apiserver
