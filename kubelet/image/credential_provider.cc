#include "kubelet/image/credential_provider.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "kubelet/image/pull_metrics.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/crypto/digest.h"
#include "lib/event/process.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kPatience(1);
constexpr size_t kMaxAnswer = 1 << 20;

std::string RegistryOf(const std::string& image) { return image.substr(0, image.find('/')); }

std::string KeyOf(const CredentialProvider& provider, const std::string& scope, const PodAccount& account) {
  return provider.name + " " + scope + " " + (provider.token ? account.CacheKey(*provider.token) : "");
}

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
  KEELSON_ASSIGN_OR_RETURN(auto process, event::Process::Start(options));
  KEELSON_ASSIGN_OR_RETURN(auto status, process.Wait(stop, kPatience));
  if (!status.ok()) {
    return Error(Code::kUnavailable, "error execing credential provider plugin " + provider.name +
                                         " for image: " + status.ToString());
  }
  off_t size = ::lseek(output.get(), 0, SEEK_END);
  if (size < 0 || static_cast<size_t>(size) > kMaxAnswer) {
    return Error(Code::kInvalid, "credential provider plugin " + provider.name + " says too much");
  }
  if (::lseek(output.get(), 0, SEEK_SET) < 0) return ErrnoError("lseek");
  return ReadAll(output.get(), "credentials");
}

std::string Member(const json::object& object, const char* name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

}  // namespace

Result<std::shared_ptr<CredentialProviders>> CredentialProviders::Load(const std::string& config_file,
                                                                       const std::string& bin_dir,
                                                                       bool tokens, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(std::string yaml, ReadFile(config_file));
  auto providers = ParseCredentialProviders(yaml, tokens);
  if (!providers) return providers.error().Wrap(config_file);
  SetCredentialConfigHash(crypto::Sha256Hex(yaml));
  for (const CredentialProvider& provider : *providers) {
    std::string program = bin_dir + "/" + provider.name;
    if (::access(program.c_str(), X_OK) != 0) {
      return ErrnoError("plugin binary executable " + program + " did not exist");
    }
  }
  return std::make_shared<CredentialProviders>(std::move(*providers), bin_dir, clock);
}

std::vector<Credential> CredentialProviders::Get(const std::string& image, const corev1::Pod& pod,
                                                 const AccountSource& accounts, std::stop_token stop) {
  return Collect(image, pod, accounts, /*of_account_only=*/false, std::move(stop));
}

std::vector<Credential> CredentialProviders::GetOfAccount(const std::string& image, const corev1::Pod& pod,
                                                          const AccountSource& accounts,
                                                          std::stop_token stop) {
  return Collect(image, pod, accounts, /*of_account_only=*/true, std::move(stop));
}

std::vector<Credential> CredentialProviders::Collect(const std::string& image, const corev1::Pod& pod,
                                                     const AccountSource& accounts, bool of_account_only,
                                                     std::stop_token stop) {
  std::vector<Credential> out;
  for (const CredentialProvider& provider : providers_) {
    bool covers = std::any_of(provider.match_images.begin(), provider.match_images.end(),
                              [&](const std::string& pattern) { return CoversImage(pattern, image); });
    if (!covers) continue;
    std::optional<PodAccount> account = PodAccount();
    if (provider.token) account = FindPodAccount(*provider.token, pod, accounts);
    if (!account || (of_account_only && account->name.empty())) continue;
    const auto answer = AnswerOf(provider, image, *account, stop);
    if (!answer) continue;
    const auto from = account->name.empty() ? Credential::From::kNode : Credential::From::kServiceAccount;
    for (const auto& [pattern, auth] : answer->auth) {
      if (CoversImage(pattern, image)) {
        out.push_back({auth, from, account->ns, account->name, account->uid,
                       crypto::Sha256Hex(auth.username + '\0' + auth.password)});
      }
    }
  }
  return out;
}

std::optional<CredentialProviders::Answer> CredentialProviders::AnswerOf(const CredentialProvider& provider,
                                                                         const std::string& image,
                                                                         const PodAccount& account,
                                                                         std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    for (const std::string& scope : {image, RegistryOf(image), std::string()}) {
      auto known = cache_.find(KeyOf(provider, scope, account));
      if (known != cache_.end() && clock_.Now() < known->second.expires) return known->second;
    }
  }
  std::string scope;
  auto answer = Ask(provider, image, account, scope, std::move(stop));
  if (!answer) {
    log::Warn("Credential provider failed", {{"provider", provider.name}, {"err", answer.error()}});
    return std::nullopt;
  }
  MutexLock lock(mutex_);
  std::erase_if(cache_, [&](const auto& item) { return item.second.expires <= clock_.Now(); });
  if (answer->expires > clock_.Now()) cache_[KeyOf(provider, scope, account)] = *answer;
  return std::move(*answer);
}

Result<CredentialProviders::Answer> CredentialProviders::Ask(const CredentialProvider& provider,
                                                             const std::string& image,
                                                             const PodAccount& account, std::string& scope,
                                                             std::stop_token stop) {
  json::object request = {
      {"kind", "CredentialProviderRequest"}, {"apiVersion", provider.api_version}, {"image", image}};
  if (!account.name.empty()) {
    request["serviceAccountToken"] = account.token;
    json::object annotations;
    for (const auto& [key, value] : account.annotations) annotations[key] = value;
    if (!annotations.empty()) request["serviceAccountAnnotations"] = std::move(annotations);
  }
  Stopwatch watch;
  auto answer = RunProvider(provider, bin_dir_ + "/" + provider.name, json::serialize(request), stop);
  CountCredentialPlugin(provider.name, answer.has_value(), watch.Seconds());
  KEELSON_ASSIGN_OR_RETURN(const std::string text, std::move(answer));
  json::error_code failed;
  json::value parsed = json::parse(text, failed);
  if (failed || !parsed.is_object() || Member(parsed.as_object(), "kind") != "CredentialProviderResponse" ||
      Member(parsed.as_object(), "apiVersion") != provider.api_version) {
    return Error(Code::kInvalid, "the answer is no CredentialProviderResponse of " + provider.api_version);
  }
  const json::object& response = parsed.as_object();
  std::string kind = Member(response, "cacheKeyType");
  if (kind != "Image" && kind != "Registry" && kind != "Global") {
    return Error(Code::kInvalid,
                 "credential provider plugin did not return a valid cacheKeyType: \"" + kind + "\"");
  }
  scope = kind == "Image" ? image : kind == "Registry" ? RegistryOf(image) : "";
  Answer out;
  auto duration = provider.default_cache_duration;
  if (std::string own = Member(response, "cacheDuration"); !own.empty()) {
    KEELSON_ASSIGN_OR_RETURN(duration, ParseCacheDuration(own));
  }
  out.expires = clock_.Now() + duration;
  const auto* auth = response.if_contains("auth");
  if (!auth || !auth->is_object()) return out;
  for (const auto& item : auth->as_object()) {
    if (!item.value().is_object()) continue;
    cri::AuthConfig& entry = out.auth[std::string(item.key())];
    entry.username = Member(item.value().as_object(), "username");
    entry.password = Member(item.value().as_object(), "password");
    // It would be handed to other pods of the account.
    if (provider.token && !provider.token->kept_by_token && !account.token.empty() &&
        entry.password == account.token) {
      return Error(
          Code::kInvalid,
          "credential provider plugin returned the service account token as the password for image \"" +
              image + "\", which is not allowed when service account cache type is not set to 'Token'");
    }
  }
  return out;
}

}  // namespace keelson::kubelet
