// Which images the node has pulled with whose credentials, so that a pod cannot use an image that it could not pull
// itself (KEP-2535). On disk in upstream's format:
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
    std::string dir;  // <root>/image_manager; empty: no records, all pods may use all images
    PullVerification verification = PullVerification::kNeverPreloaded;
    std::vector<std::string> allowlist;  // images without tag, "registry.io/team/*"
  };
  PullRecords(Options options, Clock& clock);

  // Call before a pull: records the intent, in case the kubelet dies during the pull.
  Result<> Begin(const std::string& image);
  // Call after the pull. `used`: null: no credentials, or the node's. Empty `ref`: the pull failed.
  Result<> End(const std::string& image, const std::string& ref, const Credential* used);
  // Removes records older than `before` of images that are not in `refs`.
  void Prune(const std::set<std::string>& refs, WallTime before);
  // Whether a pod with these credentials may use the present image. `others` is called for more credentials only if
  // these do not suffice.
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
  std::map<std::string, int> pulling_ KEELSON_GUARDED_BY(mutex_);  // by image
};

}  // namespace keelson::kubelet
