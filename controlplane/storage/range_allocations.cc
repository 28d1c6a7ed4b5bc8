#include "controlplane/storage/range_allocations.h"

#include <fmt/format.h>

#include "controlplane/storage/stored_value_decoder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::storage {
namespace {

const api::GroupVersionKind kGvk{"", "v1", "RangeAllocation"};

std::string KeyOf(std::string_view name) { return fmt::format("/registry/ranges/{}", name); }

Result<RangeAllocation> Decode(const etcd::KeyValue& kv) {
  corev1::RangeAllocation object;
  KEELSON_RETURN_IF_ERROR(DecodePlain(kv, object));
  return RangeAllocation{object.range(), object.data(), kv.mod_revision};
}

}  // namespace

Result<RangeAllocation> RangeAllocations::Get(std::string_view name, const etcd::Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_.Range(KeyOf(name), {}, limits));
  if (found.kvs.empty()) return RangeAllocation{};
  return Decode(found.kvs[0]);
}

Result<bool> RangeAllocations::Put(std::string_view name, RangeAllocation& wanted,
                                   const etcd::Limits& limits) {
  corev1::RangeAllocation object;
  object.set_range(wanted.range);
  object.set_data(wanted.data);
  const std::string value = json_ ? api::EncodeJson(object, kGvk) : api::EncodeProtobuf(object, kGvk);
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult written,
                           client_.PutIf(KeyOf(name), value, wanted.revision, 0, limits));
  if (written.succeeded) {
    wanted.revision = written.revision;
    return true;
  }
  wanted = {};
  if (written.current) {
    KEELSON_ASSIGN_OR_RETURN(wanted, Decode(*written.current));
  }
  return false;
}

}  // namespace keelson::storage
