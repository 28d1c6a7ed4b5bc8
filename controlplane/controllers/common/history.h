// The revision history of a DaemonSet or StatefulSet: pod templates stored as ControllerRevisions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

using RevisionPointer = std::shared_ptr<const appsv1::ControllerRevision>;
using RevisionPointers = std::vector<RevisionPointer>;

// On pods: their revision (DaemonSet: its hash; StatefulSet: its name). On DaemonSet revisions: the hash.
inline constexpr char kPodRevisionLabel[] = "controller-revision-hash";
// On StatefulSet revisions: the hash.
inline constexpr char kRevisionHashLabel[] = "controller.kubernetes.io/hash";

// ---- data ----

// The data of a revision: {"spec":{"template":{"$patch":"replace",...}}} with sorted keys. It equals
// upstream's output byte for byte, because upstream's controllers compare bytes.
std::string TemplatePatch(const corev1::PodTemplateSpec& pod_template);
// Returns the template that a revision restores. Ignores unknown fields; without a template the result is
// empty.
Result<corev1::PodTemplateSpec> TemplateOf(const appsv1::ControllerRevision& revision);
// True when the revision restores exactly this template, however its data is formatted.
bool Restores(const appsv1::ControllerRevision& revision, const corev1::PodTemplateSpec& pod_template);

// ---- revisions ----

// Sorts by revision number, then creation time, then name.
void SortRevisions(RevisionPointers& revisions);
int64_t MaxRevision(const RevisionPointers& revisions);  // 0 when empty

// Returns a revision without name and hash; CreateRevision() sets them. Labels come from the template,
// annotations from the owner.
appsv1::ControllerRevision NewRevision(const google::protobuf::Message& owner,
                                       const corev1::PodTemplateSpec& pod_template, int64_t number);

// "OWNER-HASH"; a long owner name is truncated.
std::string RevisionName(std::string_view owner, std::string_view hash);
// Upstream's hash of a StatefulSet's revision: of its data, salted with `collisions`.
std::string RevisionHash(const appsv1::ControllerRevision& revision, int32_t collisions);

// Stores a revision from NewRevision() under the first free name. Calls `hash` with `collisions`, and
// increments `collisions` while a different template has the name. Returns an existing revision with equal
// data: a controller that was killed before its status write finds its revision again.
using HashOf = std::function<std::string(int32_t collisions)>;
Result<appsv1::ControllerRevision> CreateRevision(const client::RestClient& api, std::string_view owner,
                                                  appsv1::ControllerRevision revision, const char* hash_label,
                                                  const HashOf& hash, int32_t& collisions);
// Writes a new number, when the template is in use again or becomes the newest.
Result<RevisionPointer> RenumberRevision(const client::RestClient& api, const RevisionPointer& revision,
                                         int64_t number);

// The revisions of `old` to delete: the oldest beyond `limit` for which `live` is false.
RevisionPointers RevisionsToCleanUp(RevisionPointers old, int32_t limit,
                                    const std::function<bool(const appsv1::ControllerRevision&)>& live);

}  // namespace keelson::controllers
