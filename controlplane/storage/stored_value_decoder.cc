#include "controlplane/storage/stored_value_decoder.h"

#include <fmt/format.h>

#include "lib/api/codec/codec.h"

namespace keelson::storage {
namespace {

// Causes that a read error of a list names.
constexpr size_t kMaxCauses = 100;
constexpr std::string_view kCause = "UnexpectedServerResponse", kListed = "list";
constexpr std::string_view kInternalPrefix = "Internal error occurred: ";

Error DecodeError(const etcd::KeyValue& kv, const Error& why) {
  return Error(Code::kInternal,
               fmt::format("{}StorageError: corrupt object, Code: 7, Key: {}, ResourceVersion: 0, "
                           "AdditionalErrorMsg: object not decodable revision={}: {}",
                           kInternalPrefix, kv.key, kv.mod_revision, why.message()));
}

}  // namespace

bool IsReadError(const Error& error) {
  const ErrorDetails* details = error.details();
  return error.Is(Code::kInternal) && details && details->name == kListed && !details->causes.empty() &&
         details->causes[0].reason == kCause;
}

Error TransformError(std::string_view etcd_key, const Error& why) {
  return Error(
      why.Is(Code::kUnavailable) ? Code::kUnavailable : Code::kInternal,
      fmt::format("Internal error occurred: unable to transform key \"{}\": {}", etcd_key, why.message()));
}

Result<> DecodePlain(const etcd::KeyValue& kv, api::Message& object) {
  const bool json = !kv.value.empty() && kv.value[0] == '{';
  Result<> decoded = json ? api::DecodeJson(kv.value, object) : api::DecodeProtobuf(kv.value, object);
  if (decoded) return decoded;
  return Error(Code::kInternal,
               fmt::format("cannot read the value of {}: {}", kv.key, decoded.error().message()));
}

TransformerPtr StoredValueDecoder::TransformerOf(const api::ResourceInfo& stored) const {
  return encryption_ ? encryption_->Of(stored) : nullptr;
}

Result<std::string> StoredValueDecoder::Decrypt(const api::ResourceInfo& stored,
                                                const etcd::KeyValue& kv) const {
  static const TransformerPtr identity = NewIdentity();
  TransformerPtr transformer = TransformerOf(stored);
  Result<Opened> opened = (transformer ? transformer : identity)->FromStorage(kv.value, kv.key);
  if (!opened) return TransformError(kv.key, opened.error());
  return std::move(opened->bytes);
}

Result<ObjectPtr> StoredValueDecoder::Decode(const api::ResourceInfo& stored, std::string_view key,
                                             const etcd::KeyValue& kv) const {
  KEELSON_ASSIGN_OR_RETURN(std::string bytes, Decrypt(stored, kv));
  Result<ObjectPtr> object = Object::FromStored(stored, std::string(key), kv.mod_revision, bytes);
  if (!object) return DecodeError(kv, object.error());
  return object;
}

Result<ObjectPtr> StoredValueDecoder::DecodeLatest(const api::ResourceInfo& stored, std::string_view key,
                                                   const etcd::KeyValue& kv) {
  Result<ObjectPtr> object = Decode(stored, key, kv);
  if (object) {
    Forget(kv.key);
  } else {
    MutexLock lock(mutex_);
    unreadable_.insert_or_assign(kv.key, object.error());
  }
  return object;
}

Result<> StoredValueDecoder::CheckKey(std::string_view etcd_key) const {
  MutexLock lock(mutex_);
  auto found = unreadable_.find(etcd_key);
  if (found == unreadable_.end()) return {};
  return found->second;
}

Result<> StoredValueDecoder::CheckList(const api::ResourceInfo& info, std::string_view ns) const {
  MutexLock lock(mutex_);
  if (unreadable_.empty()) return {};
  std::string prefix(info.etcd_prefix);
  if (!ns.empty()) prefix.append(ns).append("/");
  ErrorDetails details;
  for (auto at = unreadable_.lower_bound(prefix);
       at != unreadable_.end() && at->first.compare(0, prefix.size(), prefix) == 0; ++at) {
    const Error& error = at->second;
    if (!error.Is(Code::kInternal)) return error;
    if (details.causes.size() == kMaxCauses) {
      details.causes.push_back({"FieldValueTooMany", "too many errors, the list is truncated", ""});
      break;
    }
    std::string_view message = error.message();
    if (message.substr(0, kInternalPrefix.size()) == kInternalPrefix) {
      message.remove_prefix(kInternalPrefix.size());
    }
    details.causes.push_back({std::string(kCause), std::string(message), at->first});
  }
  if (details.causes.empty()) return {};
  details.name = kListed;
  details.group = std::string(info.group);
  details.kind = std::string(info.resource);
  return Error(Code::kInternal,
               fmt::format("failed to read one or more {} from the storage", info.GroupResource()))
      .WithDetails(std::move(details));
}

bool StoredValueDecoder::AnyUnreadable() const {
  MutexLock lock(mutex_);
  return !unreadable_.empty();
}

void StoredValueDecoder::Forget(const std::string& etcd_key) {
  MutexLock lock(mutex_);
  if (!unreadable_.empty()) unreadable_.erase(etcd_key);
}

void StoredValueDecoder::ForgetAll() {
  MutexLock lock(mutex_);
  unreadable_.clear();
}

}  // namespace keelson::storage
