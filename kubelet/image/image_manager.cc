#include "kubelet/image/image_manager.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "kubelet/image/pull_metrics.h"

namespace keelson::kubelet {

namespace {

std::string Seconds(std::chrono::steady_clock::duration time) {
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  if (millis < 1000) return fmt::format("{}ms", millis);
  return fmt::format("{:.3f}s", static_cast<double>(millis) / 1000);
}

// The kinds of failure that runtimes tell apart in their message; ErrImagePull for all others.
std::string ReasonOf(const Error& error) {
  for (const char* reason : {"RegistryUnavailable", "SignatureValidationFailed"}) {
    if (error.message().compare(0, std::string_view(reason).size(), reason) == 0) return reason;
  }
  return "ErrImagePull";
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
  if (name.find('@') == std::string::npos && name.find(':', name.rfind('/')) == std::string::npos) {
    name += ":latest";
  }
  return name;
}

bool ShouldPull(const std::string& policy, const std::string& image, bool present) {
  if (policy == "Never") return false;
  if (policy == "Always") return true;
  if (policy.empty() && image.size() > 7 && image.compare(image.size() - 7, 7, ":latest") == 0) return true;
  return !present;
}

ImageManager::ImageManager(cri::ImageService& images, const Options& options, Clock& clock)
    : images_(images),
      options_(options),
      clock_(clock),
      backoff_(options.backoff_first, options.backoff_max, clock),
      records_(options.records, clock) {
  if (options.pulls_per_second > 0) limit_.emplace(options.pulls_per_second, options.pull_burst, clock);
}

void ImageManager::ForgetPod(const std::string& uid) {
  backoff_.ForgetPrefix(uid + "/");
  MutexLock lock(mutex_);
  auto it = failures_.lower_bound(uid + "/");
  while (it != failures_.end() && it->first.compare(0, uid.size() + 1, uid + "/") == 0) {
    it = failures_.erase(it);
  }
}

void ImageManager::ForgetImages(const std::set<std::string>& present, WallTime as_of) {
  records_.Prune(present, as_of);
}

std::vector<Credential> ImageManager::Credentials(const ImageRequest& request, const std::string& image,
                                                  std::stop_token stop) {
  std::vector<Credential> out = FindCredentials(image, request.pull_secrets);
  for (Credential& own : FindNodeCredentials(image, options_.credential_dirs)) out.push_back(std::move(own));
  if (options_.providers) {
    for (Credential& given : options_.providers->Get(image, request.pod, options_.accounts, stop)) {
      out.push_back(std::move(given));
    }
  }
  return out;
}

Result<std::string> ImageManager::PullWithAny(const ImageRequest& request, const std::string& image,
                                              const std::vector<Credential>& credentials,
                                              const Credential*& used, std::stop_token stop) {
  used = nullptr;
  if (credentials.empty()) return images_.PullImage(image, std::nullopt, request.sandbox, stop);
  Result<std::string> ref = Error(Code::kInternal, "no pull was tried");
  for (const Credential& credential : credentials) {
    ref = images_.PullImage(image, credential.auth, request.sandbox, stop);
    if (!ref) continue;
    used = &credential;
    break;
  }
  return ref;
}

Result<std::string> ImageManager::Pull(const ImageRequest& request, const std::string& image,
                                       const std::vector<Credential>& credentials, std::stop_token stop) {
  int most = options_.serialize_pulls ? 1 : options_.max_parallel_pulls;
  if (most > 0) {
    MutexLock lock(mutex_);
    if (!free_.wait(mutex_, stop, [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return pulling_ < most; })) {
      return Error(Code::kCancelled, "image pull was cancelled");
    }
    ++pulling_;
  }
  const Credential* used = nullptr;
  Result<std::string> ref = std::string();
  std::string known_as = NormalizeImage(image);
  if (auto begun = records_.Begin(known_as); !begun) ref = begun.error();
  if (ref && limit_ && !limit_->Allow()) ref = Error(Code::kTooManyRequests, "pull QPS exceeded");
  if (ref) ref = PullWithAny(request, image, credentials, used, stop);
  if (auto noted = records_.End(known_as, ref ? IdOf(*ref, stop) : "", used); !noted && ref) {
    ref = noted.error();
  }
  if (most > 0) {
    MutexLock lock(mutex_);
    --pulling_;
    free_.notify_all();
  }
  return ref;
}

// What a pull answers is an id for some runtimes and a name with a digest for others.
std::string ImageManager::IdOf(const std::string& ref, std::stop_token stop) {
  auto status = images_.ImageStatus(ref, stop);
  return status && *status ? (*status)->id : ref;
}

bool ImageManager::HeldBack(const ImageRequest& request, const std::string& key, ImageFailure& failure) {
  Failure last;
  {
    MutexLock lock(mutex_);
    auto it = failures_.find(key);
    if (it == failures_.end()) return false;
    last = it->second;
  }
  failure.retry = backoff_.Left(key, last.at);
  if (failure.retry.count() == 0) return false;
  failure.reason = "ImagePullBackOff";
  std::string text = "Back-off pulling image \"" + request.image + "\"";
  request.event("Normal", "BackOff", text);
  failure.message = text + ": " + last.reason + ": " + last.message;
  return true;
}

void ImageManager::Failed(const ImageRequest& request, const std::string& key, const Error& error,
                          ImageFailure& failure) {
  backoff_.Next(key);
  failure = {ReasonOf(error), error.message(), backoff_.Current(key)};
  {
    MutexLock lock(mutex_);
    failures_[key] = {clock_.Now(), failure.reason, failure.message};
  }
  request.event("Warning", "Failed", "Failed to pull image \"" + request.image + "\": " + error.message());
}

bool ImageManager::Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out,
                          ImageFailure& failure) {
  Found found;
  const bool ensured = Ensure(request, stop, out, failure, found);
  // Of each try, also of one that waits: people look for it.
  if (!ensured && !stop.stop_requested()) request.event("Warning", "Failed", "Error: " + failure.reason);
  CountEnsuredImage(request.pull_policy, found.present, found.pull_required);
  return ensured;
}

bool ImageManager::Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out,
                          ImageFailure& failure, Found& found) {
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
  const bool present = status->has_value();
  found.present = present;
  std::vector<Credential> credentials = FindCredentials(image, request.pull_secrets);
  auto of_account = [&] {
    return options_.providers ? options_.providers->GetOfAccount(image, request.pod, options_.accounts, stop)
                              : std::vector<Credential>();
  };
  bool usable = present && records_.MayUse(image, (*status)->id, credentials, of_account);
  found.pull_required = ShouldPull(request.pull_policy, image, usable);
  if (!*found.pull_required) {
    if (usable) {
      out = {std::move(**status), ""};
      out.ref = out.image.id;
      request.event(
          "Normal", "Pulled",
          "Container image \"" + name + "\" already present on machine and can be accessed by the pod");
      return true;
    }
    failure.reason = "ErrImageNeverPull";
    failure.message = "Container image \"" + name + "\" is not present with pull policy of Never";
    if (present) {
      failure.message = "Container image \"" + name +
                        "\" is present with pull policy of Never but does not have the proper credentials";
    }
    request.event("Warning", "ErrImageNeverPull", failure.message);
    return false;
  }
  std::string key = request.pod.metadata().uid() + "/" + image;
  if (HeldBack(request, key, failure)) return false;
  request.event("Normal", "Pulling", "Pulling image \"" + name + "\"");
  auto begin = clock_.SteadyNow();
  auto ref = Pull(request, name, Credentials(request, image, stop), stop);
  if (!ref) {
    Failed(request, key, ref.error(), failure);
    return false;
  }
  backoff_.Forget(key);
  status = images_.ImageStatus(*ref, stop);
  if (status && *status) out.image = std::move(**status);
  out.ref = *ref;
  const auto pull_time = clock_.SteadyNow() - begin;
  CountPull(out.image.size, std::chrono::duration<double>(pull_time).count());
  if (options_.pulled) options_.pulled(request.pod.metadata().uid(), pull_time);
  std::string took = Seconds(pull_time);
  request.event(
      "Normal", "Pulled",
      fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} bytes.",
                  name, took, took, out.image.size));
  return true;
}

}  // namespace keelson::kubelet
