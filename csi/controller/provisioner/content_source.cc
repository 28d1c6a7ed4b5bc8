#include "csi/controller/provisioner/content_source.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "csi/controller/model/capability.h"
#include "csi/controller/model/new_volume.h"
#include "lib/api/quantity.h"
#include "lib/client/request.h"

namespace keelson::csi::controller {
namespace {

constexpr char kSnapshotGroup[] = "snapshot.storage.k8s.io";
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

// An object of a custom resource. kNotFound also when the resource is not served.
Result<boost::json::value> Fetch(const client::RestClient& api, const std::string& path,
                                 std::stop_token stop = {}) {
  client::ApiRequest request;
  request.target = std::string("/apis/") + kSnapshotGroup + "/v1/" + path;
  request.accept = "application/json";
  KEELSON_ASSIGN_OR_RETURN(
      const client::ApiResponse response,
      client::Answered(api.transport(), request, std::chrono::seconds(30), std::move(stop)));
  boost::system::error_code failed;
  boost::json::value out = boost::json::parse(response.body, failed);
  if (failed || !out.is_object()) return Error(Code::kBadRequest, path + ": not an object");
  return out;
}

// The value at "a/b/c", or null.
const boost::json::value* At(const boost::json::value& object, std::string_view path) {
  const boost::json::value* value = &object;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const boost::json::object* here = value->if_object();
    value = here ? here->if_contains(path.substr(0, slash)) : nullptr;
    if (!value) return nullptr;
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return value;
}

std::string Text(const boost::json::value& object, std::string_view path) {
  const boost::json::value* value = At(object, path);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

Result<> CheckMode(const Claim& claim, const boost::json::value& content, const std::string& content_name) {
  const std::string mode = Text(content, "spec/sourceVolumeMode");
  if (mode.empty() || mode == (IsBlock(claim) ? "Block" : "Filesystem")) return {};
  const boost::json::value* annotations = At(content, "metadata/annotations");
  const boost::json::value* allowed =
      annotations && annotations->is_object() ? annotations->get_object().if_contains(kModeChange) : nullptr;
  const std::string refusal = fmt::format(
      "requested volume {}/{} modifies the mode of the source volume but does not have permission to do "
      "so. ",
      claim.metadata().namespace_(), claim.metadata().name());
  if (!allowed || !allowed->is_string()) {
    return Wrong(refusal + fmt::format("{} annotation is not present on snapshotcontent {}", kModeChange,
                                       content_name));
  }
  if (allowed->get_string() == "true") return {};
  return Wrong(refusal + fmt::format("{} is set to false on snapshotcontent {}", kModeChange, content_name));
}

Result<v1::VolumeContentSource> FindSnapshot(const client::RestClient& api, const Claim& claim,
                                             const std::string& name, const std::string& driver) {
  const std::string& ns = claim.metadata().namespace_();
  Result<boost::json::value> snapshot = Fetch(api, "namespaces/" + ns + "/volumesnapshots/" + name);
  if (!snapshot) return snapshot.error().Wrap("error getting snapshot " + name + " from api server");
  if (At(*snapshot, "metadata/deletionTimestamp")) {
    return Wrong(fmt::format("snapshot {} is currently being deleted", name));
  }
  const Error not_bound = Wrong(fmt::format("snapshot {} not bound", name));
  const std::string content_name = Text(*snapshot, "status/boundVolumeSnapshotContentName");
  if (content_name.empty()) return not_bound;
  Result<boost::json::value> content = Fetch(api, "volumesnapshotcontents/" + content_name);
  if (!content) return content.error().Is(Code::kNotFound) ? not_bound : content.error();
  if (Text(*content, "spec/volumeSnapshotRef/uid") != Text(*snapshot, "metadata/uid") ||
      Text(*content, "spec/volumeSnapshotRef/namespace") != ns ||
      Text(*content, "spec/volumeSnapshotRef/name") != name || Text(*content, "spec/driver") != driver) {
    return not_bound;
  }
  const boost::json::value* ready = At(*snapshot, "status/readyToUse");
  if (!ready || !ready->is_bool() || !ready->get_bool()) {
    return Wrong(fmt::format("snapshot {} is not Ready", name));
  }
  const std::string handle = Text(*content, "status/snapshotHandle");
  if (handle.empty()) return Wrong(fmt::format("snapshot handle {} is not available", name));
  if (const std::string size = Text(*snapshot, "status/restoreSize"); !size.empty()) {
    KEELSON_ASSIGN_OR_RETURN(const api::Amount least, api::Amount::Parse(size));
    if (RequestedBytes(claim) < least.Value()) {
      return Wrong(fmt::format("requested volume size {} is less than the size {} for the source snapshot {}",
                               RequestedBytes(claim), least.Value(), name));
    }
  }
  KEELSON_RETURN_IF_ERROR(CheckMode(claim, *content, content_name));
  v1::VolumeContentSource out;
  out.mutable_snapshot()->set_snapshot_id(handle);
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
