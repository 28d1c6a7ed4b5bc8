// The pod templates that a DaemonSet or StatefulSet has had, kept as ControllerRevisions: what a rollout
// compares with and a rollback goes back to.
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

// On pods: which revision they were made of (a DaemonSet's: its hash; a StatefulSet's: its name). On a
// DaemonSet's revisions: their hash.
inline constexpr char kPodRevisionLabel[] = "controller-revision-hash";
// On a StatefulSet's revisions: their hash.
inline constexpr char kRevisionHashLabel[] = "controller.kubernetes.io/hash";

// ---- data ----

// What a revision stores of a template: {"spec":{"template":{"$patch":"replace",...}}}, keys sorted, to the
// byte what upstream writes: its controllers, which compare bytes, can take over.
std::string TemplatePatch(const corev1::PodTemplateSpec& pod_template);
// The template that a revision restores. Foreign fields are dropped; no template at all is an empty one.
Result<corev1::PodTemplateSpec> TemplateOf(const appsv1::ControllerRevision& revision);
// Whether it restores just this template, however its data is spelled.
bool Restores(const appsv1::ControllerRevision& revision, const corev1::PodTemplateSpec& pod_template);

// ---- revisions ----

// Oldest first: by number, then by creation, then by name.
void SortRevisions(RevisionPointers& revisions);
int64_t MaxRevision(const RevisionPointers& revisions);  // 0 when there are none

// Without name and hash: CreateRevision() gives both. Labels are the template's, annotations the owner's.
appsv1::ControllerRevision NewRevision(const google::protobuf::Message& owner,
                                       const corev1::PodTemplateSpec& pod_template, int64_t number);

// The name is that of the owner, cut short if need be, and the hash.
std::string RevisionName(std::string_view owner, std::string_view hash);
// Upstream's hash of a StatefulSet's revision: of its data, salted with `collisions`.
std::string RevisionHash(const appsv1::ControllerRevision& revision, int32_t collisions);

// Stores a NewRevision() under the first name that is free: `hash` is asked with `collisions`, which counts
// up as long as another template has the name. One that is there already with the same data is as good as a
// new one, whoever made it: a controller that was killed between writing it and its status finds it again.
using HashOf = std::function<std::string(int32_t collisions)>;
Result<appsv1::ControllerRevision> CreateRevision(const client::RestClient& api, std::string_view owner,
                                                  appsv1::ControllerRevision revision, const char* hash_label,
                                                  const HashOf& hash, int32_t& collisions);
// Gives it a new number: the template is in use again, or is the newest.
Result<RevisionPointer> RenumberRevision(const client::RestClient& api, const RevisionPointer& revision,
                                         int64_t number);

// Of `old` (revisions not in use as the newest), the oldest beyond `limit` whose hash or name nothing `live`
// carries.
RevisionPointers RevisionsToCleanUp(RevisionPointers old, int32_t limit,
                                    const std::function<bool(const appsv1::ControllerRevision&)>& live);

}  // namespace keelson::controllers
