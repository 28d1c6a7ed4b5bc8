// Gets a container's image onto the node, by its pull policy.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "kubelet/image/backoff.h"
#include "lib/api/types.h"

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
  std::chrono::milliseconds retry{0};  // when to try again; zero: at will
};

struct EnsuredImage {
  cri::Image image;
  std::string ref;  // to run
};

class ImageManager {  // thread safe; calls block for as long as a pull takes
 public:
  struct Options {
    bool serialize_pulls = true;
    int max_parallel_pulls = 0;  // 0: no bound; of parallel pulls only
    std::chrono::milliseconds backoff_first{std::chrono::seconds(10)}, backoff_max{std::chrono::seconds(300)};
  };
  ImageManager(cri::ImageService& images, const Options& options, Clock& clock = Clock::Real());

  // False: `failure` says why.
  bool Ensure(const ImageRequest& request, std::stop_token stop, EnsuredImage& out, ImageFailure& failure);
  void ForgetPod(const std::string& uid);

 private:
  Result<std::string> Pull(const ImageRequest& request, const std::string& image, std::stop_token stop);

  cri::ImageService& images_;
  const Options options_;
  Clock& clock_;
  Backoff backoff_;
  Mutex mutex_;
  CondVar free_;
  int pulling_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, WallTime> failed_at_ GUARDED_BY(mutex_);
};

// "busybox" -> "docker.io/library/busybox:latest"; empty when it is no image name.
std::string NormalizeImage(const std::string& image);
bool ShouldPull(const std::string& policy, const std::string& image, bool present);
// The credentials of the registry of a (normalized) image in the pod's pull secrets, in order.
std::vector<cri::AuthConfig> FindCredentials(const std::string& image,
                                             const std::vector<corev1::Secret>& secrets);

}  // namespace keelson::kubelet
