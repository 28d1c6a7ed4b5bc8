// Turns etcd values into objects: decrypts and decodes them, and remembers those that cannot be read.
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

// The error of a value that cannot be encrypted or decrypted: kInternal with upstream's text, or kUnavailable
// when a KMS does not answer.
Error TransformError(std::string_view etcd_key, const Error& why);

// Whether a list failed because of values that cannot be read. Such an error has a cause for each key, and
// clients see it with the reason StorageReadError.
bool IsReadError(const Error& error);

// Reads a value that is not encrypted: JSON, or protobuf in its envelope. kInternal: it is neither, with the key.
Result<> DecodePlain(const etcd::KeyValue& kv, api::Message& object);

class StoredValueDecoder {  // thread safe
 public:
  // `encryption` null: values are stored as they are.
  explicit StoredValueDecoder(std::shared_ptr<Encryption> encryption) : encryption_(std::move(encryption)) {}

  // The transformer for values of a resource; null: they are stored as they are.
  TransformerPtr TransformerOf(const api::ResourceInfo& stored) const;
  // The object in `kv`, whose key inside the resource is `key`. kInternal: the value cannot be decrypted or
  // decoded; kUnavailable: a KMS does not answer.
  Result<ObjectPtr> Decode(const api::ResourceInfo& stored, std::string_view key,
                           const etcd::KeyValue& kv) const;

  // Decode() for the latest value of a key: remembers the key when the value cannot be read, and forgets it
  // when it can.
  Result<ObjectPtr> DecodeLatest(const api::ResourceInfo& stored, std::string_view key,
                                 const etcd::KeyValue& kv);
  // Forgets a key that was remembered as unreadable, or all of them.
  void Forget(const std::string& etcd_key);
  void ForgetAll();
  // The error of a remembered key; none for other keys.
  Result<> CheckKey(std::string_view etcd_key) const;
  // A read error that names the remembered keys of a resource (of one namespace, or all), if there are any.
  Result<> CheckList(const api::ResourceInfo& info, std::string_view ns) const;
  // Whether any key is remembered.
  bool AnyUnreadable() const;

 private:
  Result<std::string> Decrypt(const api::ResourceInfo& stored, const etcd::KeyValue& kv) const;

  const std::shared_ptr<Encryption> encryption_;
  mutable Mutex mutex_;
  std::map<std::string, Error, std::less<>> unreadable_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::storage
