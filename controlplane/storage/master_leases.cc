#include "controlplane/storage/master_leases.h"

#include <algorithm>

#include "controlplane/storage/stored_value_decoder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::storage {
namespace {

const api::GroupVersionKind kGvk{"", "v1", "Endpoints"};
const std::string kPrefix = "/registry/masterleases/";

Result<corev1::Endpoints> Decode(const etcd::KeyValue& kv) {
  corev1::Endpoints object;
  KEELSON_RETURN_IF_ERROR(DecodePlain(kv, object));
  return object;
}

}  // namespace

Result<> MasterLeases::Renew(const std::string& address, std::chrono::seconds ttl,
                             const etcd::Limits& limits) {
  const std::string key = kPrefix + address;
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_.Range(key, {}, limits));
  corev1::Endpoints object;
  int64_t expected = 0;
  if (!found.kvs.empty()) {
    expected = found.kvs[0].mod_revision;
    if (Result<corev1::Endpoints> stored = Decode(found.kvs[0])) object = std::move(*stored);
  }
  object.clear_subsets();
  object.add_subsets()->add_addresses()->set_ip(address);
  // kube-apiserver counts renewals there.
  object.mutable_metadata()->set_generation(object.metadata().generation() + 1);
  const std::string value = json_ ? api::EncodeJson(object, kGvk) : api::EncodeProtobuf(object, kGvk);
  KEELSON_ASSIGN_OR_RETURN(int64_t lease, client_.GrantLease(ttl, limits));
  KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult written, client_.PutIf(key, value, expected, lease, limits));
  if (!written.succeeded) return Error(Code::kConflict, "another server renews the address " + address);
  return {};
}

Result<> MasterLeases::Remove(const std::string& address, const etcd::Limits& limits) {
  const std::string key = kPrefix + address;
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_.Range(key, {}, limits));
  if (found.kvs.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] etcd::TxnResult deleted,
                           client_.DeleteIf(key, found.kvs[0].mod_revision, limits));
  return {};
}

Result<std::vector<std::string>> MasterLeases::List(const etcd::Limits& limits) {
  etcd::RangeOptions all;
  all.end = etcd::PrefixEnd(kPrefix);
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_.Range(kPrefix, all, limits));
  std::vector<std::string> out;
  for (const etcd::KeyValue& kv : found.kvs) {
    KEELSON_ASSIGN_OR_RETURN(corev1::Endpoints object, Decode(kv));
    if (object.subsets_size() == 0 || object.subsets(0).addresses_size() == 0) continue;
    if (const std::string& ip = object.subsets(0).addresses(0).ip(); !ip.empty()) out.push_back(ip);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace keelson::storage
