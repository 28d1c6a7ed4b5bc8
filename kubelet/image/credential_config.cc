#include "kubelet/image/credential_config.h"

#include <algorithm>
#include <set>

#include "lib/api/duration.h"
#include "lib/base/text.h"
#include "lib/component/document_reader.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/names.h"

namespace keelson::kubelet {

namespace {

using component::DocumentReader;

constexpr char kGroup[] = "credentialprovider.kubelet.k8s.io/";

std::string ReadText(DocumentReader& in, std::string_view field) {
  std::string out;
  in.Read(field, out);
  return out;
}

void Check(DocumentReader& in, const CredentialProvider& provider) {
  const std::string& name = provider.name;
  if (name.empty()) in.Problem("name", "Required value: name is required");
  if (name.find('/') != std::string::npos || name == "." || name == ".." ||
      name.find(' ') != std::string::npos) {
    in.Problem("name", "Invalid value: \"" + name +
                           "\": provider name cannot contain path separators or spaces, nor be '.' or '..'");
  }
  if (provider.match_images.empty()) {
    in.Problem("matchImages", "Required value: at least 1 item in matchImages is required");
  }
  bool known = false;
  for (const char* version : {"v1", "v1beta1", "v1alpha1"}) {
    known = known || provider.api_version == std::string(kGroup) + version;
  }
  if (!known) {
    in.Problem("apiVersion", "Unsupported value: \"" + provider.api_version + "\": supported values: \"" +
                                 kGroup + "v1\", \"" + kGroup + "v1alpha1\", \"" + kGroup + "v1beta1\"");
  }
}

std::vector<std::string> ReadKeys(DocumentReader& in, std::string_view field) {
  std::vector<std::string> keys;
  in.Read(field, keys);
  return keys;
}

void CheckKeys(DocumentReader& in, std::string_view field, const std::vector<std::string>& keys) {
  std::set<std::string> seen;
  for (const std::string& key : keys) {
    if (!seen.insert(key).second) in.Problem(field, "Duplicate value: " + k8s::Quote(key));
    for (const std::string& problem : k8s::CheckQualifiedName(Lower(key))) {
      in.Problem(field, "Invalid value: " + k8s::Quote(key) + ": " + problem);
    }
  }
}

void ReadCacheType(DocumentReader& in, TokenAttributes& out) {
  const std::string cache = ReadText(in, "cacheType");
  out.kept_by_token = cache == "Token";
  if (cache.empty()) {
    in.Problem("cacheType",
               "Required value: cacheType is required to be set when tokenAttributes is "
               "specified. Supported values are: ServiceAccount, Token");
  } else if (!out.kept_by_token && cache != "ServiceAccount") {
    in.Problem("cacheType", "Unsupported value: " + k8s::Quote(cache) +
                                ": supported values: \"ServiceAccount\", \"Token\"");
  }
}

TokenAttributes ReadAttributes(DocumentReader& in, const std::string& api_version) {
  constexpr char kRequired[] = "requiredServiceAccountAnnotationKeys",
                 kOptional[] = "optionalServiceAccountAnnotationKeys";
  TokenAttributes out;
  out.audience = ReadText(in, "serviceAccountTokenAudience");
  if (out.audience.empty()) in.Problem("serviceAccountTokenAudience", "Required value");
  ReadCacheType(in, out);
  const bool says = in.Has("requireServiceAccount");
  in.Read("requireServiceAccount", out.account_required);
  if (!says) in.Problem("requireServiceAccount", "Required value");
  if (api_version != std::string(kGroup) + "v1") {
    in.Problem("",
               std::string("Forbidden: tokenAttributes is only supported for ") + kGroup + "v1 API version");
  }
  out.required_annotations = ReadKeys(in, kRequired);
  out.optional_annotations = ReadKeys(in, kOptional);
  if (says && !out.account_required && !out.required_annotations.empty()) {
    in.Problem(kRequired,
               "Forbidden: requireServiceAccount cannot be "
               "false when requiredServiceAccountAnnotationKeys is set");
  }
  CheckKeys(in, kRequired, out.required_annotations);
  CheckKeys(in, kOptional, out.optional_annotations);
  std::set<std::string> both;
  for (const std::string& key : out.required_annotations) {
    if (std::count(out.optional_annotations.begin(), out.optional_annotations.end(), key)) both.insert(key);
  }
  std::string list;
  for (const std::string& key : both) list += (list.empty() ? "" : ",") + k8s::Quote(key);
  if (!both.empty()) {
    in.Problem("", "Invalid value: [" + list + "]: annotation keys cannot be both required and optional");
  }
  return out;
}

CredentialProvider ReadProvider(DocumentReader& in, bool tokens) {
  CredentialProvider out;
  out.name = ReadText(in, "name");
  out.api_version = ReadText(in, "apiVersion");
  in.Read("matchImages", out.match_images);
  in.Read("args", out.args);
  in.List("env", [&](DocumentReader& variable) {
    std::string name = ReadText(variable, "name");
    out.env.emplace_back(std::move(name), ReadText(variable, "value"));
  });
  in.Object("tokenAttributes", [&](DocumentReader& attributes) {
    if (!tokens) {
      attributes.Problem("",
                         "Forbidden: tokenAttributes is not supported when "
                         "KubeletServiceAccountTokenForCredentialProviders feature gate is disabled");
    }
    out.token = ReadAttributes(attributes, out.api_version);
  });
  if (!in.Has("defaultCacheDuration")) {
    in.Problem("defaultCacheDuration", "Required value: defaultCacheDuration is required");
  }
  in.Read("defaultCacheDuration", out.default_cache_duration);
  Check(in, out);
  return out;
}

}  // namespace

Result<std::chrono::milliseconds> ParseCacheDuration(const std::string& text) {
  KEELSON_ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(nanos));
}

Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml, bool tokens) {
  component::DocumentProblems problems;
  problems.words = component::TypeWords::kMustBe;
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object document, component::ParseDocument(yaml, problems));
  KEELSON_RETURN_IF_ERROR(
      component::CheckType(document, {"CredentialProviderConfig", {"kubelet.config.k8s.io/"}}));
  std::vector<CredentialProvider> out;
  {
    DocumentReader in(document, problems);
    in.Ignore({"kind", "apiVersion"});
    in.List("providers", [&](DocumentReader& item) {
      CredentialProvider provider = ReadProvider(item, tokens);
      const bool twice = std::any_of(out.begin(), out.end(), [&](const CredentialProvider& other) {
        return other.name == provider.name;
      });
      if (twice) in.Problem("providers", "Duplicate value: \"" + provider.name + "\"");
      out.push_back(std::move(provider));
    });
    if (out.empty()) in.Problem("providers", "Required value: at least 1 item in plugins is required");
  }
  if (!problems.empty()) return Error(Code::kInvalid, component::Join(component::Messages(problems)));
  return out;
}

}  // namespace keelson::kubelet
