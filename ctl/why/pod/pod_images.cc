#include <array>

#include "ctl/why/pod/pod_judge.h"
#include "lib/base/text.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

// In the words of runtimes and registries, in lower case. The first that fits counts.
struct Failure {
  const char* words;
  const char* reason;
  const char* sentence;
};
constexpr std::array<Failure, 21> kFailures{{
    {"toomanyrequests", "ImageRateLimited", "the registry limits how often this node may pull"},
    {"429 too many", "ImageRateLimited", "the registry limits how often this node may pull"},
    {"may require authorization", "ImageUnauthorized",
     "it does not exist, or the registry demands credentials"},
    {"unauthorized", "ImageUnauthorized", "the registry demands credentials"},
    {"authentication required", "ImageUnauthorized", "the registry demands credentials"},
    {"no basic auth credentials", "ImageUnauthorized", "the registry demands credentials"},
    {"authorization failed", "ImageUnauthorized", "the registry refuses the credentials"},
    {"403 forbidden", "ImageUnauthorized", "the registry refuses the credentials"},
    {"access denied", "ImageUnauthorized", "the registry refuses the credentials"},
    {"no match for platform", "ImagePlatform", "the image is not made for this node's processor"},
    {"no such host", "RegistryUnreachable", "the registry's name does not resolve on the node"},
    {"connection refused", "RegistryUnreachable", "no registry answers at its address"},
    {"i/o timeout", "RegistryUnreachable", "the registry does not answer"},
    {"deadline exceeded", "RegistryUnreachable", "the registry does not answer in time"},
    {"network is unreachable", "RegistryUnreachable", "the node has no route to the registry"},
    {"no route to host", "RegistryUnreachable", "the node has no route to the registry"},
    {"x509:", "RegistryUntrusted", "the node does not trust the registry's certificate"},
    {"http response to https client", "RegistryUntrusted",
     "the registry speaks plain HTTP, which the runtime does not expect"},
    {"no space left", "DiskFull", "the node's disk is full"},
    {"manifest unknown", "ImageNotFound", "the registry does not have it"},
    {"not found", "ImageNotFound", "the registry does not have it"},
}};

// Reasons that the kubelet itself gives.
constexpr std::array<Failure, 4> kOwn{{
    {"InvalidImageName", "InvalidImageName", "its name is malformed"},
    {"ErrImageNeverPull", "ErrImageNeverPull", "the node does not have it, and imagePullPolicy is Never"},
    {"SignatureValidationFailed", "SignatureValidationFailed",
     "its signature does not pass the node's policy"},
    {"ImageInspectError", "ImageInspectError", "the runtime cannot look at it"},
}};

Failure FailureOf(const std::string& reason, const std::string& text) {
  for (const Failure& one : kOwn) {
    if (reason == one.words) return one;
  }
  const std::string lower = Lower(text);
  for (const Failure& one : kFailures) {
    if (lower.find(one.words) != std::string::npos) return one;
  }
  return {"", "ImagePullFailed", "the pull fails"};
}

}  // namespace

Problem JudgeImage(const PodView& view, const corev1::ContainerStatus& status, const std::string& what) {
  const corev1::ContainerStateWaiting& waiting = status.state().waiting();
  const corev1::Container* container = k8s::FindContainer(view.pod.spec(), status.name());
  const std::string& image = container ? container->image() : status.image();
  const corev1::Event* event = view.LastOfContainer(status.name(), {"Failed", "InspectFailed"}, image);
  const corev1::Event* secret = view.Last({"FailedToRetrieveImagePullSecret"});
  const Failure failure =
      FailureOf(waiting.reason(), waiting.message() + "\n" + (event ? event->message() : std::string()));
  Problem out{failure.reason, what + " cannot get image " + image + ": " + failure.sentence};
  if (waiting.reason() == "ImagePullBackOff") out.message += "; the kubelet tries again with growing pauses";
  out.evidence.push_back(waiting.reason() + ": " + waiting.message());
  if (event) out.evidence.push_back(EventText(*event));
  if (secret) out.evidence.push_back(EventText(*secret));
  const std::string& node = view.pod.spec().node_name();
  if (out.reason == "ImageUnauthorized") {
    out.next.push_back(
        view.Kubectl("get pod " + view.pod.metadata().name() + " -o jsonpath='{.spec.imagePullSecrets}'"));
  }
  if (out.reason == "DiskFull") {
    out.next.push_back("nodectl why node " + node);
  } else if (out.reason != "InvalidImageName") {
    out.next.push_back("nodectl pull " + image + "   # on node " + node);
  }
  return out;
}

}  // namespace keelson::ctl
