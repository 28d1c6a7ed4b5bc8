#include "kubelet/image/credential_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "lib/api/duration.h"
#include "lib/base/text.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/names.h"

namespace keelson::kubelet {

namespace {

constexpr char kGroup[] = "credentialprovider.kubelet.k8s.io/";

std::string Text(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : std::string(); }

void Check(const CredentialProvider& provider, const std::string& where, std::vector<std::string>& problems) {
  if (provider.name.empty()) problems.push_back(where + ".name: Required value: name is required");
  if (provider.name.find('/') != std::string::npos || provider.name == "." || provider.name == ".." ||
      provider.name.find(' ') != std::string::npos) {
    problems.push_back(where + ".name: Invalid value: \"" + provider.name +
                       "\": provider name cannot contain path separators or spaces, nor be '.' or '..'");
  }
  if (provider.match_images.empty()) {
    problems.push_back(where + ".matchImages: Required value: at least 1 item in matchImages is required");
  }
  bool known = false;
  for (const char* version : {"v1", "v1beta1", "v1alpha1"}) {
    known = known || provider.api_version == std::string(kGroup) + version;
  }
  if (!known) {
    problems.push_back(where + ".apiVersion: Unsupported value: \"" + provider.api_version +
                       "\": supported values: \"" + kGroup + "v1\", \"" + kGroup + "v1alpha1\", \"" + kGroup +
                       "v1beta1\"");
  }
}

void CheckKeys(const std::vector<std::string>& keys, const std::string& where,
               std::vector<std::string>& problems) {
  std::set<std::string> seen;
  for (const std::string& key : keys) {
    if (!seen.insert(key).second) problems.push_back(where + ": Duplicate value: " + k8s::Quote(key));
    for (const std::string& problem : k8s::CheckQualifiedName(Lower(key))) {
      problems.push_back(where + ": Invalid value: " + k8s::Quote(key) + ": " + problem);
    }
  }
}

TokenAttributes ParseAttributes(const YAML::Node& node, const std::string& api_version,
                                const std::string& where, std::vector<std::string>& problems) {
  TokenAttributes out;
  out.audience = Text(node["serviceAccountTokenAudience"]);
  if (out.audience.empty()) problems.push_back(where + ".serviceAccountTokenAudience: Required value");
  const std::string cache = Text(node["cacheType"]);
  out.kept_by_token = cache == "Token";
  if (cache.empty()) {
    problems.push_back(where +
                       ".cacheType: Required value: cacheType is required to be set when tokenAttributes is "
                       "specified. Supported values are: ServiceAccount, Token");
  } else if (!out.kept_by_token && cache != "ServiceAccount") {
    problems.push_back(where + ".cacheType: Unsupported value: " + k8s::Quote(cache) +
                       ": supported values: \"ServiceAccount\", \"Token\"");
  }
  const std::string required = Text(node["requireServiceAccount"]);
  out.account_required = required == "true";
  if (required.empty()) {
    problems.push_back(where + ".requireServiceAccount: Required value");
  } else if (!out.account_required && required != "false") {
    problems.push_back(where + ".requireServiceAccount: Invalid value: " + k8s::Quote(required) +
                       ": must be true or false");
  }
  if (api_version != std::string(kGroup) + "v1") {
    problems.push_back(where + ": Forbidden: tokenAttributes is only supported for " + kGroup +
                       "v1 API version");
  }
  for (const auto& key : node["requiredServiceAccountAnnotationKeys"]) {
    out.required_annotations.push_back(Text(key));
  }
  for (const auto& key : node["optionalServiceAccountAnnotationKeys"]) {
    out.optional_annotations.push_back(Text(key));
  }
  if (required == "false" && !out.required_annotations.empty()) {
    problems.push_back(where +
                       ".requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be "
                       "false when requiredServiceAccountAnnotationKeys is set");
  }
  CheckKeys(out.required_annotations, where + ".requiredServiceAccountAnnotationKeys", problems);
  CheckKeys(out.optional_annotations, where + ".optionalServiceAccountAnnotationKeys", problems);
  std::set<std::string> both;
  for (const std::string& key : out.required_annotations) {
    if (std::count(out.optional_annotations.begin(), out.optional_annotations.end(), key)) both.insert(key);
  }
  std::string list;
  for (const std::string& key : both) list += (list.empty() ? "" : ",") + k8s::Quote(key);
  if (!both.empty()) {
    problems.push_back(where + ": Invalid value: [" + list +
                       "]: annotation keys cannot be both required and optional");
  }
  return out;
}

Result<CredentialProvider> ParseOne(const YAML::Node& node, const std::string& where, bool tokens,
                                    std::vector<std::string>& problems) {
  CredentialProvider out;
  out.name = Text(node["name"]);
  out.api_version = Text(node["apiVersion"]);
  for (const auto& pattern : node["matchImages"]) out.match_images.push_back(Text(pattern));
  for (const auto& arg : node["args"]) out.args.push_back(Text(arg));
  for (const auto& variable : node["env"]) {
    out.env.emplace_back(Text(variable["name"]), Text(variable["value"]));
  }
  if (const YAML::Node attributes = node["tokenAttributes"]) {
    if (!tokens) {
      problems.push_back(where +
                         ".tokenAttributes: Forbidden: tokenAttributes is not supported when "
                         "KubeletServiceAccountTokenForCredentialProviders feature gate is disabled");
    }
    out.token = ParseAttributes(attributes, out.api_version, where + ".tokenAttributes", problems);
  }
  if (!node["defaultCacheDuration"]) {
    problems.push_back(where + ".defaultCacheDuration: Required value: defaultCacheDuration is required");
  } else {
    auto duration = ParseCacheDuration(Text(node["defaultCacheDuration"]));
    if (!duration) return duration.error().Wrap(where + ".defaultCacheDuration");
    out.default_cache_duration = *duration;
  }
  Check(out, where, problems);
  return out;
}

}  // namespace

Result<std::chrono::milliseconds> ParseCacheDuration(const std::string& text) {
  KEELSON_ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(nanos));
}

Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml, bool tokens) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (!root.IsMap() || Text(root["kind"]) != "CredentialProviderConfig" ||
      Text(root["apiVersion"]).compare(0, 23, "kubelet.config.k8s.io/v") != 0) {
    return Error(Code::kInvalid, "not a CredentialProviderConfig of kubelet.config.k8s.io/v1");
  }
  std::vector<std::string> problems;
  std::vector<CredentialProvider> out;
  const YAML::Node providers = root["providers"];
  if (!providers || !providers.IsSequence() || providers.size() == 0) {
    problems.push_back("providers: Required value: at least 1 item in plugins is required");
  }
  for (size_t i = 0; providers && i < providers.size(); ++i) {
    KEELSON_ASSIGN_OR_RETURN(
        auto provider, ParseOne(providers[i], "providers[" + std::to_string(i) + "]", tokens, problems));
    bool twice = std::any_of(out.begin(), out.end(),
                             [&](const CredentialProvider& other) { return other.name == provider.name; });
    if (twice) problems.push_back("providers: Duplicate value: \"" + provider.name + "\"");
    out.push_back(std::move(provider));
  }
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : ", ") + problem;
  if (!all.empty()) return Error(Code::kInvalid, all);
  return out;
}

}  // namespace keelson::kubelet
