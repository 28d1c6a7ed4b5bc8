// What a snapshot is made of: claim, volume, class and node; and the claim's protection.
#include "csi/controller/model/snapshot_names.h"
#include "csi/controller/model/topology.h"
#include "csi/controller/snapshotter/snapshot_controller.h"
#include "lib/base/json_quote.h"
#include "lib/client/metadata_client.h"

namespace keelson::csi::controller {
namespace {

constexpr char kByClaim[] = "claim";

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

}  // namespace

Result<SnapshotController::Source> SnapshotController::FindSource(const Snapshot& snapshot,
                                                                  std::stop_token stop) {
  const client::RestClient api = environment_.api.With(stop);
  Source out;
  auto claim = api.Get<Claim>(snapshot.meta.namespace_(), *snapshot.claim);
  if (!claim) {
    return claim.error().Wrap("failed to retrieve PVC " + *snapshot.claim + " from the API server");
  }
  out.claim = *std::move(claim);
  if (out.claim.status().phase() != "Bound") {
    return Wrong("the PVC " + *snapshot.claim +
                 " is not yet bound to a PV, will not attempt to take a snapshot");
  }
  const std::string& name = out.claim.spec().volume_name();
  auto volume = api.Get<Volume>("", name);
  if (!volume) return volume.error().Wrap("failed to retrieve PV " + name + " from the API server");
  out.volume = *std::move(volume);
  return out;
}

Result<SnapshotClass> SnapshotController::FindClass(const std::string& name) const {
  const auto object = classes_.Get(name);
  if (!object) {
    return Error(Code::kNotFound,
                 "volumesnapshotclass.snapshot.storage.k8s.io " + JsonQuoted(name) + " not found");
  }
  return ReadSnapshotClass(*object);
}

Result<std::string> SnapshotController::FindDefaultClass(const Snapshot& snapshot, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const Source source, FindSource(snapshot, stop));
  if (!source.volume.spec().persistent_volume_source().has_csi()) {
    return Wrong("snapshotting non-CSI volumes is not supported, snapshot:" + snapshot.Key());
  }
  std::vector<SnapshotClass> classes;
  for (const auto& object : classes_.List()) {
    KEELSON_ASSIGN_OR_RETURN(classes.emplace_back(), ReadSnapshotClass(*object));
  }
  return DefaultClass(classes, source.volume.spec().persistent_volume_source().csi().driver());
}

Result<std::string> SnapshotController::NodeOf(const Volume& volume, std::stop_token stop) {
  if (!environment_.distributed || !volume.spec().has_node_affinity()) return std::string();
  KEELSON_ASSIGN_OR_RETURN(
      const auto nodes,
      client::MetadataClient(environment_.api).With(stop).List(api::ResourceOf<corev1::Node>(), ""));
  for (const metav1::ObjectMeta& node : nodes) {
    if (IsReachable(volume, Segments(node.labels().begin(), node.labels().end()))) return node.name();
  }
  return Error(Code::kUnavailable, "no node matches the node affinity of volume " + volume.metadata().name());
}

Result<SnapshotContent> SnapshotController::MakeContent(const Snapshot& snapshot, std::stop_token stop) {
  if (!snapshot.class_name) {
    return Wrong("failed to take snapshot " + snapshot.meta.name() + " without a snapshot class");
  }
  KEELSON_ASSIGN_OR_RETURN(const SnapshotClass snapshot_class, FindClass(*snapshot.class_name));
  KEELSON_ASSIGN_OR_RETURN(const Source source, FindSource(snapshot, stop));
  KEELSON_RETURN_IF_ERROR(CheckVolume(source.claim, source.volume, snapshot_class));
  KEELSON_ASSIGN_OR_RETURN(const std::string node, NodeOf(source.volume, stop));
  KEELSON_ASSIGN_OR_RETURN(const SnapshotContent plan,
                           PlanContent(snapshot, snapshot_class, source.volume, node));
  KEELSON_RETURN_IF_ERROR(ProtectClaim(source.claim, stop));
  const auto made = Custom(stop).Create(SnapshotContentRow(), NewSnapshotContent(plan));
  if (!made) {
    // Perhaps it is ours, and the answer got lost: the next attempt looks at it.
    if (!made.error().Is(Code::kAlreadyExists)) {
      environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning",
                                 "CreateSnapshotContentFailed",
                                 "Error creating volume snapshot content object for snapshot " +
                                     snapshot.Key() + ": " + made.error().message() + ".");
    }
    return made.error();
  }
  environment_.events.Record(
      ReferenceTo(SnapshotRow(), snapshot.meta), "Normal", "CreatingSnapshot",
      "Waiting for a snapshot " + snapshot.Key() + " to be created by the CSI driver.");
  return ReadSnapshotContent(*made);
}

Result<std::optional<SnapshotContent>> SnapshotController::FindContent(const std::string& name,
                                                                       std::stop_token stop) {
  if (name.empty()) return std::optional<SnapshotContent>();
  Result<SnapshotContent> content = Error(Code::kNotFound, "");
  if (const auto known = contents_.Get(name)) {
    content = ReadSnapshotContent(*known);
  } else {
    const auto live = Custom(stop).Get(SnapshotContentRow(), "", name);
    if (!live && live.error().Is(Code::kNotFound)) return std::optional<SnapshotContent>();
    if (!live) return live.error();
    content = ReadSnapshotContent(*live);
  }
  if (!content) return content.error();
  return std::optional(*std::move(content));
}

Result<bool> SnapshotController::IsBeingRestored(const Snapshot& snapshot, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto claims,
                           environment_.api.With(stop).List<Claim>(snapshot.meta.namespace_()));
  for (const Claim& claim : claims) {
    const auto& source = claim.spec().data_source();
    if (claim.spec().has_data_source() && source.kind() == SnapshotRow().kind &&
        source.api_group() == kSnapshotGroup && source.name() == snapshot.meta.name() &&
        claim.status().phase() == "Pending") {
      return true;
    }
  }
  return false;
}

Result<> SnapshotController::ProtectClaim(const Claim& claim, std::stop_token stop) {
  MutexLock lock(claims_);
  auto kept = client::UpdateWithRetry<Claim>(
      environment_.api.With(stop), claim.metadata().namespace_(), claim.metadata().name(), "",
      [&](Claim& live) -> Result<bool> {
        if (live.metadata().uid() != claim.metadata().uid()) return Wrong("the claim was replaced");
        if (HasFinalizer(live.metadata(), kClaimSourceFinalizer)) return false;
        if (live.metadata().has_deletion_timestamp()) {
          return Wrong("cannot add finalizer on claim because it is being deleted");
        }
        live.mutable_metadata()->add_finalizers(kClaimSourceFinalizer);
        return true;
      });
  if (!kept) return kept.error();
  return {};
}

Result<> SnapshotController::FreeClaim(const std::string& ns, const std::string& name,
                                       const std::string& except, std::stop_token stop) {
  MutexLock lock(claims_);
  for (const auto& object : snapshots_.ByIndex(kByClaim, ns + "/" + name)) {
    KEELSON_ASSIGN_OR_RETURN(const Snapshot other, ReadSnapshot(*object));
    if (!other.IsReady() && other.meta.uid() != except) return {};
  }
  auto freed = client::UpdateWithRetry<Claim>(
      environment_.api.With(stop), ns, name, "", [](Claim& live) -> Result<bool> {
        return DropFinalizer(*live.mutable_metadata(), kClaimSourceFinalizer);
      });
  if (freed || freed.error().Is(Code::kNotFound)) return {};
  return freed.error().Wrap("remove the finalizer of claim " + ns + "/" + name);
}

}  // namespace keelson::csi::controller
