#include "controlplane/controllers/common/history.h"

#include <algorithm>
#include <tuple>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

// A cursor over JSON from our own encoder: valid and without white space.
class Sorter {
 public:
  explicit Sorter(std::string_view in) : in_(in) {}

  // Copies the next value with the members of all objects sorted by name. `extra`: further members of the
  // outermost object; their names sort first.
  void Value(std::string& out, std::string_view extra = "") {
    if (in_.front() == '{') return Object(out, extra);
    if (in_.front() == '[') return List(out);
    const size_t size = in_.front() == '"' ? StringSize() : std::min(in_.find_first_of(",]}"), in_.size());
    out += in_.substr(0, size);
    in_.remove_prefix(size);
  }

 private:
  size_t StringSize() const {
    size_t end = 1;
    while (in_[end] != '"') end += in_[end] == '\\' ? 2 : 1;
    return end + 1;
  }

  void Object(std::string& out, std::string_view extra) {
    std::vector<std::pair<std::string_view, std::string>> members;
    for (in_.remove_prefix(1); in_.front() != '}';) {
      if (in_.front() == ',') in_.remove_prefix(1);
      const size_t size = StringSize();
      auto& [name, value] = members.emplace_back(in_.substr(0, size), "");
      in_.remove_prefix(size + 1);
      Value(value);
    }
    in_.remove_prefix(1);
    std::sort(members.begin(), members.end());
    out += '{';
    out += extra;
    for (const auto& [name, value] : members) {
      if (out.back() != '{') out += ',';
      (out += name) += ':';
      out += value;
    }
    out += '}';
  }

  void List(std::string& out) {
    out += '[';
    for (in_.remove_prefix(1); in_.front() != ']';) {
      if (in_.front() == ',') {
        out += ',';
        in_.remove_prefix(1);
      }
      Value(out);
    }
    in_.remove_prefix(1);
    out += ']';
  }

  std::string_view in_;
};

// Encodes the digits of a hash with the safe alphabet of generated names (SafeEncodeString).
std::string SafeEncode(std::string_view text) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (unsigned char c : text) out += kLetters[c % kLetters.size()];
  return out;
}

std::tuple<int64_t, int64_t, int32_t, std::string_view> OrderOf(const appsv1::ControllerRevision& revision) {
  const metav1::ObjectMeta& meta = revision.metadata();
  return {revision.revision(), meta.creation_timestamp().seconds(), meta.creation_timestamp().nanos(),
          meta.name()};
}

}  // namespace

std::string TemplatePatch(const corev1::PodTemplateSpec& pod_template) {
  const std::string json = api::EncodeJson(pod_template);
  std::string out = R"({"spec":{"template":)";
  Sorter(json).Value(out, R"("$patch":"replace")");
  return out + "}}";
}

Result<corev1::PodTemplateSpec> TemplateOf(const appsv1::ControllerRevision& revision) {
  appsv1::DaemonSet part;  // any kind with a template under spec
  Result<> decoded = api::DecodeJson(revision.data().raw(), part);
  if (!decoded) return decoded.error().Wrap("revision " + revision.metadata().name());
  return std::move(*part.mutable_spec()->mutable_template_());
}

bool Restores(const appsv1::ControllerRevision& revision, const corev1::PodTemplateSpec& pod_template) {
  if (revision.data().raw() == TemplatePatch(pod_template)) return true;
  Result<corev1::PodTemplateSpec> restored = TemplateOf(revision);
  return restored && api::EncodeRaw(*restored) == api::EncodeRaw(pod_template);
}

void SortRevisions(RevisionPointers& revisions) {
  std::sort(revisions.begin(), revisions.end(),
            [](const RevisionPointer& a, const RevisionPointer& b) { return OrderOf(*a) < OrderOf(*b); });
}

int64_t MaxRevision(const RevisionPointers& revisions) {
  int64_t most = 0;
  for (const RevisionPointer& revision : revisions) most = std::max(most, revision->revision());
  return most;
}

appsv1::ControllerRevision NewRevision(const google::protobuf::Message& owner,
                                       const corev1::PodTemplateSpec& pod_template, int64_t number) {
  appsv1::ControllerRevision revision;
  metav1::ObjectMeta& meta = *revision.mutable_metadata();
  meta.set_namespace_(api::Meta(owner).namespace_());
  *meta.mutable_labels() = pod_template.metadata().labels();
  *meta.mutable_annotations() = api::Meta(owner).annotations();
  *meta.add_owner_references() = api::ControllerRef(owner);
  revision.mutable_data()->set_raw(TemplatePatch(pod_template));
  revision.set_revision(number);
  return revision;
}

std::string RevisionName(std::string_view owner, std::string_view hash) {
  constexpr size_t kMaxPrefix = 223;
  return std::string(owner.substr(0, kMaxPrefix)) + "-" + std::string(hash);
}

std::string RevisionHash(const appsv1::ControllerRevision& revision, int32_t collisions) {
  uint32_t hash = 2166136261;  // FNV-1
  auto add = [&hash](std::string_view bytes) {
    for (unsigned char c : bytes) hash = (hash * 16777619) ^ c;
  };
  add(revision.data().raw());
  add(std::to_string(collisions));
  return SafeEncode(std::to_string(hash));
}

Result<appsv1::ControllerRevision> CreateRevision(const client::RestClient& api, std::string_view owner,
                                                  appsv1::ControllerRevision revision, const char* hash_label,
                                                  const HashOf& hash, int32_t& collisions) {
  metav1::ObjectMeta& meta = *revision.mutable_metadata();
  for (;; ++collisions) {
    const std::string digest = hash(collisions);
    meta.set_name(RevisionName(owner, digest));
    (*meta.mutable_labels())[hash_label] = digest;
    Result<appsv1::ControllerRevision> created = api.Create(revision);
    if (created || !created.error().Is(Code::kAlreadyExists)) return created;
    KEELSON_ASSIGN_OR_RETURN(appsv1::ControllerRevision there,
                             api.Get<appsv1::ControllerRevision>(meta.namespace_(), meta.name()));
    if (there.data().raw() == revision.data().raw()) return there;
  }
}

Result<RevisionPointer> RenumberRevision(const client::RestClient& api, const RevisionPointer& revision,
                                         int64_t number) {
  if (revision->revision() == number) return revision;
  const metav1::ObjectMeta& meta = revision->metadata();
  KEELSON_ASSIGN_OR_RETURN(appsv1::ControllerRevision stored,
                           client::UpdateWithRetry<appsv1::ControllerRevision>(
                               api, meta.namespace_(), meta.name(), "",
                               [number](appsv1::ControllerRevision& live) -> Result<bool> {
                                 if (live.revision() == number) return false;
                                 live.set_revision(number);
                                 return true;
                               }));
  return std::make_shared<appsv1::ControllerRevision>(std::move(stored));
}

RevisionPointers RevisionsToCleanUp(RevisionPointers old, int32_t limit,
                                    const std::function<bool(const appsv1::ControllerRevision&)>& live) {
  SortRevisions(old);
  RevisionPointers out;
  for (int64_t spare = static_cast<int64_t>(old.size()) - limit; RevisionPointer & revision : old) {
    if (static_cast<int64_t>(out.size()) >= spare) break;
    if (!live(*revision)) out.push_back(std::move(revision));
  }
  return out;
}

}  // namespace keelson::controllers
