// From etcd's values to objects: decrypts, decodes, and remembers which values it could not read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/encryption.h"
#include "controlplane/storage/object.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

// kInternal in upstream's words, or kUnavailable: a KMS is away.
Error TransformError(std::string_view etcd_key, const Error& why);

// Whether a list failed on values that cannot be read: such an error has a cause for each key, and clients
// see it under the reason StorageReadError.
bool IsReadError(const Error& error);

class Opener {  // thread safe
 public:
  explicit Opener(std::shared_ptr<Encryption> encryption) : encryption_(std::move(encryption)) {}

  // null: values are stored as they are.
  TransformerPtr TransformerOf(const api::ResourceInfo& stored) const;
  Result<ObjectPtr> Open(const api::ResourceInfo& stored, std::string_view key,
                         const etcd::KeyValue& kv) const;

  // The same for what the caches follow; what cannot be read is remembered until Forget().
  Result<ObjectPtr> OpenNewest(const api::ResourceInfo& stored, std::string_view key,
                               const etcd::KeyValue& kv);
  void Forget(const std::string& etcd_key);
  void ForgetAll();
  // An error if a remembered key is this one.
  Result<> CheckKey(std::string_view etcd_key) const;
  // A read error that names the remembered keys of a resource (of one namespace, or all), if there are any.
  Result<> CheckList(const api::ResourceInfo& info, std::string_view ns) const;
  bool AnyUnreadable() const;

 private:
  Result<std::string> Decrypt(const api::ResourceInfo& stored, const etcd::KeyValue& kv) const;

  const std::shared_ptr<Encryption> encryption_;
  mutable Mutex mutex_;
  std::map<std::string, Error, std::less<>> unreadable_ GUARDED_BY(mutex_);
};

}  // namespace keelson::storage
