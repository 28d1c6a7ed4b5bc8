// What is written to contents, and the classes and secrets that they name.
#include "csi/controller/model/secret_reference.h"
#include "csi/controller/model/snapshot_names.h"
#include "csi/controller/snapshotter/content_controller.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {

Result<Requeue> ContentController::Save(const SnapshotContent& content, const TakenSnapshot& taken,
                                        std::stop_token stop) {
  const WallTime now = environment().clock.Now();
  auto saved = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "status", [&](CustomObject& live) -> Result<bool> {
        if (live.metadata().uid() != content.meta.uid()) return false;
        KEELSON_ASSIGN_OR_RETURN(const SnapshotContent present, ReadSnapshotContent(live));
        const ContentStatus status = StatusBy(present, taken, now);
        if (present.status && status == *present.status) return false;
        KEELSON_RETURN_IF_ERROR(SetStatus(status, live));
        return true;
      });
  if (!saved && saved.error().Is(Code::kNotFound)) return Requeue{};
  if (!saved) {
    return saved.error().Wrap("error updating status for volume snapshot content " + content.meta.name());
  }
  if (taken.ready) return Requeue{};
  const auto& backoff = environment().retry.backoff;
  return Requeue{PollDelay(content, now, backoff.base, backoff.max)};
}

void ContentController::SaveError(const SnapshotContent& content, const char* reason,
                                  const std::string& message, std::stop_token stop) {
  if (content.status && content.status->error && content.status->error->message == message) return;
  environment().events.Record(ReferenceTo(SnapshotContentRow(), content.meta), "Warning", reason, message);
  auto saved = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "status", [&](CustomObject& live) -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(const SnapshotContent present, ReadSnapshotContent(live));
        // Another attempt may have been better.
        if (present.meta.uid() != content.meta.uid() || present.IsReady()) return false;
        KEELSON_RETURN_IF_ERROR(SetStatus(StatusBy(present, message, environment().clock.Now()), live));
        return true;
      });
  if (!saved && !saved.error().Is(Code::kNotFound)) {
    log::Warn("The error of a snapshot cannot be saved",
              {{"content", content.meta.name()}, {"err", saved.error()}});
  }
}

Result<bool> ContentController::MarkBeingCreated(const SnapshotContent& content, std::stop_token stop) {
  auto marked = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "", [&](CustomObject& live) -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(const SnapshotContent present, ReadSnapshotContent(live));
        if (present.meta.uid() != content.meta.uid()) {
          return Error(Code::kConflict, "the content was replaced");
        }
        auto& annotations = *live.mutable_metadata()->mutable_annotations();
        if (NextStep(present) != ContentStep::kCreate || annotations.count(kBeingCreated) > 0) return false;
        annotations[kBeingCreated] = "yes";
        return true;
      });
  if (!marked && marked.error().Is(Code::kNotFound)) return false;
  if (!marked) {
    return marked.error().Wrap("failed to add VolumeSnapshotBeingCreated annotation on the content " +
                               content.meta.name());
  }
  KEELSON_ASSIGN_OR_RETURN(const SnapshotContent present, ReadSnapshotContent(*marked));
  return NextStep(present) == ContentStep::kCreate;
}

Result<> ContentController::UnmarkBeingCreated(const SnapshotContent& content, std::stop_token stop) {
  auto unmarked = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "", [&](CustomObject& live) -> Result<bool> {
        return live.metadata().uid() == content.meta.uid() &&
               live.mutable_metadata()->mutable_annotations()->erase(kBeingCreated) > 0;
      });
  if (unmarked || unmarked.error().Is(Code::kNotFound)) return {};
  return unmarked.error().Wrap("failed to remove VolumeSnapshotBeingCreated annotation from the content " +
                               content.meta.name());
}

Result<SnapshotClass> ContentController::FindClass(const std::string& name) const {
  const auto object = classes_.Get(name);
  if (!object) {
    return Error(Code::kInvalid,
                 "volumesnapshotclass.snapshot.storage.k8s.io " + JsonQuoted(name) + " not found");
  }
  return ReadSnapshotClass(*object);
}

Result<Strings> ContentController::Secrets(const SnapshotContent& content, std::stop_token stop) {
  const auto& annotations = content.meta.annotations();
  const auto name = annotations.find(kSnapshotSecretName), ns = annotations.find(kSnapshotSecretNamespace);
  if (name == annotations.end() || ns == annotations.end()) return Strings();
  if (name->second.empty() || ns->second.empty()) {
    return Error(Code::kInvalid, "cannot retrieve secrets for snapshot content " +
                                     JsonQuoted(content.meta.name()) +
                                     ", err: secret name or namespace not specified");
  }
  corev1::SecretReference reference;
  reference.set_name(name->second);
  reference.set_namespace_(ns->second);
  return ReadSecret(environment().api.With(stop), reference);
}

Result<Strings> ContentController::ListSecrets(const SnapshotContent& content, std::stop_token stop) {
  if (!content.class_name) return Strings();
  KEELSON_ASSIGN_OR_RETURN(const SnapshotClass snapshot_class, FindClass(*content.class_name));
  KEELSON_ASSIGN_OR_RETURN(const auto reference,
                           ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotterList,
                                                 snapshot_class.parameters, {content.meta.name(), "", ""}));
  if (!reference) return Strings();
  return ReadSecret(environment().api.With(stop), *reference);
}

}  // namespace keelson::csi::controller
