// The image manager: makes sure that a container's image is on the node, by its pull policy.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "kubelet/image/backoff.h"
#include "kubelet/image/credential_provider.h"
#include "kubelet/image/keyring.h"
#include "kubelet/image/pull_records.h"
#include "lib/api/types.h"
#include "lib/base/rate_limit.h"

namespace keelson::kubelet {

// Reason and message of an event on the pod.
using EventFunction =
    std::function<void(const std::string& type, const std::string& reason, const std::string& message)>;

struct ImageRequest {
  const corev1::Pod& pod;
  std::string image, pull_policy;  // empty policy: Always for the tag latest, else IfNotPresent
  const cri::SandboxConfig& sandbox;
  const std::vector<corev1::Secret>& pull_secrets;
  EventFunction event;
};

struct ImageFailure {
  std::string
      reason;  // ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName, ImageInspectError
  std::string message;
  std::chrono::milliseconds retry{0};  // when to try again; zero: any time
};

struct EnsuredImage {
  cri::Image image;
  std::string ref;  // to run
};

class ImageManager {  // thread safe; calls block for as long as a pull takes
 public:
  struct Options {
    bool serialize_pulls = true;
    int max_parallel_pulls = 0;                // if pulls are parallel; 0: no limit
    int pulls_per_second = 0, pull_burst = 0;  // 0: no limit; a pull beyond it fails
    std::chrono::milliseconds backoff_first{std::chrono::seconds(10)}, backoff_max{std::chrono::seconds(300)};
    std::shared_ptr<CredentialProviders> providers;  // null: none
    AccountSource accounts;                          // for the providers
    std::vector<std::string> credential_dirs;        // of the node's config.json
    PullRecords::Options records;
    // Called after a pull for the pod; may be empty.
    std::function<void(const std::string& uid, std::chrono::nanoseconds took)> pulled;
  };
  ImageManager(cri::ImageService& images, const Options& options, Clock& clock = Clock::Real());

  // Pulls the image if needed, and if the pod may use it. False: `failure` says why.
  bool Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out, ImageFailure& failure);
  void ForgetPod(const std::string& uid);
  // Drops the pull records of all images that the runtime did not have at that time.
  void ForgetImages(const std::set<std::string>& present, WallTime as_of);

 private:
  // For metrics; nullopt: not found out.
  struct Found {
    std::optional<bool> present, pull_required;
  };
  bool Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out, ImageFailure& failure,
              Found& found);
  std::vector<Credential> Credentials(const ImageRequest& request, const std::string& image,
                                      std::stop_token stop);
  Result<std::string> Pull(const ImageRequest& request, const std::string& image,
                           const std::vector<Credential>& credentials, std::stop_token stop);
  Result<std::string> PullWithAny(const ImageRequest& request, const std::string& image,
                                  const std::vector<Credential>& credentials, const Credential*& used,
                                  std::stop_token stop);
  std::string IdOf(const std::string& ref, std::stop_token stop);
  bool HeldBack(const ImageRequest& request, const std::string& key, ImageFailure& failure);
  void Failed(const ImageRequest& request, const std::string& key, const Error& error, ImageFailure& failure);

  cri::ImageService& images_;
  const Options options_;
  Clock& clock_;
  Backoff backoff_;
  PullRecords records_;
  std::optional<RateLimit> limit_;
  Mutex mutex_;
  CondVar free_;
  int pulling_ KEELSON_GUARDED_BY(mutex_) = 0;
  struct Failure {
    WallTime at;
    std::string reason, message;
  };
  std::map<std::string, Failure> failures_ KEELSON_GUARDED_BY(mutex_);
};

// "busybox" -> "docker.io/library/busybox:latest"; empty: not an image name.
std::string NormalizeImage(const std::string& image);
// Whether `policy` asks for a pull of the normalized `image`. `present`: the node has it.
bool ShouldPull(const std::string& policy, const std::string& image, bool present);

}  // namespace keelson::kubelet
