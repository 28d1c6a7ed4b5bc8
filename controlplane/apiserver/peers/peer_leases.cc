#include "controlplane/apiserver/peers/peer_leases.h"

#include <fmt/format.h>

#include "controlplane/storage/stored_value_decoder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

const api::GroupVersionKind kGvk{"", "v1", "Endpoints"};
const std::string kPrefix = "/registry/peerserverleases/";
// Of the Endpoints: the server's name once more. Readers go by it, not by the key.
constexpr const char* kIdentityLabel = "apiserverIdentity";
// Two servers of one host have one key.
constexpr int kAttempts = 5;

Result<corev1::Endpoints> Decode(const etcd::KeyValue& kv) {
  corev1::Endpoints object;
  KEELSON_RETURN_IF_ERROR(storage::DecodePlain(kv, object));
  return object;
}

std::string HostPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

void Fill(const std::string& server, const std::string& ip, int port, corev1::Endpoints& object) {
  object.clear_subsets();
  corev1::EndpointSubset& subset = *object.add_subsets();
  subset.add_addresses()->set_ip(ip);
  corev1::EndpointPort& https = *subset.add_ports();
  https.set_name("https");
  https.set_port(port);
  https.set_protocol("TCP");
  (*object.mutable_metadata()->mutable_labels())[kIdentityLabel] = server;
  // kube-apiserver counts renewals there.
  object.mutable_metadata()->set_generation(object.metadata().generation() + 1);
}

}  // namespace

Result<> PeerLeases::Renew(const std::string& server, const std::string& ip, int port,
                           std::chrono::seconds ttl, const etcd::Limits& limits) {
  const std::string key = kPrefix + server;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_->Range(key, {}, limits));
    corev1::Endpoints object;
    int64_t expected = 0;
    if (!found.kvs.empty()) {
      expected = found.kvs[0].mod_revision;
      if (Result<corev1::Endpoints> stored = Decode(found.kvs[0])) object = std::move(*stored);
    }
    Fill(server, ip, port, object);
    const std::string value = json_ ? api::EncodeJson(object, kGvk) : api::EncodeProtobuf(object, kGvk);
    KEELSON_ASSIGN_OR_RETURN(int64_t lease, client_->GrantLease(ttl, limits));
    KEELSON_ASSIGN_OR_RETURN(etcd::TxnResult written, client_->PutIf(key, value, expected, lease, limits));
    if (written.succeeded) return {};
  }
  return Error(Code::kConflict, "another server renews the peer lease of " + server);
}

Result<> PeerLeases::Remove(const std::string& server, const etcd::Limits& limits) {
  const std::string key = kPrefix + server;
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_->Range(key, {}, limits));
  if (found.kvs.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] etcd::TxnResult deleted,
                           client_->DeleteIf(key, found.kvs[0].mod_revision, limits));
  return {};
}

Result<std::map<std::string, std::string>> PeerLeases::List(const etcd::Limits& limits) {
  etcd::RangeOptions all;
  all.end = etcd::PrefixEnd(kPrefix);
  KEELSON_ASSIGN_OR_RETURN(etcd::RangeResult found, client_->Range(kPrefix, all, limits));
  std::map<std::string, std::string> out;
  for (const etcd::KeyValue& kv : found.kvs) {
    KEELSON_ASSIGN_OR_RETURN(corev1::Endpoints object, Decode(kv));
    const auto name = object.metadata().labels().find(kIdentityLabel);
    if (name == object.metadata().labels().end() || object.subsets_size() == 0) continue;
    const corev1::EndpointSubset& subset = object.subsets(0);
    if (subset.addresses_size() == 0 || subset.ports_size() == 0) continue;
    out[name->second] = HostPort(subset.addresses(0).ip(), subset.ports(0).port());
  }
  return out;
}

}  // namespace keelson::apiserver
