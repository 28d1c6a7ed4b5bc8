#include "controlplane/controllers/common/pod_control.h"

#include "controlplane/controllers/common/controller.h"
#include "lib/api/meta.h"

namespace keelson::controllers {

corev1::Pod PodFromTemplate(const corev1::PodTemplateSpec& source, const google::protobuf::Message& owner) {
  const metav1::ObjectMeta& owner_meta = api::Meta(owner);
  corev1::Pod pod;
  metav1::ObjectMeta& meta = *pod.mutable_metadata();
  meta.set_generate_name(owner_meta.name() + "-");
  meta.set_namespace_(owner_meta.namespace_());
  *meta.mutable_labels() = source.metadata().labels();
  *meta.mutable_annotations() = source.metadata().annotations();
  *meta.mutable_finalizers() = source.metadata().finalizers();
  *meta.add_owner_references() = api::ControllerRef(owner);
  *pod.mutable_spec() = source.spec();
  return pod;
}

Result<corev1::Pod> PodControl::Create(const client::RestClient& api, const google::protobuf::Message& owner,
                                       const corev1::Pod& pod) {
  Result<corev1::Pod> created = api.Create(pod);
  if (created) {
    events_.Record(owner, "Normal", "SuccessfulCreate", "Created pod: " + created->metadata().name());
  } else if (!IsNamespaceTerminating(created.error())) {
    events_.Record(owner, "Warning", "FailedCreate", "Error creating: " + created.error().message());
  }
  return created;
}

Result<> PodControl::Delete(const client::RestClient& api, const google::protobuf::Message& owner,
                            const corev1::Pod& pod) {
  const metav1::ObjectMeta& meta = pod.metadata();
  Result<> deleted = api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (deleted) {
    events_.Record(owner, "Normal", "SuccessfulDelete", "Deleted pod: " + meta.name());
  } else if (!deleted.error().Is(Code::kNotFound)) {
    events_.Record(owner, "Warning", "FailedDelete", "Error deleting: " + deleted.error().message());
  }
  return deleted;
}

}  // namespace keelson::controllers
