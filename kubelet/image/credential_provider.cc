#include "kubelet/image/credential_provider.h"

#include <sys/mman.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/json.hpp>

#include "kubelet/image/pull_metrics.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/api/duration.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/event/process.h"
#include "lib/http/signing_key.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kPatience(1);
constexpr char kGroup[] = "credentialprovider.kubelet.k8s.io/";
constexpr size_t kMaxAnswer = 1 << 20;

Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(nanos));
}

std::string Text(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : std::string(); }

void Check(const CredentialProvider& provider, const std::string& where, std::vector<std::string>& problems) {
  if (provider.name.empty()) problems.push_back(where + ".name: Required value: name is required");
  if (provider.name.find('/') != std::string::npos || provider.name == "." || provider.name == ".." ||
      provider.name.find(' ') != std::string::npos)
    problems.push_back(where + ".name: Invalid value: \"" + provider.name +
                       "\": provider name cannot contain path separators or spaces, nor be '.' or '..'");
  if (provider.match_images.empty())
    problems.push_back(where + ".matchImages: Required value: at least 1 item in matchImages is required");
  bool known = false;
  for (const char* version : {"v1", "v1beta1", "v1alpha1"})
    known = known || provider.api_version == std::string(kGroup) + version;
  if (!known)
    problems.push_back(where + ".apiVersion: Unsupported value: \"" + provider.api_version +
                       "\": supported values: \"" + kGroup + "v1\", \"" + kGroup + "v1alpha1\", \"" + kGroup +
                       "v1beta1\"");
}

Result<CredentialProvider> ParseOne(const YAML::Node& node, const std::string& where,
                                    std::vector<std::string>& problems) {
  CredentialProvider out;
  out.name = Text(node["name"]);
  out.api_version = Text(node["apiVersion"]);
  for (const auto& pattern : node["matchImages"]) out.match_images.push_back(Text(pattern));
  for (const auto& arg : node["args"]) out.args.push_back(Text(arg));
  for (const auto& variable : node["env"])
    out.env.emplace_back(Text(variable["name"]), Text(variable["value"]));
  if (node["tokenAttributes"])
    problems.push_back(where + ".tokenAttributes: Forbidden: not supported by this kubelet");
  if (!node["defaultCacheDuration"]) {
    problems.push_back(where + ".defaultCacheDuration: Required value: defaultCacheDuration is required");
  } else {
    auto duration = ParseDuration(Text(node["defaultCacheDuration"]));
    if (!duration) return duration.error().Wrap(where + ".defaultCacheDuration");
    out.default_cache_duration = *duration;
  }
  Check(out, where, problems);
  return out;
}

std::string RegistryOf(const std::string& image) { return image.substr(0, image.find('/')); }

std::string KeyOf(const std::string& provider, const std::string& scope) { return provider + " " + scope; }

// stdout of the program.
Result<std::string> RunProvider(const CredentialProvider& provider, const std::string& program,
                                const std::string& request, std::stop_token stop) {
  UniqueFd output(::memfd_create("credentials", MFD_CLOEXEC));  // never on a disk
  if (!output) return ErrnoError("memfd_create");
  event::ProcessOptions options;
  options.argv = {program};
  options.argv.insert(options.argv.end(), provider.args.begin(), provider.args.end());
  options.env = provider.env;
  options.input = request;
  options.output_fd = output.get();
  ASSIGN_OR_RETURN(auto process, event::Process::Start(options));
  ASSIGN_OR_RETURN(auto status, process.Wait(stop, kPatience));
  if (!status.ok())
    return Error(Code::kUnavailable, "error execing credential provider plugin " + provider.name +
                                         " for image: " + status.ToString());
  off_t size = ::lseek(output.get(), 0, SEEK_END);
  if (size < 0 || static_cast<size_t>(size) > kMaxAnswer)
    return Error(Code::kInvalid, "credential provider plugin " + provider.name + " says too much");
  if (::lseek(output.get(), 0, SEEK_SET) < 0) return ErrnoError("lseek");
  return ReadAll(output.get(), "credentials");
}

std::string Member(const json::object& object, const char* name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

}  // namespace

Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (!root.IsMap() || Text(root["kind"]) != "CredentialProviderConfig" ||
      Text(root["apiVersion"]).compare(0, 23, "kubelet.config.k8s.io/v") != 0)
    return Error(Code::kInvalid, "not a CredentialProviderConfig of kubelet.config.k8s.io/v1");
  std::vector<std::string> problems;
  std::vector<CredentialProvider> out;
  const YAML::Node providers = root["providers"];
  if (!providers || !providers.IsSequence() || providers.size() == 0)
    problems.push_back("providers: Required value: at least 1 item in plugins is required");
  for (size_t i = 0; providers && i < providers.size(); ++i) {
    ASSIGN_OR_RETURN(auto provider, ParseOne(providers[i], "providers[" + std::to_string(i) + "]", problems));
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

Result<std::shared_ptr<CredentialProviders>> CredentialProviders::Load(const std::string& config_file,
                                                                       const std::string& bin_dir,
                                                                       Clock& clock) {
  ASSIGN_OR_RETURN(std::string yaml, ReadFile(config_file));
  auto providers = ParseCredentialProviders(yaml);
  if (!providers) return providers.error().Wrap(config_file);
  TellCredentialConfig(http::Sha256Hex(yaml));
  for (const CredentialProvider& provider : *providers) {
    std::string program = bin_dir + "/" + provider.name;
    if (::access(program.c_str(), X_OK) != 0)
      return ErrnoError("plugin binary executable " + program + " did not exist");
  }
  return std::make_shared<CredentialProviders>(std::move(*providers), bin_dir, clock);
}

const CredentialProviders::Answer* CredentialProviders::Cached(const CredentialProvider& provider,
                                                               const std::string& image) {
  for (const std::string& scope : {image, RegistryOf(image), std::string()}) {
    auto it = cache_.find(KeyOf(provider.name, scope));
    if (it != cache_.end() && clock_.Now() < it->second.expires) return &it->second;
  }
  return nullptr;
}

std::vector<Credential> CredentialProviders::Get(const std::string& image, std::stop_token stop) {
  std::vector<Credential> out;
  auto take = [&](const Answer& answer) {
    for (const auto& [pattern, auth] : answer.auth)
      if (CoversImage(pattern, image))
        out.push_back({auth, "", "", "", http::Sha256Hex(auth.username + '\0' + auth.password)});
  };
  for (const CredentialProvider& provider : providers_) {
    bool covers = std::any_of(provider.match_images.begin(), provider.match_images.end(),
                              [&](const std::string& pattern) { return CoversImage(pattern, image); });
    if (!covers) continue;
    {
      MutexLock lock(mutex_);
      if (const Answer* known = Cached(provider, image)) {
        take(*known);
        continue;
      }
    }
    std::string key;
    auto answer = Ask(provider, image, key, stop);
    if (!answer) {
      log::Warn("Credential provider failed", {{"provider", provider.name}, {"error", answer.error()}});
      continue;
    }
    take(*answer);
    MutexLock lock(mutex_);
    std::erase_if(cache_, [&](const auto& item) { return item.second.expires <= clock_.Now(); });
    if (answer->expires > clock_.Now()) cache_[key] = std::move(*answer);
  }
  return out;
}

Result<CredentialProviders::Answer> CredentialProviders::Ask(const CredentialProvider& provider,
                                                             const std::string& image, std::string& key,
                                                             std::stop_token stop) {
  json::object request = {
      {"kind", "CredentialProviderRequest"}, {"apiVersion", provider.api_version}, {"image", image}};
  Stopwatch watch;
  auto answer = RunProvider(provider, bin_dir_ + "/" + provider.name, json::serialize(request), stop);
  CountCredentialPlugin(provider.name, answer.has_value(), watch.Seconds());
  ASSIGN_OR_RETURN(const std::string text, std::move(answer));
  json::error_code failed;
  json::value parsed = json::parse(text, failed);
  if (failed || !parsed.is_object() || Member(parsed.as_object(), "kind") != "CredentialProviderResponse" ||
      Member(parsed.as_object(), "apiVersion") != provider.api_version)
    return Error(Code::kInvalid, "the answer is no CredentialProviderResponse of " + provider.api_version);
  const json::object& response = parsed.as_object();
  std::string kind = Member(response, "cacheKeyType");
  if (kind != "Image" && kind != "Registry" && kind != "Global")
    return Error(Code::kInvalid,
                 "credential provider plugin did not return a valid cacheKeyType: \"" + kind + "\"");
  key = KeyOf(provider.name, kind == "Image" ? image : kind == "Registry" ? RegistryOf(image) : "");
  Answer out;
  auto duration = provider.default_cache_duration;
  if (std::string own = Member(response, "cacheDuration"); !own.empty()) {
    ASSIGN_OR_RETURN(duration, ParseDuration(own));
  }
  out.expires = clock_.Now() + duration;
  const auto* auth = response.if_contains("auth");
  if (!auth || !auth->is_object()) return out;
  for (const auto& item : auth->as_object()) {
    if (!item.value().is_object()) continue;
    cri::AuthConfig& entry = out.auth[std::string(item.key())];
    entry.username = Member(item.value().as_object(), "username");
    entry.password = Member(item.value().as_object(), "password");
  }
  return out;
}

}  // namespace keelson::kubelet
