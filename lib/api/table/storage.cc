// Tables of volumes, storage classes and CSI, and of dynamic resources.
#include <fmt/format.h>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/proto/storagemigration_v1beta1.pb.h"
#include "lib/api/table/cells.h"

namespace keelson::api {
namespace {

template <typename Modes>
std::string AccessModes(const Modes& modes) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {{"ReadWriteOnce", "RWO"},
                                                                             {"ReadOnlyMany", "ROX"},
                                                                             {"ReadWriteMany", "RWX"},
                                                                             {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string> out;
  for (const auto& [name, abbreviation] : kShort) {
    for (const auto& mode : modes) {
      if (mode == name) {
        out.emplace_back(abbreviation);
        break;
      }
    }
  }
  return Join(out, ",");
}

template <typename Map>
std::string Storage(const Map& capacity) {
  auto it = capacity.find("storage");
  return it == capacity.end() ? "0" : it->second.string();
}

std::string ClassOf(const metav1::ObjectMeta& meta, const std::string& name) {
  auto it = meta.annotations().find("volume.beta.kubernetes.io/storage-class");
  return it == meta.annotations().end() ? name : it->second;
}

void FillVolume(const corev1::PersistentVolume& object, Cells& cells) {
  const auto& spec = object.spec();
  std::string claim =
      spec.has_claim_ref() ? spec.claim_ref().namespace_() + "/" + spec.claim_ref().name() : "";
  cells.Text(object.metadata().name()).Text(Storage(spec.capacity())).Text(AccessModes(spec.access_modes()));
  cells.Text(spec.persistent_volume_reclaim_policy());
  cells.Text(object.metadata().has_deletion_timestamp() ? "Terminating" : object.status().phase())
      .Text(claim);
  cells.Text(ClassOf(object.metadata(), spec.storage_class_name()));
  cells.TextOr(spec.volume_attributes_class_name(), "<unset>")
      .Text(object.status().reason())
      .Age(object.metadata());
  cells.TextOr(spec.volume_mode(), "<unset>");
}

void FillClaim(const corev1::PersistentVolumeClaim& object, Cells& cells) {
  const auto& spec = object.spec();
  bool bound = !spec.volume_name().empty();
  cells.Text(object.metadata().name());
  cells.Text(object.metadata().has_deletion_timestamp() ? "Terminating" : object.status().phase())
      .Text(spec.volume_name());
  cells.Text(bound ? Storage(object.status().capacity()) : "")
      .Text(bound ? AccessModes(object.status().access_modes()) : "");
  cells.Text(ClassOf(object.metadata(), spec.storage_class_name()));
  cells.TextOr(spec.volume_attributes_class_name(), "<unset>")
      .Age(object.metadata())
      .TextOr(spec.volume_mode(), "<unset>");
}

void FillStorageClass(const storage::v1::StorageClass& object, Cells& cells) {
  std::string name = object.metadata().name();
  for (const char* key :
       {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    auto it = object.metadata().annotations().find(key);
    if (it == object.metadata().annotations().end() || it->second != "true") continue;
    name += " (default)";
    break;
  }
  cells.Text(name).Text(object.provisioner()).TextOr(object.reclaim_policy(), "Delete");
  cells.TextOr(object.volume_binding_mode(), "Immediate")
      .Bool(object.allow_volume_expansion())
      .Age(object.metadata());
}

void FillAttributesClass(const storage::v1::VolumeAttributesClass& object, Cells& cells) {
  cells.Text(object.metadata().name()).Text(object.driver_name()).Age(object.metadata());
}

void FillAttachment(const storage::v1::VolumeAttachment& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Text(object.spec().attacher())
      .Text(object.spec().source().persistent_volume_name());
  cells.Text(object.spec().node_name()).Bool(object.status().attached()).Age(object.metadata());
}

void FillCsiDriver(const storage::v1::CSIDriver& object, Cells& cells) {
  const auto& spec = object.spec();
  std::vector<std::string> tokens;
  for (const auto& request : spec.token_requests()) tokens.push_back(request.audience());
  std::vector<std::string> modes(spec.volume_lifecycle_modes().begin(), spec.volume_lifecycle_modes().end());
  cells.Text(object.metadata().name()).Bool(!spec.has_attach_required() || spec.attach_required());
  cells.Bool(spec.pod_info_on_mount()).Bool(spec.storage_capacity()).TextOr(Join(tokens, ","), "<unset>");
  cells.Bool(spec.requires_republish()).TextOr(Join(modes, ","), "<none>").Age(object.metadata());
}

void FillCsiNode(const storage::v1::CSINode& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(object.spec().drivers_size()).Age(object.metadata());
}

void FillDeviceClass(const resource::v1::DeviceClass& object, Cells& cells) {
  cells.Text(object.metadata().name()).Age(object.metadata());
}

void FillResourceClaim(const resource::v1::ResourceClaim& object, Cells& cells) {
  std::vector<std::string> states;
  if (object.metadata().has_deletion_timestamp()) states.push_back("deleted");
  if (object.status().has_allocation()) states.push_back("allocated");
  if (object.status().reserved_for_size() > 0) states.push_back("reserved");
  cells.Text(object.metadata().name()).TextOr(Join(states, ","), "pending").Age(object.metadata());
}

void FillClaimTemplate(const resource::v1::ResourceClaimTemplate& object, Cells& cells) {
  cells.Text(object.metadata().name()).Age(object.metadata());
}

void FillResourceSlice(const resource::v1::ResourceSlice& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .TextOr(object.spec().node_name(), "<unset>")
      .Text(object.spec().driver());
  cells.Text(object.spec().pool().name()).Age(object.metadata());
}

void FillMigration(const storagemigration::v1beta1::StorageVersionMigration& object, Cells& cells) {
  const auto& resource = object.spec().resource();
  std::string name = resource.resource();
  if (!resource.group().empty()) name += "." + resource.group();
  std::string state;
  for (const metav1::Condition& condition : object.status().conditions()) {
    if (condition.status() == "True") state = condition.type();
  }
  cells.Text(object.metadata().name()).Text(name).Text(state);
}

}  // namespace

std::vector<TableKind> StorageTables() {
  return {
      TableOf<corev1::PersistentVolume>("Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|"
                                        "VolumeAttributesClass|Reason|Age|VolumeMode+",
                                        FillVolume),
      TableOf<corev1::PersistentVolumeClaim>(
          "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|"
          "Age|VolumeMode+",
          FillClaim),
      TableOf<storage::v1::StorageClass>(
          "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", FillStorageClass),
      TableOf<storage::v1::VolumeAttributesClass>("Name|DriverName|Age", FillAttributesClass),
      TableOf<storage::v1::VolumeAttachment>("Name|Attacher@|PV|Node|Attached?|Age", FillAttachment),
      TableOf<storage::v1::CSIDriver>("Name|AttachRequired?|PodInfoOnMount?|StorageCapacity?|TokenRequests|"
                                      "RequiresRepublish?|Modes|Age",
                                      FillCsiDriver),
      TableOf<storage::v1::CSINode>("Name|Drivers#|Age", FillCsiNode),
      TableOf<storagemigration::v1beta1::StorageVersionMigration>("Name~|Resource|Status", FillMigration),
      TableOf<resource::v1::DeviceClass>("Name|Age", FillDeviceClass),
      TableOf<resource::v1::ResourceClaim>("Name|State|Age", FillResourceClaim),
      TableOf<resource::v1::ResourceClaimTemplate>("Name|Age", FillClaimTemplate),
      TableOf<resource::v1::ResourceSlice>("Name|Node|Driver|Pool|Age", FillResourceSlice),
  };
}

}  // namespace keelson::api
