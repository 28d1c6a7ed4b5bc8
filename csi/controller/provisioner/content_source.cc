#include "csi/controller/provisioner/content_source.h"

#include <fmt/format.h>

#include "csi/controller/model/capability.h"
#include "csi/controller/model/new_volume.h"
#include "csi/controller/model/snapshots.h"
#include "lib/api/quantity.h"
#include "lib/client/custom/custom_client.h"

namespace keelson::csi::controller {
namespace {

constexpr char kModeChange[] = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

Error NotBound() { return Wrong("claim in dataSource not bound or invalid"); }

Result<v1::VolumeContentSource> FindClone(const client::RestClient& api, const Claim& claim,
                                          const std::string& name, const std::string& driver) {
  const std::string& ns = claim.metadata().namespace_();
  Result<Claim> source = api.Get<Claim>(ns, name);
  if (!source) {
    return source.error().Wrap(
        fmt::format(R"(error getting PVC {} (namespace "{}") from api server)", name, ns));
  }
  if (source->status().phase() != "Bound") {
    return Wrong(fmt::format("the PVC DataSource {} must have a status of Bound.  Got {}", name,
                             source->status().phase()));
  }
  if (source->metadata().has_deletion_timestamp()) {
    return Wrong(fmt::format("the PVC DataSource {} is currently being deleted", name));
  }
  if (RequestedBytes(claim) < RequestedBytes(*source)) {
    return Wrong(
        fmt::format("error, new PVC request must be greater than or equal in size to the specified PVC data "
                    "source, requested {} but source is {}",
                    RequestedBytes(claim), RequestedBytes(*source)));
  }
  if (source->spec().volume_name().empty()) {
    return Wrong(fmt::format("volume name is empty in source PVC {}", name));
  }
  Result<Volume> volume = api.Get<Volume>("", source->spec().volume_name());
  if (!volume) return volume.error().Is(Code::kNotFound) ? NotBound() : volume.error();
  const auto& reference = volume->spec().claim_ref();
  if (volume->spec().persistent_volume_source().csi().driver() != driver ||
      reference.uid() != source->metadata().uid() || reference.namespace_() != ns ||
      reference.name() != name || volume->status().phase() != "Bound") {
    return NotBound();
  }
  if (IsBlock(claim) != IsBlock(*volume)) {
    return Wrong(
        fmt::format("the source PVC and destination PVCs must have the same volume mode for cloning.  Source "
                    "is {}, but new PVC requested {}",
                    IsBlock(*volume) ? "Block" : "Filesystem", IsBlock(claim) ? "Block" : "Filesystem"));
  }
  v1::VolumeContentSource out;
  out.mutable_volume()->set_volume_id(volume->spec().persistent_volume_source().csi().volume_handle());
  return out;
}

Result<> CheckMode(const Claim& claim, const SnapshotContent& content) {
  const std::string& mode = content.source_volume_mode;
  if (mode.empty() || mode == (IsBlock(claim) ? "Block" : "Filesystem")) return {};
  const auto& annotations = content.meta.annotations();
  const auto allowed = annotations.find(kModeChange);
  const std::string refusal = fmt::format(
      "requested volume {}/{} modifies the mode of the source volume but does not have permission to do "
      "so. ",
      claim.metadata().namespace_(), claim.metadata().name());
  if (allowed == annotations.end()) {
    return Wrong(refusal + fmt::format("{} annotation is not present on snapshotcontent {}", kModeChange,
                                       content.meta.name()));
  }
  if (allowed->second == "true") return {};
  return Wrong(refusal +
               fmt::format("{} is set to false on snapshotcontent {}", kModeChange, content.meta.name()));
}

Result<v1::VolumeContentSource> FindSnapshot(const client::RestClient& api, const Claim& claim,
                                             const std::string& name, const std::string& driver) {
  const std::string& ns = claim.metadata().namespace_();
  const client::CustomClient objects(api);
  const auto snapshot_object = objects.Get(SnapshotRow(), ns, name);
  if (!snapshot_object) {
    return snapshot_object.error().Wrap("error getting snapshot " + name + " from api server");
  }
  KEELSON_ASSIGN_OR_RETURN(const Snapshot snapshot, ReadSnapshot(*snapshot_object));
  if (snapshot.meta.has_deletion_timestamp()) {
    return Wrong(fmt::format("snapshot {} is currently being deleted", name));
  }
  const Error not_bound = Wrong(fmt::format("snapshot {} not bound", name));
  if (!snapshot.status || !snapshot.status->bound_content) return not_bound;
  const auto content_object = objects.Get(SnapshotContentRow(), "", *snapshot.status->bound_content);
  if (!content_object) {
    return content_object.error().Is(Code::kNotFound) ? not_bound : content_object.error();
  }
  KEELSON_ASSIGN_OR_RETURN(const SnapshotContent content, ReadSnapshotContent(*content_object));
  if (content.snapshot_uid != snapshot.meta.uid() || content.snapshot_ns != ns ||
      content.snapshot_name != name || content.driver != driver) {
    return not_bound;
  }
  if (!snapshot.IsReady()) return Wrong(fmt::format("snapshot {} is not Ready", name));
  if (!content.status || !content.status->handle) {
    return Wrong(fmt::format("snapshot handle {} is not available", name));
  }
  if (snapshot.status->restore_size) {
    KEELSON_ASSIGN_OR_RETURN(const api::Amount least, api::Amount::Parse(*snapshot.status->restore_size));
    if (RequestedBytes(claim) < least.Value()) {
      return Wrong(fmt::format("requested volume size {} is less than the size {} for the source snapshot {}",
                               RequestedBytes(claim), least.Value(), name));
    }
  }
  KEELSON_RETURN_IF_ERROR(CheckMode(claim, content));
  v1::VolumeContentSource out;
  out.mutable_snapshot()->set_snapshot_id(*content.status->handle);
  return out;
}

}  // namespace

Result<DataSource> SourceOf(const Claim& claim) {
  const auto& spec = claim.spec();
  std::string group;
  DataSource out;
  if (spec.has_data_source_ref()) {
    const auto& reference = spec.data_source_ref();
    if (!reference.namespace_().empty() && reference.namespace_() != claim.metadata().namespace_()) {
      return Wrong(
          "dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled");
    }
    out = {DataSource::Kind::kOther, reference.kind(), reference.name()};
    group = reference.api_group();
  } else if (spec.has_data_source()) {
    out = {DataSource::Kind::kOther, spec.data_source().kind(), spec.data_source().name()};
    group = spec.data_source().api_group();
  } else {
    return out;
  }
  if (out.name.empty()) {
    return Wrong(fmt::format("the PVC source not found for PVC {}", claim.metadata().name()));
  }
  if (out.kind_name == "PersistentVolumeClaim" && group.empty()) out.kind = DataSource::Kind::kClaim;
  if (out.kind_name == "VolumeSnapshot") {
    if (group != kSnapshotGroup) {
      return Wrong(fmt::format("the PVC source does not belong to the right APIGroup. Expected {}, Got {}",
                               kSnapshotGroup, group));
    }
    out.kind = DataSource::Kind::kSnapshot;
  }
  return out;
}

Result<v1::VolumeContentSource> FindContent(const client::RestClient& api, const Claim& claim,
                                            const DataSource& source, const std::string& driver) {
  Result<v1::VolumeContentSource> found = source.kind == DataSource::Kind::kClaim
                                              ? FindClone(api, claim, source.name, driver)
                                              : FindSnapshot(api, claim, source.name, driver);
  if (found) return found;
  return found.error().Wrap(
      fmt::format("error getting handle for DataSource Type {} by Name {}", source.kind_name, source.name));
}

}  // namespace keelson::csi::controller
