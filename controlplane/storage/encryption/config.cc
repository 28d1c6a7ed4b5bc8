#include "controlplane/storage/encryption/config.h"

#include <sodium.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/codec/text_forms.h"
#include "lib/component/document_reader.h"

namespace keelson::storage {
namespace {

using component::DocumentReader;
using Type = EncryptionProvider::Type;

void Invalid(DocumentReader& in, std::string_view field, std::string_view value, std::string_view what) {
  in.Problem(field, fmt::format("Invalid value: \"{}\": {}", value, what));
}

void Required(DocumentReader& in, std::string_view field, std::string_view what) {
  in.Problem(field, fmt::format("Required value: {}", what));
}

std::string ReadText(DocumentReader& in, std::string_view field) {
  std::string out;
  in.Read(field, out);
  return out;
}

// Whether the field is a list with items; else that is a problem. What is no list, List() reports.
bool RequireItems(DocumentReader& in, std::string_view field, std::string_view what) {
  const boost::json::value* value = in.Raw(field);
  const bool some = value && (!value->is_array() || !value->get_array().empty());
  if (!some) Required(in, field, what);
  return some;
}

std::string DecodeSecret(const std::string& text, bool& good) {
  std::string out(text.size(), '\0');
  size_t size = 0;
  good = sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(),
                           "\r\n", &size, nullptr, sodium_base64_VARIANT_ORIGINAL) == 0;
  out.resize(size);
  return out;
}

void ReadKeys(DocumentReader& in, const std::vector<size_t>& sizes, EncryptionProvider& provider) {
  if (!RequireItems(in, "keys", "at least one keys is required")) return;
  in.List("keys", [&](DocumentReader& item) {
    EncryptionProvider::Key key{ReadText(item, "name"), ""};
    const std::string secret = ReadText(item, "secret");
    bool good = false;
    key.secret = DecodeSecret(secret, good);
    if (key.name.empty()) Required(item, "name", "name is a mandatory field for a key");
    if (secret.empty()) {
      Required(item, "secret", "secret is a mandatory field for a key");
    } else if (!good) {
      Invalid(item, "secret", "REDACTED", "secrets must be base64 encoded");
    } else if (std::find(sizes.begin(), sizes.end(), key.secret.size()) == sizes.end()) {
      Invalid(item, "secret", "REDACTED",
              fmt::format("secret is not of the expected length, got {}, expected one of [{}]",
                          key.secret.size(), fmt::join(sizes, " ")));
    }
    provider.keys.push_back(std::move(key));
  });
}

void CheckKmsVersion(DocumentReader& in, const std::string& version) {
  if (version.empty() || version == "v1") {
    Invalid(in, "apiVersion", "v1", "unsupported apiVersion v1 for KMS provider, only v2 is supported");
  } else if (version != "v2") {
    Invalid(in, "apiVersion", version,
            fmt::format("unsupported apiVersion {} for KMS provider, only v1 and v2 are supported", version));
  }
}

void CheckKmsName(DocumentReader& in, const std::string& name, std::set<std::string>& names) {
  if (name.empty()) {
    Required(in, "name", "name is a mandatory field for a provider");
  } else if (name.find(':') != std::string::npos) {
    Invalid(in, "name", name, fmt::format("invalid KMS provider name {}, must not contain ':'", name));
  } else if (!names.insert(name).second) {
    Invalid(in, "name", name, fmt::format("duplicate KMS provider name {}, names must be unique", name));
  }
}

void ReadKms(DocumentReader& in, std::set<std::string>& names, EncryptionProvider& provider) {
  const std::string version = ReadText(in, "apiVersion"), timeout = ReadText(in, "timeout");
  provider.name = ReadText(in, "name");
  provider.endpoint = ReadText(in, "endpoint");
  CheckKmsVersion(in, version);
  CheckKmsName(in, provider.name, names);
  if (in.Has("cachesize")) {
    int32_t size = 0;
    in.Read("cachesize", size);
    if (version == "v2") Invalid(in, "cachesize", std::to_string(size), "cachesize is not supported in v2");
  }
  if (!timeout.empty()) {
    Result<int64_t> parsed = api::ParseGoDuration(timeout);
    if (!parsed || *parsed <= 0) {
      Invalid(in, "timeout", timeout, "timeout should be a positive value");
    } else {
      provider.timeout = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(*parsed));
    }
  }
  const std::string& endpoint = provider.endpoint;
  if (endpoint.empty()) {
    Required(in, "endpoint", "endpoint is a mandatory field for a provider");
  } else if (endpoint.rfind("unix://", 0) != 0) {
    Invalid(in, "endpoint", endpoint,
            fmt::format("unsupported scheme \"{}\" for KMS provider, only unix is supported",
                        endpoint.substr(0, endpoint.find(':'))));
  }
}

void ReadProvider(DocumentReader& in, std::set<std::string>& kms_names, EncryptionRule& rule) {
  static const std::vector<size_t> kAesSizes = {16, 24, 32}, kSecretboxSizes = {32};
  constexpr std::pair<std::string_view, Type> kProviders[] = {{"aescbc", Type::kAesCbc},
                                                              {"aesgcm", Type::kAesGcm},
                                                              {"secretbox", Type::kSecretbox},
                                                              {"identity", Type::kIdentity},
                                                              {"kms", Type::kKms}};
  const auto given = std::count_if(std::begin(kProviders), std::end(kProviders),
                                   [&](const auto& one) { return in.Has(one.first); });
  if (given == 0) {
    return Invalid(in, "", "{}",
                   "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, "
                   "Secretbox, Identity");
  }
  if (given > 1) {
    return Invalid(in, "", "REDACTED",
                   "more than one provider specified in a single element, should split into "
                   "different list elements");
  }
  for (const auto& [name, type] : kProviders) {
    in.Object(name, [&, type = type](DocumentReader& body) {
      EncryptionProvider provider;
      provider.type = type;
      if (type == Type::kKms) {
        ReadKms(body, kms_names, provider);
      } else if (type != Type::kIdentity) {
        ReadKeys(body, type == Type::kSecretbox ? kSecretboxSizes : kAesSizes, provider);
      }
      rule.providers.push_back(std::move(provider));
    });
  }
}

bool IsInGroup(std::string_view resource, std::string_view group) {
  size_t dot = resource.find('.');
  return dot != std::string_view::npos && resource.substr(dot + 1) == group;
}

void CheckResource(DocumentReader& in, const std::string& field, const std::string& resource) {
  auto invalid = [&](std::string_view why) { Invalid(in, field, resource, why); };
  if (resource.empty()) return invalid("resource name should not be empty");
  if (resource == "*") {
    return invalid(
        "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources");
  }
  if (std::any_of(resource.begin(), resource.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return invalid("resource name should not contain capital letters");
  }
  if (resource.front() == '*' && resource != "*.*" && resource.size() > 2 &&
      resource.find('*', 1) != std::string::npos) {
    return invalid("wildcards stand for whole resources or groups");
  }
  if (resource != "*.*" && resource.size() > 2 && resource.compare(resource.size() - 2, 2, ".*") == 0) {
    return invalid("encrypting the same resource across groups is not supported");
  }
  if (IsInGroup(resource, "extensions")) {
    return invalid("'extensions' group has been removed and cannot be used for encryption");
  }
  if (IsInGroup(resource, "events.k8s.io")) {
    return invalid(
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in "
        "the config file");
  }
  for (const char* none : {"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}) {
    if (resource == none) return invalid("resources which do not have REST API/s cannot be encrypted");
  }
}

void CheckOverlap(DocumentReader& in, const std::vector<std::string>& resources) {
  auto has = [&](std::string_view one) {
    return std::find(resources.begin(), resources.end(), one) != resources.end();
  };
  for (const std::string& resource : resources) {
    if (std::count(resources.begin(), resources.end(), resource) > 1) {
      return Invalid(in, "resources", fmt::format("{}", fmt::join(resources, ",")),
                     "the same resource cannot be specified multiple times");
    }
    size_t dot = resource.find('.');
    std::string group_wide = "*." + (dot == std::string::npos ? "" : resource.substr(dot + 1));
    bool masked = (has("*.*") && resource != "*.*") || (resource != group_wide && has(group_wide));
    if (masked) {
      return Invalid(in, "resources", fmt::format("{}", fmt::join(resources, ",")),
                     "using overlapping resources such as 'secrets' and '*.' in the same resource "
                     "list is not allowed as they will be masked");
    }
  }
}

void ReadRule(DocumentReader& in, std::set<std::string>& kms_names, EncryptionConfig& config) {
  EncryptionRule rule;
  if (RequireItems(in, "resources", "at least one resource is required")) {
    in.Read("resources", rule.resources);
    for (size_t i = 0; i < rule.resources.size(); ++i) {
      CheckResource(in, fmt::format("resources[{}]", i), rule.resources[i]);
    }
    CheckOverlap(in, rule.resources);
  }
  if (RequireItems(in, "providers", "at least one provider is required")) {
    in.List("providers", [&](DocumentReader& item) { ReadProvider(item, kms_names, rule); });
  }
  config.rules.push_back(std::move(rule));
}

// The text of a reader's error may quote the file, and with it a secret: only the line is kept.
Error Unreadable(const Error& error) {
  constexpr std::string_view kLine = "line ";
  const std::string_view text = error.message();
  const size_t line = text.find(kLine);
  if (line == std::string_view::npos) return Error(Code::kInvalid, "yaml: cannot be read");
  const std::string_view rest = text.substr(line + kLine.size());
  const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
  return Error(Code::kInvalid, fmt::format("yaml: line {}: cannot be read", number));
}

}  // namespace

Result<EncryptionConfig> ParseEncryptionConfig(std::string_view text) {
  component::DocumentProblems problems;
  problems.words = component::TypeWords::kMustBe;
  Result<boost::json::object> document = component::ParseDocument(text, problems);
  if (!document) return Unreadable(document.error());
  EncryptionConfig config;
  {
    DocumentReader in(*document, problems);
    const std::string kind = ReadText(in, "kind"), version = ReadText(in, "apiVersion");
    if (kind != "EncryptionConfiguration" || (version != "apiserver.config.k8s.io/v1" && version != "v1")) {
      return Error(Code::kInvalid,
                   fmt::format("no kind \"{}\" is registered for version \"{}\"", kind, version));
    }
    std::set<std::string> kms_names;
    if (RequireItems(in, "resources", "at least one resources is required")) {
      in.List("resources", [&](DocumentReader& item) { ReadRule(item, kms_names, config); });
    }
  }
  KEELSON_RETURN_IF_ERROR(component::RefuseAggregate(problems));
  return config;
}

}  // namespace keelson::storage
