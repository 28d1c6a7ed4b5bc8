// Rollback through the deprecated annotation. kubectl rollout undo changes the template itself; only old
// clients set the annotation.
#include <fmt/format.h>

#include <algorithm>

#include "controlplane/controllers/deployment/controller.h"

namespace keelson::controllers {

Result<Requeue> DeploymentController::RollBack(Sync& sync, const SetPointers& sets, int64_t revision) {
  KEELSON_RETURN_IF_ERROR(FindSets(sync, sets, true));  // the current template is a revision, too
  const SetPointers all = sync.all();
  const bool last = revision == 0;
  if (last) revision = LastRevision(all);
  auto found = std::find_if(all.begin(), all.end(), [revision](const SetPointer& set) {
    return revision != 0 && RevisionOf(set->metadata()) == revision;
  });

  appsv1::Deployment changed = sync.deployment;
  changed.mutable_metadata()->mutable_annotations()->erase(kRollbackTo);
  const char* type = "Warning";
  const char* reason = "DeploymentRollbackRevisionNotFound";
  std::string message =
      last && revision == 0 ? "Unable to find last revision." : "Unable to find the revision to rollback to.";
  if (found != all.end() && SameTemplate((*found)->spec().template_(), changed.spec().template_())) {
    reason = "DeploymentRollbackTemplateUnchanged";
    message = fmt::format("The rollback revision contains the same template as current deployment \"{}\"",
                          changed.metadata().name());
  } else if (found != all.end()) {
    RestoreFrom(**found, changed);
    type = "Normal";
    reason = "DeploymentRollback";
    message =
        fmt::format("Rolled back deployment \"{}\" to revision {}", changed.metadata().name(), revision);
  }
  KEELSON_RETURN_IF_ERROR(sync.api.Update(changed));
  events_.Record(sync.deployment, type, reason, std::move(message));
  return Requeue{};  // the update event triggers the next sync
}

}  // namespace keelson::controllers
