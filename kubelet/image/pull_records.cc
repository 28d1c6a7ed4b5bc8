#include "kubelet/image/pull_records.h"

#include <algorithm>
#include <boost/json.hpp>

#include "kubelet/image/pull_metrics.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/crypto/digest.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

constexpr char kApiVersion[] = "kubelet.config.k8s.io/v1beta1";
constexpr const char *kAllowed = "credentialPolicyAllowed", *kRecorded = "credentialRecordFound",
                     *kMustAuthenticate = "mustAuthenticate";
constexpr size_t kMostUsers = 100;  // of one image and kind in its record

std::string WithoutTag(std::string image) {
  image = image.substr(0, image.find('@'));
  size_t colon = image.rfind(':');
  if (colon != std::string::npos && image.find('/', colon) == std::string::npos) image.resize(colon);
  return image;
}

json::object ReadRecord(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return {};
  json::error_code failed;
  json::value value = json::parse(*text, failed);
  return !failed && value.is_object() ? value.as_object() : json::object();
}

std::string Member(const json::object& object, const char* name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

json::object& ObjectAt(json::object& parent, std::string_view name) {
  json::value& value = parent[name];
  if (!value.is_object()) value = json::object();
  return value.as_object();
}

// The field that lists the allowed users of an image; null: all may use it, or none of this kind.
const char* ListOf(Credential::From from) {
  if (from == Credential::From::kSecret) return "kubernetesSecrets";
  return from == Credential::From::kServiceAccount ? "kubernetesServiceAccounts" : nullptr;
}

bool SameSource(const json::object& known, const Credential& credential) {
  return Member(known, "uid") == credential.uid && Member(known, "name") == credential.name &&
         Member(known, "namespace") == credential.ns;
}

// Adds an allowed user of an image; each source has one entry, a secret that with its newest credential.
void AddUser(json::object& users, const Credential* used) {
  const char* name = used ? ListOf(used->from) : nullptr;
  if (!name) {
    users = {{"nodePodsAccessible", true}};
    return;
  }
  if (users.if_contains("nodePodsAccessible")) return;
  json::value& list = users[name];
  if (!list.is_array()) list = json::array();
  json::object entry = {{"uid", used->uid}, {"namespace", used->ns}, {"name", used->name}};
  if (used->from == Credential::From::kSecret) entry["credentialHash"] = used->hash;
  for (json::value& known : list.as_array()) {
    if (!known.is_object() || !SameSource(known.as_object(), *used)) continue;
    known = std::move(entry);
    return;
  }
  if (list.as_array().size() < kMostUsers) list.as_array().push_back(std::move(entry));
}

bool Known(const json::object& users, const std::vector<Credential>& credentials) {
  const auto* anyone = users.if_contains("nodePodsAccessible");
  if (anyone && anyone->is_bool() && anyone->as_bool()) return true;
  for (const Credential& own : credentials) {
    const char* name = ListOf(own.from);
    const auto* list = name ? users.if_contains(name) : nullptr;
    if (!list || !list->is_array()) continue;
    for (const json::value& item : list->as_array()) {
      if (!item.is_object()) continue;
      const json::object& known = item.as_object();
      // One credential may be in several secrets.
      const bool same_hash = own.from == Credential::From::kSecret && !own.hash.empty() &&
                             Member(known, "credentialHash") == own.hash;
      if (same_hash || SameSource(known, own)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<PullVerification> ParsePullVerification(std::string_view policy) {
  if (policy == "NeverVerify") return PullVerification::kNever;
  if (policy == "NeverVerifyPreloadedImages") return PullVerification::kNeverPreloaded;
  if (policy == "NeverVerifyAllowlistedImages") return PullVerification::kNeverAllowlisted;
  if (policy == "AlwaysVerify") return PullVerification::kAlways;
  return std::nullopt;
}

PullRecords::PullRecords(Options options, Clock& clock) : options_(std::move(options)), clock_(clock) {
  if (!options_.dir.empty()) Tell();
}

// How many files of each kind there are.
void PullRecords::Tell() const {
  auto count = [this](const char* kind) {
    auto names = ListDir(options_.dir + kind);
    return names ? names->size() : 0;
  };
  SetPullRecordCounts(count("/pulling"), count("/pulled"));
}

std::string PullRecords::IntentFile(const std::string& image) const {
  return options_.dir + "/pulling/sha256-" + crypto::Sha256Hex(image);
}

std::string PullRecords::RecordName(const std::string& ref) { return "sha256-" + crypto::Sha256Hex(ref); }

std::string PullRecords::RecordFile(const std::string& ref) const {
  return options_.dir + "/pulled/" + RecordName(ref);
}

void PullRecords::Prune(const std::set<std::string>& refs, WallTime before) {
  if (options_.dir.empty()) return;
  std::set<std::string> kept;
  for (const std::string& ref : refs) kept.insert(RecordName(ref));
  const std::string until = api::FormatTime(api::ToTime(before));
  MutexLock lock(mutex_);
  auto names = ListDir(options_.dir + "/pulled");
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string path = options_.dir + "/pulled/" + name;
    // Times of one form in UTC: the order of the texts is theirs.
    if (kept.count(name) || Member(ReadRecord(path), "lastUpdatedTime") >= until) continue;
    if (auto removed = RemoveFile(path); !removed) {
      log::Warn("Cannot remove the record of an image that is gone", {{"err", removed.error()}});
    }
  }
  Tell();
}

Result<> PullRecords::Begin(const std::string& image) {
  if (options_.dir.empty()) return {};
  MutexLock lock(mutex_);
  if (++pulling_[image] > 1) return {};
  KEELSON_RETURN_IF_ERROR(MakeDirs(options_.dir + "/pulling", 0700));
  json::object intent = {{"kind", "ImagePullIntent"}, {"apiVersion", kApiVersion}, {"image", image}};
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(IntentFile(image), json::serialize(intent), 0600));
  Tell();
  return {};
}

Result<> PullRecords::End(const std::string& image, const std::string& ref, const Credential* used) {
  if (options_.dir.empty()) return {};
  MutexLock lock(mutex_);
  if (!ref.empty()) {
    KEELSON_RETURN_IF_ERROR(MakeDirs(options_.dir + "/pulled", 0700));
    json::object record = ReadRecord(RecordFile(ref));
    record["kind"] = "ImagePulledRecord";
    record["apiVersion"] = kApiVersion;
    record["lastUpdatedTime"] = api::FormatTime(api::ToTime(clock_.Now()));
    record["imageRef"] = ref;
    AddUser(ObjectAt(ObjectAt(record, "credentialMapping"), WithoutTag(image)), used);
    KEELSON_RETURN_IF_ERROR(WriteFileAtomic(RecordFile(ref), json::serialize(record), 0600));
  }
  if (--pulling_[image] > 0) return {};
  pulling_.erase(image);
  KEELSON_RETURN_IF_ERROR(RemoveFile(IntentFile(image)));
  Tell();
  return {};
}

bool PullRecords::Verifies(const std::string& image, bool pulled_by_us) const {
  switch (options_.verification) {
    case PullVerification::kNever:
      return false;
    case PullVerification::kAlways:
      return true;
    case PullVerification::kNeverPreloaded:
      return pulled_by_us;
    case PullVerification::kNeverAllowlisted:
      break;
  }
  std::string name = WithoutTag(image);
  return std::none_of(options_.allowlist.begin(), options_.allowlist.end(), [&](const std::string& entry) {
    bool prefix = entry.size() > 2 && entry.compare(entry.size() - 2, 2, "/*") == 0;
    return prefix ? name.compare(0, entry.size() - 1, entry, 0, entry.size() - 1) == 0 : name == entry;
  });
}

bool PullRecords::MayUse(const std::string& image, const std::string& ref,
                         const std::vector<Credential>& credentials,
                         const std::function<std::vector<Credential>()>& others) {
  if (options_.dir.empty()) return true;
  const char* result = Check(image, ref, credentials);
  if (result == kMustAuthenticate) result = Check(image, ref, others());
  CountMustPullCheck(result);
  return result == kAllowed || result == kRecorded;
}

const char* PullRecords::Check(const std::string& image, const std::string& ref,
                               const std::vector<Credential>& credentials) {
  MutexLock lock(mutex_);
  json::object record = ReadRecord(RecordFile(ref));
  const bool there = PathExists(RecordFile(ref));
  if (!Verifies(image, there || PathExists(IntentFile(image)))) return kAllowed;
  const auto* mapping = record.if_contains("credentialMapping");
  if (!mapping || !mapping->is_object()) return there ? "error" : kMustAuthenticate;
  const auto* users = mapping->as_object().if_contains(WithoutTag(image));
  const bool known = users && users->is_object() && Known(users->as_object(), credentials);
  return known ? kRecorded : kMustAuthenticate;
}

}  // namespace keelson::kubelet
