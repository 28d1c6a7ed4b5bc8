#include "ctl/why/claim/claim_view.h"

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::ctl {

namespace {

constexpr char kBetaClass[] = "volume.beta.kubernetes.io/storage-class";

bool IsOver(const corev1::Pod& pod) {
  return pod.status().phase() == "Succeeded" || pod.status().phase() == "Failed";
}

const corev1::Event* LastOfObject(const Events& events, const std::string& kind, const std::string& name,
                                  const std::vector<std::string>& reasons) {
  return LastOf(events, [&](const corev1::Event& event) {
    return event.involved_object().kind() == kind && event.involved_object().name() == name &&
           std::find(reasons.begin(), reasons.end(), event.reason()) != reasons.end();
  });
}

// Of the claim as it is now, not of an earlier one with its name.
bool Concerns(const corev1::Event& event, const ClaimView& view) {
  const corev1::ObjectReference& object = event.involved_object();
  if (object.kind() == "PersistentVolumeClaim") return object.uid() == view.claim.metadata().uid();
  return object.kind() == "Pod" && std::any_of(view.pods.begin(), view.pods.end(), [&](const auto& pod) {
           return pod.metadata().uid() == object.uid();
         });
}

Result<> ReadNamespace(const client::RestClient& api, const std::string& ns, ClaimView& view) {
  KEELSON_ASSIGN_OR_RETURN(view.pods, api.List<corev1::Pod>(ns));
  std::erase_if(view.pods, [&](const auto& pod) { return !UsesClaim(pod, view.claim.metadata().name()); });
  KEELSON_ASSIGN_OR_RETURN(view.events, ReadEvents(api, ns, ""));
  std::erase_if(view.events, [&](const auto& event) { return !Concerns(event, view); });
  return {};
}

Result<> ReadVolume(const client::RestClient& api, ClaimView& view) {
  const std::string& name = view.claim.spec().volume_name();
  if (name.empty()) return {};
  auto volume = api.Get<corev1::PersistentVolume>("", name);
  if (!volume && !volume.error().Is(Code::kNotFound)) return volume.error();
  if (volume) view.volume = std::move(*volume);
  KEELSON_ASSIGN_OR_RETURN(view.attachments, api.List<storagev1::VolumeAttachment>());
  std::erase_if(view.attachments, [&](const auto& attachment) {
    return attachment.spec().source().persistent_volume_name() != name;
  });
  return {};
}

}  // namespace

bool UsesClaim(const corev1::Pod& pod, const std::string& claim) {
  return std::any_of(pod.spec().volumes().begin(), pod.spec().volumes().end(), [&](const auto& volume) {
    const auto& source = volume.volume_source();
    if (source.has_persistent_volume_claim()) return source.persistent_volume_claim().claim_name() == claim;
    return source.has_ephemeral() && pod.metadata().name() + "-" + volume.name() == claim;
  });
}

std::optional<std::string> ClassNameOf(const corev1::PersistentVolumeClaim& claim) {
  auto found = claim.metadata().annotations().find(kBetaClass);
  if (found != claim.metadata().annotations().end()) return found->second;
  if (!claim.spec().has_storage_class_name()) return std::nullopt;
  return claim.spec().storage_class_name();
}

std::string ClaimView::Name() const { return claim.metadata().namespace_() + "/" + claim.metadata().name(); }

const storagev1::StorageClass* ClaimView::Class() const {
  const std::string name = ClassNameOf(claim).value_or("");
  auto found = std::find_if(classes.begin(), classes.end(),
                            [&](const auto& one) { return one.metadata().name() == name; });
  return found == classes.end() ? nullptr : &*found;
}

std::vector<std::string> ClaimView::RunningPods() const {
  std::vector<std::string> out;
  for (const corev1::Pod& pod : pods) {
    if (!IsOver(pod)) out.push_back(pod.metadata().name());
  }
  return out;
}

const corev1::Event* ClaimView::LastOfClaim(const std::vector<std::string>& reasons) const {
  return LastOfObject(events, "PersistentVolumeClaim", claim.metadata().name(), reasons);
}

const corev1::Event* ClaimView::LastOfPod(const std::string& pod,
                                          const std::vector<std::string>& reasons) const {
  return LastOfObject(events, "Pod", pod, reasons);
}

Result<ClaimView> ReadClaim(const client::RestClient& api, const std::string& ns, const std::string& name) {
  ClaimView view;
  KEELSON_ASSIGN_OR_RETURN(view.claim, api.Get<corev1::PersistentVolumeClaim>(ns, name));
  KEELSON_RETURN_IF_ERROR(ReadVolume(api, view));
  KEELSON_RETURN_IF_ERROR(ReadNamespace(api, ns, view));
  KEELSON_ASSIGN_OR_RETURN(view.classes, api.List<storagev1::StorageClass>());
  KEELSON_ASSIGN_OR_RETURN(view.drivers, api.List<storagev1::CSIDriver>());
  KEELSON_ASSIGN_OR_RETURN(view.driver_nodes, api.List<storagev1::CSINode>());
  KEELSON_ASSIGN_OR_RETURN(view.capacities, api.List<storagev1::CSIStorageCapacity>());
  KEELSON_ASSIGN_OR_RETURN(view.nodes, api.List<corev1::Node>());
  return view;
}

}  // namespace keelson::ctl
