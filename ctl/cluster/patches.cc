#include "ctl/cluster/patches.h"

#include <algorithm>

#include "lib/api/patch/patch.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/component/document.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kKubelet[] = "kubeletconfiguration";
// As kubeadm lists them.
constexpr std::string_view kTargets[] = {"etcd",           "kube-apiserver", "kube-controller-manager",
                                         "kube-scheduler", kKubelet,         "corednsdeployment"};
constexpr std::pair<std::string_view, PatchKind> kKinds[] = {
    {"json", PatchKind::kJson}, {"merge", PatchKind::kMerge}, {"strategic", PatchKind::kStrategic}};

// KubeletConfiguration has no merge keys: its lists are replaced.
class KubeletView : public api::TypeView {
 public:
  bool Find(std::string_view, Field& field) const override {
    field.type = this;
    return true;
  }
};

std::string_view MediaType(PatchKind kind) {
  switch (kind) {
    case PatchKind::kJson:
      return "application/json-patch+json";
    case PatchKind::kMerge:
      return "application/merge-patch+json";
    case PatchKind::kStrategic:
      break;
  }
  return "application/strategic-merge-patch+json";
}

// The documents of a file; lines "---" stand between them.
Result<std::vector<json::value>> Documents(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::string_view line : Split(text, '\n')) {
    if (line.starts_with("---") && Trim(line.substr(3)).empty()) {
      parts.emplace_back();
    } else {
      parts.back().append(line).append("\n");
    }
  }
  std::vector<json::value> out;
  for (const std::string& part : parts) {
    if (Trim(part).empty()) continue;
    component::DocumentProblems problems;
    // A JSON patch is a list, which no document is: it is read as the value of one field.
    std::string inner = "patch:\n";
    for (std::string_view line : Split(part, '\n')) inner.append("  ").append(line).append("\n");
    KEELSON_ASSIGN_OR_RETURN(json::object read, component::ParseDocument(inner, problems));
    if (!problems.strict.empty()) return Error(Code::kInvalid, component::Join(problems.strict));
    if (!read["patch"].is_null()) out.push_back(std::move(read["patch"]));
  }
  return out;
}

Result<json::value> ApplyOne(json::value document, const KubeletPatch& patch) {
  switch (patch.kind) {
    case PatchKind::kJson:
      return api::ApplyJsonPatch(std::move(document), patch.patch);
    case PatchKind::kMerge:
      return api::ApplyMergePatch(std::move(document), patch.patch);
    case PatchKind::kStrategic:
      break;
  }
  return api::ApplyStrategicMergePatch(std::move(document), patch.patch, KubeletView());
}

json::value FieldOf(const json::object& document, std::string_view field) {
  const json::value* found = document.if_contains(field);
  return found ? *found : json::value();
}

}  // namespace

Result<PatchName> ParsePatchName(std::string_view file) {
  PatchName out;
  const size_t dot = file.rfind('.');
  const std::string_view extension = dot == file.npos ? "" : file.substr(dot + 1);
  if (dot == 0 || (extension != "json" && extension != "yaml")) {
    out.why = "the file extension must be one of [json yaml]";
    return out;
  }
  const auto* target = std::find_if(std::begin(kTargets), std::end(kTargets),
                                    [&](std::string_view name) { return file.starts_with(name); });
  if (target == std::end(kTargets)) {
    out.why = "unknown target, must be one of [" + Join(kTargets, " ") + "]";
    return out;
  }
  out.target = *target;
  const std::string_view rest = file.substr(target->size());
  const size_t end = rest.find_first_of(".+");
  if (end == rest.npos || rest[end] != '+') return out;
  for (const auto& [name, kind] : kKinds) {
    if (!rest.substr(end + 1).starts_with(name)) continue;
    out.kind = kind;
    return out;
  }
  return Error(Code::kInvalid, "patch file \"" + std::string(file) +
                                   "\": unknown or missing patch type after '+', must be one of [json merge "
                                   "strategic]");
}

Result<KubeletPatches> ReadPatches(const std::string& directory, std::ostream& out, std::ostream& err) {
  KubeletPatches patches;
  if (directory.empty()) return patches;
  out << "[patches] Reading patches from path \"" << directory << "\"\n";
  Result<std::vector<std::string>> names = ListDir(directory);
  if (!names) {
    return names.error().Wrap("could not list patch files for path \"" + directory + "\"");
  }
  std::sort(names->begin(), names->end());
  std::vector<std::string> found, ignored;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    if (ListDir(path)) continue;  // a directory
    KEELSON_ASSIGN_OR_RETURN(const PatchName parsed, ParsePatchName(name));
    std::string why = parsed.why;
    if (why.empty() && parsed.target != kKubelet) {
      why = "there is no static pod or Deployment " + parsed.target +
            " to patch: the control plane is a unit of systemd, and its flags are extraArgs of the "
            "ClusterConfiguration";
    }
    if (!why.empty()) {
      err << "[patches] WARNING: Ignoring file \"" << name << "\": " << why << "\n";
      ignored.push_back(name);
      continue;
    }
    KEELSON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    auto documents = Documents(text);
    if (!documents) return documents.error().Wrap("patch file \"" + path + "\"");
    for (json::value& patch : *documents) patches.push_back({name, parsed.kind, std::move(patch)});
    found.push_back(name);
  }
  if (!found.empty()) {
    out << "[patches] Found the following patch files: [" << Join(found, " ") << "]\n";
  }
  if (!ignored.empty()) out << "[patches] Ignored the following files: [" << Join(ignored, " ") << "]\n";
  return patches;
}

Result<json::object> ApplyPatches(json::object kubelet, const KubeletPatches& patches) {
  for (const KubeletPatch& patch : patches) {
    const json::value version = FieldOf(kubelet, "apiVersion"), kind = FieldOf(kubelet, "kind");
    const std::string where = "could not apply the patch of type \"" + std::string(MediaType(patch.kind)) +
                              "\" in \"" + patch.file + "\" to target \"" + kKubelet + "\"";
    Result<json::value> patched = ApplyOne(std::move(kubelet), patch);
    if (!patched) return Error(Code::kInvalid, where + ": " + patched.error().message());
    const bool same = patched->is_object() && FieldOf(patched->get_object(), "apiVersion") == version &&
                      FieldOf(patched->get_object(), "kind") == kind;
    if (!same) return Error(Code::kInvalid, where + ": the result is no KubeletConfiguration");
    kubelet = std::move(patched->get_object());
  }
  return kubelet;
}

}  // namespace keelson::ctl
