#include "controlplane/storage/encryption_config.h"

#include <sodium.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/codec/text_forms.h"

namespace keelson::storage {
namespace {

using Type = EncryptionProvider::Type;

// What is wrong with a file, by the fields' paths.
class Problems {
 public:
  void Add(const std::string& path, std::string_view what) {
    all_.push_back(fmt::format("{}: {}", path, what));
  }
  void Invalid(const std::string& path, std::string_view value, std::string_view what) {
    Add(path, fmt::format("Invalid value: \"{}\": {}", value, what));
  }
  void Required(const std::string& path, std::string_view what) {
    Add(path, fmt::format("Required value: {}", what));
  }
  void Unknown(const std::string& path) {
    all_.push_back(fmt::format("strict decoding error: unknown field \"{}\"", path));
  }
  bool empty() const { return all_.empty(); }
  Error ToError() const {
    std::string text = all_.size() == 1 ? all_[0] : fmt::format("[{}]", fmt::join(all_, ", "));
    return Error(Code::kInvalid, std::move(text));
  }

 private:
  std::vector<std::string> all_;
};

std::string Text(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : ""; }

void OnlyFields(const YAML::Node& node, const std::string& path,
                std::initializer_list<std::string_view> known, Problems& problems) {
  if (!node.IsMap()) {
    if (!node.IsNull()) problems.Add(path, "must be an object");
    return;
  }
  for (const auto& field : node) {
    std::string name = Text(field.first);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems.Unknown(path.empty() ? name : path + "." + name);
    }
  }
}

std::string DecodeSecret(const std::string& text, bool& good) {
  std::string out(text.size(), '\0');
  size_t size = 0;
  good = sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(),
                           "\r\n", &size, nullptr, sodium_base64_VARIANT_ORIGINAL) == 0;
  out.resize(size);
  return out;
}

void ReadKeys(const YAML::Node& node, const std::string& path, const std::vector<size_t>& sizes,
              EncryptionProvider& provider, Problems& problems) {
  OnlyFields(node, path, {"keys"}, problems);
  const YAML::Node keys = node.IsMap() ? node["keys"] : YAML::Node();
  if (!keys || !keys.IsSequence() || keys.size() == 0) {
    return problems.Required(path + ".keys", "at least one keys is required");
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string at = fmt::format("{}.keys[{}]", path, i);
    OnlyFields(keys[i], at, {"name", "secret"}, problems);
    if (!keys[i].IsMap()) continue;
    EncryptionProvider::Key key{Text(keys[i]["name"]), ""};
    const std::string secret = Text(keys[i]["secret"]);
    bool good = false;
    key.secret = DecodeSecret(secret, good);
    if (key.name.empty()) problems.Required(at + ".name", "name is a mandatory field for a key");
    if (secret.empty()) {
      problems.Required(at + ".secret", "secret is a mandatory field for a key");
    } else if (!good) {
      problems.Invalid(at + ".secret", "REDACTED", "secrets must be base64 encoded");
    } else if (std::find(sizes.begin(), sizes.end(), key.secret.size()) == sizes.end()) {
      problems.Invalid(at + ".secret", "REDACTED",
                       fmt::format("secret is not of the expected length, got {}, expected one of [{}]",
                                   key.secret.size(), fmt::join(sizes, " ")));
    }
    provider.keys.push_back(std::move(key));
  }
}

void ReadKms(const YAML::Node& node, const std::string& path, std::set<std::string>& names,
             EncryptionProvider& provider, Problems& problems) {
  OnlyFields(node, path, {"apiVersion", "name", "cachesize", "endpoint", "timeout"}, problems);
  if (!node.IsMap()) return problems.Required(path + ".name", "name is a mandatory field for a provider");
  const std::string version = Text(node["apiVersion"]), timeout = Text(node["timeout"]);
  provider.name = Text(node["name"]);
  provider.endpoint = Text(node["endpoint"]);
  if (version.empty() || version == "v1") {
    problems.Invalid(path + ".apiVersion", version.empty() ? "v1" : version,
                     "unsupported apiVersion v1 for KMS provider, only v2 is supported");
  } else if (version != "v2") {
    problems.Invalid(
        path + ".apiVersion", version,
        fmt::format("unsupported apiVersion {} for KMS provider, only v1 and v2 are supported", version));
  }
  if (provider.name.empty()) {
    problems.Required(path + ".name", "name is a mandatory field for a provider");
  } else if (provider.name.find(':') != std::string::npos) {
    problems.Invalid(path + ".name", provider.name,
                     fmt::format("invalid KMS provider name {}, must not contain ':'", provider.name));
  } else if (!names.insert(provider.name).second) {
    problems.Invalid(path + ".name", provider.name,
                     fmt::format("duplicate KMS provider name {}, names must be unique", provider.name));
  }
  if (version == "v2" && node["cachesize"]) {
    problems.Invalid(path + ".cachesize", Text(node["cachesize"]), "cachesize is not supported in v2");
  }
  if (!timeout.empty()) {
    Result<int64_t> parsed = api::ParseGoDuration(timeout);
    if (!parsed || *parsed <= 0) {
      problems.Invalid(path + ".timeout", timeout, "timeout should be a positive value");
    } else {
      provider.timeout = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(*parsed));
    }
  }
  const std::string& endpoint = provider.endpoint;
  if (endpoint.empty()) {
    problems.Required(path + ".endpoint", "endpoint is a mandatory field for a provider");
  } else if (endpoint.rfind("unix://", 0) != 0) {
    problems.Invalid(path + ".endpoint", endpoint,
                     fmt::format("unsupported scheme \"{}\" for KMS provider, only unix is supported",
                                 endpoint.substr(0, endpoint.find(':'))));
  }
}

void ReadProvider(const YAML::Node& node, const std::string& path, std::set<std::string>& kms_names,
                  EncryptionRule& rule, Problems& problems) {
  static const std::vector<size_t> kAesSizes = {16, 24, 32}, kSecretboxSizes = {32};
  OnlyFields(node, path, {"aescbc", "aesgcm", "secretbox", "identity", "kms"}, problems);
  if (!node.IsMap() || node.size() == 0) {
    return problems.Invalid(path, "{}",
                            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, "
                            "Secretbox, Identity");
  }
  if (node.size() > 1) {
    return problems.Invalid(path, "REDACTED",
                            "more than one provider specified in a single element, should split into "
                            "different list elements");
  }
  const std::string name = Text(node.begin()->first), at = path + "." + name;
  const YAML::Node body = node.begin()->second;
  EncryptionProvider provider;
  if (name == "aescbc" || name == "aesgcm") {
    provider.type = name == "aescbc" ? Type::kAesCbc : Type::kAesGcm;
    ReadKeys(body, at, kAesSizes, provider, problems);
  } else if (name == "secretbox") {
    provider.type = Type::kSecretbox;
    ReadKeys(body, at, kSecretboxSizes, provider, problems);
  } else if (name == "kms") {
    provider.type = Type::kKms;
    ReadKms(body, at, kms_names, provider, problems);
  } else if (name == "identity") {
    OnlyFields(body, at, {}, problems);
  }
  rule.providers.push_back(std::move(provider));
}

bool IsInGroup(std::string_view resource, std::string_view group) {
  size_t dot = resource.find('.');
  return dot != std::string_view::npos && resource.substr(dot + 1) == group;
}

void CheckResource(const std::string& resource, const std::string& path, Problems& problems) {
  auto invalid = [&](std::string_view why) { problems.Invalid(path, resource, why); };
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

void CheckOverlap(const std::vector<std::string>& resources, const std::string& path, Problems& problems) {
  auto has = [&](std::string_view one) {
    return std::find(resources.begin(), resources.end(), one) != resources.end();
  };
  for (const std::string& resource : resources) {
    if (std::count(resources.begin(), resources.end(), resource) > 1) {
      return problems.Invalid(path, fmt::format("{}", fmt::join(resources, ",")),
                              "the same resource cannot be specified multiple times");
    }
    size_t dot = resource.find('.');
    std::string group_wide = "*." + (dot == std::string::npos ? "" : resource.substr(dot + 1));
    bool masked = (has("*.*") && resource != "*.*") || (resource != group_wide && has(group_wide));
    if (masked) {
      return problems.Invalid(path, fmt::format("{}", fmt::join(resources, ",")),
                              "using overlapping resources such as 'secrets' and '*.' in the same resource "
                              "list is not allowed as they will be masked");
    }
  }
}

void ReadRule(const YAML::Node& node, const std::string& path, std::set<std::string>& kms_names,
              EncryptionConfig& config, Problems& problems) {
  OnlyFields(node, path, {"resources", "providers"}, problems);
  EncryptionRule rule;
  const YAML::Node resources = node.IsMap() ? node["resources"] : YAML::Node();
  const YAML::Node providers = node.IsMap() ? node["providers"] : YAML::Node();
  if (!resources || !resources.IsSequence() || resources.size() == 0) {
    problems.Required(path + ".resources", "at least one resource is required");
  } else {
    for (size_t i = 0; i < resources.size(); ++i) {
      rule.resources.push_back(Text(resources[i]));
      CheckResource(rule.resources.back(), fmt::format("{}.resources[{}]", path, i), problems);
    }
    CheckOverlap(rule.resources, path + ".resources", problems);
  }
  if (!providers || !providers.IsSequence() || providers.size() == 0) {
    problems.Required(path + ".providers", "at least one provider is required");
  } else {
    for (size_t i = 0; i < providers.size(); ++i) {
      ReadProvider(providers[i], fmt::format("{}.providers[{}]", path, i), kms_names, rule, problems);
    }
  }
  config.rules.push_back(std::move(rule));
}

}  // namespace

Result<EncryptionConfig> ParseEncryptionConfig(std::string_view text) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
    if (!root.IsMap()) return Error(Code::kInvalid, "the file holds no object");
    if (Text(root["kind"]) != "EncryptionConfiguration" ||
        (Text(root["apiVersion"]) != "apiserver.config.k8s.io/v1" && Text(root["apiVersion"]) != "v1")) {
      return Error(Code::kInvalid, fmt::format("no kind \"{}\" is registered for version \"{}\"",
                                               Text(root["kind"]), Text(root["apiVersion"])));
    }
    Problems problems;
    OnlyFields(root, "", {"kind", "apiVersion", "resources"}, problems);
    EncryptionConfig config;
    std::set<std::string> kms_names;
    const YAML::Node rules = root["resources"];
    if (!rules || !rules.IsSequence() || rules.size() == 0) {
      problems.Required("resources", "at least one resources is required");
    } else {
      for (size_t i = 0; i < rules.size(); ++i) {
        ReadRule(rules[i], fmt::format("resources[{}]", i), kms_names, config, problems);
      }
    }
    if (!problems.empty()) return problems.ToError();
    return config;
  } catch (const YAML::Exception& error) {
    // Its message may quote the file, and with it a secret.
    return Error(Code::kInvalid, fmt::format("yaml: line {}: cannot be read", error.mark.line + 1));
  }
}

}  // namespace keelson::storage
