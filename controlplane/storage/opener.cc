#include "controlplane/storage/opener.h"

#include <fmt/format.h>

namespace keelson::storage {

Error TransformError(std::string_view etcd_key, const Error& why) {
  return Error(
      why.Is(Code::kUnavailable) ? Code::kUnavailable : Code::kInternal,
      fmt::format("Internal error occurred: unable to transform key \"{}\": {}", etcd_key, why.message()));
}

TransformerPtr Opener::TransformerOf(const api::ResourceInfo& stored) const {
  return encryption_ ? encryption_->Of(stored) : nullptr;
}

Result<std::string> Opener::Decrypt(const api::ResourceInfo& stored, const etcd::KeyValue& kv) const {
  static const TransformerPtr identity = NewIdentity();
  TransformerPtr transformer = TransformerOf(stored);
  Result<Opened> opened = (transformer ? transformer : identity)->FromStorage(kv.value, kv.key);
  if (!opened) return TransformError(kv.key, opened.error());
  return std::move(opened->bytes);
}

Result<ObjectPtr> Opener::Open(const api::ResourceInfo& stored, std::string_view key,
                               const etcd::KeyValue& kv) const {
  ASSIGN_OR_RETURN(std::string bytes, Decrypt(stored, kv));
  return Object::FromStored(stored, std::string(key), kv.mod_revision, bytes);
}

Result<ObjectPtr> Opener::OpenNewest(const api::ResourceInfo& stored, std::string_view key,
                                     const etcd::KeyValue& kv) {
  Result<std::string> bytes = Decrypt(stored, kv);
  if (!bytes) {
    MutexLock lock(mutex_);
    unreadable_.insert_or_assign(kv.key, bytes.error());
    return bytes.error();
  }
  Forget(kv.key);
  return Object::FromStored(stored, std::string(key), kv.mod_revision, *bytes);
}

Result<> Opener::CheckReadable(std::string_view etcd_prefix, std::string_view ns) const {
  MutexLock lock(mutex_);
  if (unreadable_.empty()) return {};
  std::string prefix(etcd_prefix);
  if (!ns.empty()) prefix.append(ns).append("/");
  auto found = unreadable_.lower_bound(prefix);
  if (found == unreadable_.end() || found->first.compare(0, prefix.size(), prefix) != 0) return {};
  return found->second;
}

bool Opener::AnyUnreadable() const {
  MutexLock lock(mutex_);
  return !unreadable_.empty();
}

void Opener::Forget(const std::string& etcd_key) {
  MutexLock lock(mutex_);
  if (!unreadable_.empty()) unreadable_.erase(etcd_key);
}

void Opener::ForgetAll() {
  MutexLock lock(mutex_);
  unreadable_.clear();
}

}  // namespace keelson::storage
