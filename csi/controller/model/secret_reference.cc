#include "csi/controller/model/secret_reference.h"

#include <array>
#include <set>

#include <fmt/format.h>

#include "lib/api/names.h"
#include "lib/base/json_quote.h"

namespace keelson::csi::controller {
namespace {

struct Keys {
  const char* what;
  const char *name, *ns;
  const char *old_name, *old_ns;  // still accepted; null: none
};

// In the order of SecretUse; the last one is the default.
constexpr std::array<Keys, 7> kKeys{{
    {"Provisioner", "csi.storage.k8s.io/provisioner-secret-name",
     "csi.storage.k8s.io/provisioner-secret-namespace", "csiProvisionerSecretName",
     "csiProvisionerSecretNamespace"},
    {"ControllerPublish", "csi.storage.k8s.io/controller-publish-secret-name",
     "csi.storage.k8s.io/controller-publish-secret-namespace", "csiControllerPublishSecretName",
     "csiControllerPublishSecretNamespace"},
    {"NodeStage", "csi.storage.k8s.io/node-stage-secret-name",
     "csi.storage.k8s.io/node-stage-secret-namespace", "csiNodeStageSecretName",
     "csiNodeStageSecretNamespace"},
    {"NodePublish", "csi.storage.k8s.io/node-publish-secret-name",
     "csi.storage.k8s.io/node-publish-secret-namespace", "csiNodePublishSecretName",
     "csiNodePublishSecretNamespace"},
    {"ControllerExpand", "csi.storage.k8s.io/controller-expand-secret-name",
     "csi.storage.k8s.io/controller-expand-secret-namespace", nullptr, nullptr},
    {"NodeExpand", "csi.storage.k8s.io/node-expand-secret-name",
     "csi.storage.k8s.io/node-expand-secret-namespace", nullptr, nullptr},
    {"Default", "csi.storage.k8s.io/secret-name", "csi.storage.k8s.io/secret-namespace", nullptr, nullptr},
}};

// In the order of SnapshotSecretUse.
constexpr std::array<Keys, 2> kSnapshotKeys{{
    {"Snapshotter", "csi.storage.k8s.io/snapshotter-secret-name",
     "csi.storage.k8s.io/snapshotter-secret-namespace", nullptr, nullptr},
    {"SnapshotterList", "csi.storage.k8s.io/snapshotter-list-secret-name",
     "csi.storage.k8s.io/snapshotter-list-secret-namespace", nullptr, nullptr},
}};

constexpr std::string_view kPrefix = "csi.storage.k8s.io/";

using Values = std::map<std::string, std::string>;

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

struct Templates {
  std::string name, ns;
  bool empty() const { return name.empty() && ns.empty(); }
};

int Take(const Strings& parameters, const char* key, std::string& out) {
  if (!key) return 0;
  const auto found = parameters.find(key);
  if (found == parameters.end()) return 0;
  out = found->second;
  return 1;
}

Result<Templates> FindTemplates(const Keys& keys, const Strings& parameters) {
  Templates out;
  const int names = Take(parameters, keys.old_name, out.name) + Take(parameters, keys.name, out.name);
  const int namespaces = Take(parameters, keys.old_ns, out.ns) + Take(parameters, keys.ns, out.ns);
  if (names > 1 || namespaces > 1) {
    return Wrong(fmt::format(
        R"({} secrets specified in parameters with both "csi" and "csi.storage.k8s.io/" keys)", keys.what));
  }
  if (names != namespaces) {
    return Wrong(
        fmt::format("either name and namespace for {} secrets specified, Both must be specified", keys.what));
  }
  if (names == 1 && (out.name.empty() || out.ns.empty())) {
    return Wrong(fmt::format(
        "{} secrets specified in parameters but value of either namespace or name is empty", keys.what));
  }
  return out;
}

// Replaces ${token} and $token as Go's os.Expand does for these tokens.
Result<std::string> Expand(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string out;
  std::set<std::string> missing;
  auto put = [&](const std::string& token) {
    const auto found = values.find(token);
    if (found == values.end()) {
      missing.insert(token);
    } else {
      out += found->second;
    }
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i++];
      continue;
    }
    if (text[i + 1] == '{') {
      const size_t end = text.find('}', i + 2);
      if (end == std::string::npos) return Wrong("error resolving value " + JsonQuoted(text) + ": missing }");
      put(text.substr(i + 2, end - i - 2));
      i = end + 1;
    } else {
      size_t end = i + 1;
      while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
      put(text.substr(i + 1, end - i - 1));
      i = end;
    }
  }
  if (missing.empty()) return out;
  std::string tokens;
  for (const std::string& token : missing) tokens += (tokens.empty() ? "" : " ") + JsonQuoted(token);
  return Wrong(fmt::format("error resolving value {}: invalid tokens: [{}]", JsonQuoted(text), tokens));
}

Result<> CheckResolved(const std::string& from, const std::string& to, const api::Problems& problems,
                       const char* kind) {
  if (problems.empty()) return {};
  if (from == to) return Wrong(fmt::format("{} is not a valid {} name", JsonQuoted(from), kind));
  return Wrong(
      fmt::format("{} resolved to {} which is not a valid {} name", JsonQuoted(from), JsonQuoted(to), kind));
}

Result<std::optional<corev1::SecretReference>> Resolve(const Templates& templates,
                                                       const Values& for_namespace, const Values& for_name) {
  KEELSON_ASSIGN_OR_RETURN(const std::string ns, Expand(templates.ns, for_namespace));
  KEELSON_RETURN_IF_ERROR(CheckResolved(templates.ns, ns, api::CheckDns1123Label(ns), "namespace"));
  KEELSON_ASSIGN_OR_RETURN(const std::string name, Expand(templates.name, for_name));
  KEELSON_RETURN_IF_ERROR(CheckResolved(templates.name, name, api::CheckDns1123Subdomain(name), "secret"));
  corev1::SecretReference reference;
  reference.set_name(name);
  reference.set_namespace_(ns);
  return std::optional(reference);
}

}  // namespace

Result<std::optional<corev1::SecretReference>> ResolveSecret(SecretUse use, const Strings& parameters,
                                                             const SecretSubject& subject) {
  auto found = FindTemplates(kKeys[static_cast<size_t>(use)], parameters);
  if (!found) return found.error().Wrap("failed to get name and namespace template from params");
  if (found->empty()) {
    found = FindTemplates(kKeys.back(), parameters);
    if (!found) return found.error().Wrap("failed to get default name and namespace template from params");
    if (found->empty()) return std::optional<corev1::SecretReference>();
  }
  const Values for_namespace{{"pv.name", subject.volume_name}, {"pvc.namespace", subject.claim_namespace}};
  Values for_name = for_namespace;
  for_name["pvc.name"] = subject.claim_name;
  for (const auto& [key, value] : subject.claim_annotations) {
    for_name["pvc.annotations['" + key + "']"] = value;
  }
  return Resolve(*found, for_namespace, for_name);
}

Result<std::optional<corev1::SecretReference>> ResolveSnapshotSecret(SnapshotSecretUse use,
                                                                     const Strings& parameters,
                                                                     const SnapshotSecretSubject& subject) {
  const auto found = FindTemplates(kSnapshotKeys[static_cast<size_t>(use)], parameters);
  if (!found) return found.error().Wrap("failed to get name and namespace template from params");
  if (found->empty()) return std::optional<corev1::SecretReference>();
  Values for_namespace{{"volumesnapshotcontent.name", subject.content_name}};
  if (!subject.snapshot_name.empty()) for_namespace["volumesnapshot.namespace"] = subject.snapshot_namespace;
  Values for_name = for_namespace;
  if (!subject.snapshot_name.empty()) for_name["volumesnapshot.name"] = subject.snapshot_name;
  return Resolve(*found, for_namespace, for_name);
}

Result<Strings> SnapshotParameters(const Strings& parameters) {
  Strings out;
  for (const auto& [key, value] : parameters) {
    if (key.compare(0, kPrefix.size(), kPrefix) != 0) {
      out[key] = value;
      continue;
    }
    bool known = false;
    for (const Keys& keys : kSnapshotKeys) known |= key == keys.name || key == keys.ns;
    if (!known) {
      return Wrong(
          fmt::format("found unknown parameter key {} with reserved namespace {}", JsonQuoted(key), kPrefix));
    }
  }
  return out;
}

bool IsSecretParameter(const std::string& key) {
  for (const Keys& keys : kKeys) {
    if (key == keys.name || key == keys.ns) return true;
  }
  return false;
}

}  // namespace keelson::csi::controller
