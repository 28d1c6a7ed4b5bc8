#include "kubelet/image/image_manager.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <boost/json.hpp>

namespace keelson::kubelet {

namespace {

std::string Registry(const std::string& normalized) { return normalized.substr(0, normalized.find('/')); }

std::string Seconds(std::chrono::steady_clock::duration time) {
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  if (millis < 1000) return fmt::format("{}ms", millis);
  return fmt::format("{:.3f}s", static_cast<double>(millis) / 1000);
}

std::string Decode64(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (char c : text) {
    size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(value);
    if (++count % 4 != 1)
      out.push_back(static_cast<char>(bits >> (count % 4 == 0 ? 0 : count % 4 == 3 ? 2 : 4) & 0xff));
  }
  return out;
}

// https://index.docker.io/v1/ -> docker.io
std::string RegistryOfKey(std::string key) {
  for (std::string_view scheme : {"https://", "http://"})
    if (key.compare(0, scheme.size(), scheme) == 0) key.erase(0, scheme.size());
  key = key.substr(0, key.find('/'));
  return key == "index.docker.io" ? "docker.io" : key;
}

void AddAuths(const boost::json::value& auths, const std::string& registry,
              std::vector<cri::AuthConfig>& out) {
  if (!auths.is_object()) return;
  for (const auto& item : auths.as_object()) {
    if (RegistryOfKey(std::string(item.key())) != registry || !item.value().is_object()) continue;
    const auto& entry = item.value().as_object();
    auto text = [&entry](const char* name) {
      const auto* value = entry.if_contains(name);
      return value && value->is_string() ? std::string(value->as_string()) : std::string();
    };
    cri::AuthConfig auth;
    auth.username = text("username");
    auth.password = text("password");
    auth.identity_token = text("identitytoken");
    auth.registry_token = text("registrytoken");
    if (std::string encoded = text("auth"); !encoded.empty() && auth.username.empty()) {
      std::string pair = Decode64(encoded);
      size_t colon = pair.find(':');
      auth.username = pair.substr(0, colon);
      if (colon != std::string::npos) auth.password = pair.substr(colon + 1);
    }
    out.push_back(std::move(auth));
  }
}

}  // namespace

std::string NormalizeImage(const std::string& image) {
  static const re2::RE2 kName(
      R"((?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?)");
  if (!re2::RE2::FullMatch(image, kName)) return "";
  std::string name = image;
  size_t slash = name.find('/');
  std::string first = name.substr(0, slash);
  bool has_registry =
      slash != std::string::npos &&
      (first.find('.') != std::string::npos || first.find(':') != std::string::npos || first == "localhost");
  if (!has_registry) name = "docker.io/" + (slash == std::string::npos ? "library/" : std::string()) + name;
  if (name.find('@') == std::string::npos && name.find(':', name.rfind('/')) == std::string::npos)
    name += ":latest";
  return name;
}

bool ShouldPull(const std::string& policy, const std::string& image, bool present) {
  if (policy == "Never") return false;
  if (policy == "Always") return true;
  if (policy.empty() && image.size() > 7 && image.compare(image.size() - 7, 7, ":latest") == 0) return true;
  return !present;
}

std::vector<cri::AuthConfig> FindCredentials(const std::string& image,
                                             const std::vector<corev1::Secret>& secrets) {
  std::vector<cri::AuthConfig> out;
  std::string registry = Registry(image);
  for (const corev1::Secret& secret : secrets) {
    bool modern = secret.type() != "kubernetes.io/dockercfg";
    auto it = secret.data().find(modern ? ".dockerconfigjson" : ".dockercfg");
    if (it == secret.data().end()) continue;
    boost::json::error_code failed;
    boost::json::value config = boost::json::parse(it->second, failed);
    if (failed || !config.is_object()) continue;
    if (!modern)
      AddAuths(config, registry, out);
    else if (const auto* auths = config.as_object().if_contains("auths"))
      AddAuths(*auths, registry, out);
  }
  return out;
}

ImageManager::ImageManager(cri::ImageService& images, const Options& options, Clock& clock)
    : images_(images),
      options_(options),
      clock_(clock),
      backoff_(options.backoff_first, options.backoff_max, clock) {}

void ImageManager::ForgetPod(const std::string& uid) {
  backoff_.ForgetPrefix(uid + "/");
  MutexLock lock(mutex_);
  auto it = failed_at_.lower_bound(uid + "/");
  while (it != failed_at_.end() && it->first.compare(0, uid.size() + 1, uid + "/") == 0)
    it = failed_at_.erase(it);
}

Result<std::string> ImageManager::Pull(const ImageRequest& request, const std::string& image,
                                       std::stop_token stop) {
  int most = options_.serialize_pulls ? 1 : options_.max_parallel_pulls;
  if (most > 0) {
    MutexLock lock(mutex_);
    if (!free_.wait(mutex_, stop, [&]() NO_THREAD_SAFETY_ANALYSIS { return pulling_ < most; }))
      return Error(Code::kCancelled, "image pull was cancelled");
    ++pulling_;
  }
  std::vector<cri::AuthConfig> credentials = FindCredentials(image, request.pull_secrets);
  Result<std::string> ref = Error(Code::kInternal, "no pull was tried");
  if (credentials.empty()) {
    ref = images_.PullImage(image, std::nullopt, request.sandbox, stop);
  } else {
    for (const cri::AuthConfig& auth : credentials) {
      ref = images_.PullImage(image, auth, request.sandbox, stop);
      if (ref) break;
    }
  }
  if (most > 0) {
    MutexLock lock(mutex_);
    --pulling_;
    free_.notify_all();
  }
  return ref;
}

bool ImageManager::Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out,
                          ImageFailure& failure) {
  const std::string& name = request.image;
  std::string image = NormalizeImage(name);
  if (image.empty()) {
    failure = {"InvalidImageName",
               "Failed to apply default image tag \"" + name + "\": couldn't parse image name \"" + name +
                   "\": invalid reference format",
               {}};
    request.event("Warning", "InspectFailed", failure.message);
    return false;
  }
  auto status = images_.ImageStatus(name, stop);
  if (!status) {
    failure = {
        "ImageInspectError", "Failed to inspect image \"" + name + "\": " + status.error().message(), {}};
    request.event("Warning", "InspectFailed", failure.message);
    return false;
  }
  bool present = status->has_value();
  if (!ShouldPull(request.pull_policy, image, present)) {
    if (present) {
      out = {std::move(**status), ""};
      out.ref = out.image.id;
      request.event("Normal", "Pulled", "Container image \"" + name + "\" already present on machine");
      return true;
    }
    failure = {
        "ErrImageNeverPull", "Container image \"" + name + "\" is not present with pull policy of Never", {}};
    request.event("Warning", "ErrImageNeverPull", failure.message);
    return false;
  }
  std::string key = request.pod.metadata().uid() + "/" + image;
  {
    MutexLock lock(mutex_);
    if (auto it = failed_at_.find(key); it != failed_at_.end())
      failure.retry = backoff_.Left(key, it->second);
  }
  if (failure.retry.count() > 0) {
    failure.reason = "ImagePullBackOff";
    failure.message = "Back-off pulling image \"" + name + "\"";
    request.event("Normal", "BackOff", failure.message);
    return false;
  }
  request.event("Normal", "Pulling", "Pulling image \"" + name + "\"");
  auto begin = clock_.SteadyNow();
  auto ref = Pull(request, name, stop);
  if (!ref) {
    backoff_.Next(key);
    failure = {"ErrImagePull", ref.error().message(), backoff_.Current(key)};
    {
      MutexLock lock(mutex_);
      failed_at_[key] = clock_.Now();
    }
    request.event("Warning", "Failed", "Failed to pull image \"" + name + "\": " + ref.error().message());
    request.event("Warning", "Failed", "Error: ErrImagePull");
    return false;
  }
  backoff_.Forget(key);
  status = images_.ImageStatus(*ref, stop);
  if (status && *status) out.image = std::move(**status);
  out.ref = *ref;
  std::string took = Seconds(clock_.SteadyNow() - begin);
  request.event(
      "Normal", "Pulled",
      fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} bytes.",
                  name, took, took, out.image.size));
  return true;
}

}  // namespace keelson::kubelet
