#include "csi/controller/snapshotter/content_controller.h"

#include <fmt/format.h>

#include "csi/controller/model/secret_reference.h"
#include "csi/controller/model/snapshot_names.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

client::ListOptions OfNode(const std::string& node) {
  client::ListOptions out;
  if (!node.empty()) out.label_selector = std::string(kManagedByNode) + "=" + node;
  return out;
}

// RESOURCE_EXHAUSTED too: a snapshot may be under way for a long time.
bool HasEnded(const Error& error) { return IsFinal(error) && !error.Is(Code::kTooManyRequests); }

std::optional<int64_t> Nanoseconds(const v1::Snapshot& snapshot) {
  if (!snapshot.has_creation_time()) return std::nullopt;
  return snapshot.creation_time().seconds() * 1'000'000'000 + snapshot.creation_time().nanos();
}

Error Unexpected(std::string message) { return Error(Code::kInvalid, std::move(message)); }

}  // namespace

ContentController::ContentController(const Environment& environment, client::CustomInformers& informers,
                                     SnapshotterOptions options)
    : Controller("snapshot-contents", environment),
      options_(std::move(options)),
      contents_(informers.Get(SnapshotContentRow(), OfNode(environment.node))),
      classes_(informers.Get(SnapshotClassRow())) {
  contents_.AddHandler([this](const client::Change<CustomObject>& change) {
    if (!change.new_object) return;
    const Result<SnapshotContent> content = ReadSnapshotContent(*change.new_object);
    if (content && content->driver == driver().name()) queue().Add(change.key);
  });
}

Result<Requeue> ContentController::Reconcile(const std::string& key, std::stop_token stop) {
  const auto object = contents_.Get(key);
  if (!object) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(const SnapshotContent content, ReadSnapshotContent(*object));
  if (content.driver != driver().name()) return Requeue{};
  switch (NextStep(content)) {
    case ContentStep::kCreate:
      return Create(content, stop);
    case ContentStep::kCheck:
      return Check(content, stop);
    case ContentStep::kSettle:
      KEELSON_RETURN_IF_ERROR(UnmarkBeingCreated(content, stop));
      return Requeue{};
    case ContentStep::kDelete:
      KEELSON_RETURN_IF_ERROR(Delete(content, stop));
      return Requeue{};
    case ContentStep::kRelease:
      KEELSON_RETURN_IF_ERROR(Release(content, stop));
      return Requeue{};
    case ContentStep::kNothing:
      break;
  }
  return Requeue{};
}

Result<Requeue> ContentController::Create(const SnapshotContent& content, std::stop_token stop) {
  const Result<std::optional<TakenSnapshot>> taken = Take(content, stop);
  if (!taken) {
    if (stop.stop_requested()) return taken.error();
    SaveError(content, "SnapshotCreationFailed", "Failed to create snapshot: " + taken.error().message(),
              stop);
    return taken.error();
  }
  if (!*taken) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(const Requeue again, Save(content, **taken, stop));
  KEELSON_RETURN_IF_ERROR(UnmarkBeingCreated(content, stop));
  return again;
}

Result<v1::CreateSnapshotRequest> ContentController::Request(const SnapshotContent& content,
                                                             std::stop_token stop) {
  const std::string& name = content.meta.name();
  if (!content.class_name) {
    return Unexpected(fmt::format("failed to take snapshot {} without a snapshot class", name));
  }
  KEELSON_ASSIGN_OR_RETURN(const SnapshotClass snapshot_class, FindClass(*content.class_name));
  v1::CreateSnapshotRequest out;
  KEELSON_ASSIGN_OR_RETURN(*out.mutable_name(), NameForDriver(options_.name_prefix, content.snapshot_uid,
                                                              options_.name_uuid_length));
  out.set_source_volume_id(*content.volume_handle);
  KEELSON_ASSIGN_OR_RETURN(*out.mutable_parameters(), SnapshotParameters(snapshot_class.parameters));
  if (options_.extra_create_metadata) {
    auto& parameters = *out.mutable_parameters();
    parameters[kParameterSnapshotName] = content.snapshot_name;
    parameters[kParameterSnapshotNamespace] = content.snapshot_ns;
    parameters[kParameterContentName] = name;
  }
  KEELSON_ASSIGN_OR_RETURN(*out.mutable_secrets(), Secrets(content, stop));
  return out;
}

Result<std::optional<TakenSnapshot>> ContentController::Take(const SnapshotContent& content,
                                                             std::stop_token stop) {
  const std::string& name = content.meta.name();
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  if (!info->Can(Capability::CREATE_DELETE_SNAPSHOT)) {
    return Unexpected("CSI driver " + info->name + " does not support ControllerCreateSnapshot");
  }
  const Result<v1::CreateSnapshotRequest> request = Request(content, stop);
  if (!request) {
    return request.error().Wrap("failed to get input parameters to create snapshot for content " + name);
  }
  KEELSON_ASSIGN_OR_RETURN(const bool wanted, MarkBeingCreated(content, stop));
  if (!wanted) return std::optional<TakenSnapshot>();
  const auto reply = driver().CreateSnapshot(*request, stop);
  if (!reply) {
    if (HasEnded(reply.error())) {
      const Result<> unmarked = UnmarkBeingCreated(content, stop);
      if (!unmarked) return unmarked.error();
    }
    return Error(reply.error().code(),
                 fmt::format("failed to take snapshot of the volume {}: {}", *content.volume_handle,
                             JsonQuoted(reply.error().message())));
  }
  const v1::Snapshot& snapshot = reply->snapshot();
  if (snapshot.snapshot_id().empty()) {
    return Unexpected("the driver has answered without a snapshot id");
  }
  return std::optional(TakenSnapshot{snapshot.snapshot_id(), snapshot.ready_to_use(), Nanoseconds(snapshot),
                                     snapshot.size_bytes()});
}

Result<Requeue> ContentController::Check(const SnapshotContent& content, std::stop_token stop) {
  const Result<TakenSnapshot> found = Look(content, stop);
  if (found) return Save(content, *found, stop);
  if (stop.stop_requested()) return found.error();
  SaveError(content, "SnapshotContentCheckandUpdateFailed",
            "Failed to check and update snapshot content: " + found.error().message(), stop);
  return found.error();
}

Result<TakenSnapshot> ContentController::Look(const SnapshotContent& content, std::stop_token stop) {
  const std::string handle =
      content.status && content.status->handle ? *content.status->handle : *content.snapshot_handle;
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  // Nothing can be known of it.
  if (!info->Can(Capability::LIST_SNAPSHOTS)) return TakenSnapshot{handle, true, std::nullopt, 0};
  v1::ListSnapshotsRequest request;
  request.set_snapshot_id(handle);
  KEELSON_ASSIGN_OR_RETURN(*request.mutable_secrets(), ListSecrets(content, stop));
  const auto reply = driver().ListSnapshots(request, stop);
  if (!reply) return reply.error().Wrap("failed to list snapshot for content " + content.meta.name());
  for (const auto& entry : reply->entries()) {
    const v1::Snapshot& snapshot = entry.snapshot();
    if (snapshot.snapshot_id() != handle) continue;
    return TakenSnapshot{handle, snapshot.ready_to_use(), Nanoseconds(snapshot), snapshot.size_bytes()};
  }
  return Error(Code::kNotFound, fmt::format("failed to list snapshot for content {}: can not find snapshot "
                                            "for snapshotID {}",
                                            content.meta.name(), handle));
}

Result<> ContentController::Delete(const SnapshotContent& content, std::stop_token stop) {
  auto failed = [&](const char* what, const Error& error) {
    if (!stop.stop_requested()) {
      environment().events.Record(ReferenceTo(SnapshotContentRow(), content.meta), "Warning",
                                  "SnapshotDeleteError", what);
    }
    return error.Wrap("failed to delete snapshot " + JsonQuoted(content.meta.name()));
  };
  v1::DeleteSnapshotRequest request;
  request.set_snapshot_id(*content.status->handle);
  Result<Strings> secrets = Secrets(content, stop);
  if (!secrets) return failed("Failed to get snapshot credentials", secrets.error());
  *request.mutable_secrets() = *std::move(secrets);
  const Result<> deleted = driver().DeleteSnapshot(request, stop);
  if (!deleted) return failed("Failed to delete snapshot", deleted.error());
  return Release(content, stop);
}

Result<> ContentController::Release(const SnapshotContent& content, std::stop_token stop) {
  auto freed = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "", [&](CustomObject& live) -> Result<bool> {
        return live.metadata().uid() == content.meta.uid() &&
               DropFinalizer(*live.mutable_metadata(), kContentFinalizer);
      });
  if (freed || freed.error().Is(Code::kNotFound)) return {};
  return freed.error().Wrap("remove the finalizer of the content");
}

}  // namespace keelson::csi::controller
