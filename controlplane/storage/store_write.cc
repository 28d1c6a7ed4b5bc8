// Writes of the store: transactions on etcd.
#include "controlplane/storage/convert.h"
#include "controlplane/storage/etcd_metrics.h"
#include "controlplane/storage/store_impl.h"
#include "controlplane/storage/versions/stored_versions.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::storage {

Result<ObjectPtr> Store::Put(const api::ResourceInfo& info, std::string_view key, const api::Message& message,
                             int64_t expected, std::chrono::seconds ttl, Conflict& conflict,
                             const Limits& limits, const Precondition* precondition) {
  const api::ResourceInfo& stored = StoredAs(info);
  std::unique_ptr<api::Message> converted;
  if (&stored != &info) {
    KEELSON_ASSIGN_OR_RETURN(converted, ConvertMessage(info, message, stored, limits));
  }
  const api::Message& kept = converted ? *converted : message;
  const std::string etcd_key = std::string(info.etcd_prefix) + std::string(key);
  const bool as_json = impl_->options.json || info.IsCustom();
  const api::GroupVersionKind gvk = WrittenGvk(stored);
  std::string value = as_json ? api::EncodeJson(kept, gvk) : api::EncodeProtobuf(kept, gvk);
  if (TransformerPtr transformer = impl_->decoder.TransformerOf(stored)) {
    Result<std::string> sealed = transformer->ToStorage(value, etcd_key);
    if (!sealed) return TransformError(etcd_key, sealed.error());
    value = std::move(*sealed);
  }
  int64_t lease = 0;
  if (ttl.count() > 0) {
    KEELSON_ASSIGN_OR_RETURN(lease, impl_->leases.LeaseFor(ttl, limits));
  }
  std::optional<etcd::Guard> guard;
  if (precondition) {
    guard = {std::string(precondition->info.etcd_prefix) + precondition->key, precondition->revision};
  }
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured(expected == 0 ? "create" : "update", info, [&] {
                             return impl_->client->PutIf(etcd_key, value, expected, lease, limits,
                                                         guard ? &*guard : nullptr);
                           }));
  // The object as readers will see it: a conversion between versions may change it.
  if (txn.succeeded) {
    const ObjectPtr written = Object::FromMessage(stored, kept, txn.revision);
    return NeedsWebhook(stored, info) ? written->As(info, message) : written->In(info);
  }
  conflict.current = nullptr;
  conflict.precondition_fails = guard && (txn.current ? txn.current->mod_revision : 0) == expected;
  if (txn.current) {
    Result<ObjectPtr> current = impl_->decoder.Decode(stored, key, *txn.current);
    if (current) current = ConvertOne(std::move(*current), info, limits);
    if (current) {
      conflict.current = std::move(*current);
    } else if (expected != 0) {
      return current.error();
    }
    // An object that cannot be read makes a create fail all the same.
  }
  return Error(Code::kConflict, "the stored object is another one");
}

bool Store::IsStale(const api::ResourceInfo& info, const Object& object, const Limits& limits) {
  if (info.IsCustom() ? object.stored_as() && object.stored_as() != &StoredAs(info)
                      : object.stored_as_json() != impl_->options.json) {
    return true;
  }
  TransformerPtr transformer = impl_->decoder.TransformerOf(StoredAs(info));
  // Without a configuration no value is stale.
  if (!transformer) return false;
  std::string etcd_key = std::string(info.etcd_prefix) + object.key();
  Result<etcd::RangeResult> range =
      Measured("get", info, [&] { return impl_->client->Range(etcd_key, {}, limits); });
  if (!range || range->kvs.empty() || range->kvs[0].mod_revision != object.revision()) return false;
  Result<Opened> opened = transformer->FromStorage(range->kvs[0].value, etcd_key);
  return opened && opened->stale;
}

Result<int64_t> Store::Delete(const api::ResourceInfo& info, std::string_view key, int64_t expected,
                              Conflict& conflict, const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured("delete", info, [&] {
                             return impl_->client->DeleteIf(std::string(info.etcd_prefix) + std::string(key),
                                                            expected, limits);
                           }));
  if (txn.succeeded) return txn.revision;
  conflict.current = nullptr;
  if (txn.current) {
    KEELSON_ASSIGN_OR_RETURN(ObjectPtr current, impl_->decoder.Decode(StoredAs(info), key, *txn.current));
    KEELSON_ASSIGN_OR_RETURN(conflict.current, ConvertOne(std::move(current), info, limits));
  }
  return Error(Code::kConflict, "the stored object is another one");
}

Result<bool> Store::DeleteUnreadable(const api::ResourceInfo& info, std::string_view key,
                                     const Limits& limits) {
  const std::string etcd_key = std::string(info.etcd_prefix) + std::string(key);
  while (true) {
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult range, Measured("get", info, [&] {
                               return impl_->client->Range(etcd_key, {}, limits);
                             }));
    if (range.kvs.empty()) return false;
    Result<ObjectPtr> object = impl_->decoder.Decode(StoredAs(info), key, range.kvs[0]);
    if (object) return false;
    if (!object.error().Is(Code::kInternal)) return object.error();
    KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult txn, Measured("delete", info, [&] {
                               return impl_->client->DeleteIf(etcd_key, range.kvs[0].mod_revision, limits);
                             }));
    if (!txn.succeeded) continue;  // the object has changed meanwhile: try again
    log::Warn("Deleted a stored object that could not be read", {{"key", etcd_key}, {"err", object.error()}});
    return true;
  }
}

}  // namespace keelson::storage
