#include "csi/controller/provisioner/source_node.h"

#include "csi/controller/model/snapshot_names.h"
#include "csi/controller/model/snapshots.h"
#include "csi/controller/model/topology.h"
#include "lib/client/custom/custom_client.h"
#include "lib/client/metadata_client.h"

namespace keelson::csi::controller {
namespace {

Result<std::string> NodeOfClaim(const client::RestClient& api, const std::string& ns, const std::string& name,
                                const std::string& selected) {
  KEELSON_ASSIGN_OR_RETURN(const Claim source, api.Get<Claim>(ns, name));
  KEELSON_ASSIGN_OR_RETURN(const Volume volume, api.Get<Volume>("", source.spec().volume_name()));
  if (!volume.spec().has_node_affinity()) return std::string();
  KEELSON_ASSIGN_OR_RETURN(const auto nodes,
                           client::MetadataClient(api).List(api::ResourceOf<corev1::Node>(), ""));
  std::string found;
  for (const metav1::ObjectMeta& node : nodes) {
    if (!IsReachable(volume, Segments(node.labels().begin(), node.labels().end()))) continue;
    if (node.name() == selected) return std::string();
    if (found.empty()) found = node.name();
  }
  return found;
}

Result<std::string> NodeOfSnapshot(const client::RestClient& api, const std::string& ns,
                                   const std::string& name, const std::string& selected) {
  const client::CustomClient objects(api);
  KEELSON_ASSIGN_OR_RETURN(const auto object, objects.Get(SnapshotRow(), ns, name));
  KEELSON_ASSIGN_OR_RETURN(const Snapshot snapshot, ReadSnapshot(object));
  if (!snapshot.status || !snapshot.status->bound_content) return std::string();
  KEELSON_ASSIGN_OR_RETURN(const auto content,
                           objects.Get(SnapshotContentRow(), "", *snapshot.status->bound_content));
  const auto& labels = content.metadata().labels();
  const auto managed_by = labels.find(kManagedByNode);
  if (managed_by == labels.end() || managed_by->second == selected) return std::string();
  KEELSON_RETURN_IF_ERROR(api.Get<corev1::Node>("", managed_by->second));
  return managed_by->second;
}

}  // namespace

Result<std::string> NodeOfSource(const client::RestClient& api, const Claim& claim, const DataSource& source,
                                 const std::string& selected) {
  const std::string& ns = claim.metadata().namespace_();
  switch (source.kind) {
    case DataSource::Kind::kClaim:
      return NodeOfClaim(api, ns, source.name, selected);
    case DataSource::Kind::kSnapshot:
      return NodeOfSnapshot(api, ns, source.name, selected);
    case DataSource::Kind::kNone:
    case DataSource::Kind::kOther:
      break;
  }
  return std::string();
}

}  // namespace keelson::csi::controller
