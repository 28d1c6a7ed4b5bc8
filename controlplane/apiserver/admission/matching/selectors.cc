#include "controlplane/apiserver/admission/matching/selectors.h"

#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kPatience{10};

bool HasLabels(const api::LabelSelector& selector, const api::Message* object) {
  return object && api::HasObjectMeta(object->GetDescriptor()) &&
         selector.Matches(api::Meta(*object).labels());
}

}  // namespace

Result<std::shared_ptr<const corev1::Namespace>> NamespaceOf(const AdmissionRequest& request,
                                                             storage::Store& store) {
  const api::ResourceInfo& namespaces = api::ResourceOf<corev1::Namespace>();
  const bool is_namespace = request.info.group.empty() && request.MainResource() == "namespaces";
  if (request.ns.empty() && !is_namespace) return std::shared_ptr<const corev1::Namespace>();
  if (is_namespace && request.Subresource().empty() && (request.Creates() || request.Updates())) {
    // No owner: the object lives as long as the request.
    return std::shared_ptr<const corev1::Namespace>(std::shared_ptr<void>(),
                                                    &static_cast<const corev1::Namespace&>(*request.object));
  }
  const std::string name = is_namespace ? request.Name() : std::string(request.ns);
  storage::ObjectPtr found = store.Peek(namespaces, name);
  if (!found) {
    // It may be too new for the cache.
    const SteadyTime deadline = std::min(request.deadline, SteadyTime::clock::now() + kPatience);
    KEELSON_ASSIGN_OR_RETURN(found, store.Get(namespaces, name, "", {deadline, {}}));
  }
  if (!found) return registry::NotFoundError(namespaces, name);
  return std::static_pointer_cast<const corev1::Namespace>(found->Decode());
}

Result<bool> NamespaceMatches(const api::LabelSelector& selector, const AdmissionRequest& request,
                              storage::Store& store) {
  if (selector.IsEverything()) return true;
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const corev1::Namespace> found, NamespaceOf(request, store));
  return !found || selector.Matches(found->metadata().labels());
}

bool ObjectMatches(const api::LabelSelector& selector, const AdmissionRequest& request) {
  return selector.IsEverything() || HasLabels(selector, request.object) ||
         HasLabels(selector, request.old_object);
}

}  // namespace keelson::apiserver
