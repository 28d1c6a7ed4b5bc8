// Which images this node has pulled with whose credentials, so that a pod does not get, by being on the same
// node, what it could not pull itself (KEP-2535). Kept on disk in the form that other kubelets have too:
//
//   <root>/image_manager/pulling/sha256-<of the image's name>   ImagePullIntent, while a pull is under way
//                       /pulled/sha256-<of the image's id>      ImagePulledRecord
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kubelet/image/keyring.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// imagePullCredentialsVerificationPolicy
enum class PullVerification { kNever, kNeverPreloaded, kNeverAllowlisted, kAlways };
// NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify; else nullopt.
std::optional<PullVerification> ParsePullVerification(std::string_view policy);

class PullRecords {  // thread safe
 public:
  struct Options {
    std::string dir;  // <root>/image_manager; empty: nothing is kept, everyone may use everything
    PullVerification verification = PullVerification::kNeverPreloaded;
    std::vector<std::string> allowlist;  // images without tag, "registry.io/team/*"
  };
  PullRecords(Options options, Clock& clock);

  // Before a pull, which the kubelet may not live to see the end of.
  Result<> Begin(const std::string& image);
  // After it; `used` null: without credentials, or with the node's own. Empty `ref`: it failed.
  Result<> End(const std::string& image, const std::string& ref, const Credential* used);
  // Records of images other than these go, unless they are from that time or later.
  void Prune(const std::set<std::string>& refs, WallTime before);
  // Whether a pod with these credentials may use the image that is on the node. `others` are asked for only
  // where these do not do.
  bool MayUse(const std::string& image, const std::string& ref, const std::vector<Credential>& credentials,
              const std::function<std::vector<Credential>()>& others);

 private:
  bool Verifies(const std::string& image, bool pulled_by_us) const;
  const char* Check(const std::string& image, const std::string& ref,
                    const std::vector<Credential>& credentials);
  void Tell() const;
  std::string IntentFile(const std::string& image) const;
  static std::string RecordName(const std::string& ref);
  std::string RecordFile(const std::string& ref) const;

  const Options options_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, int> pulling_ GUARDED_BY(mutex_);  // by image
};

}  // namespace keelson::kubelet
