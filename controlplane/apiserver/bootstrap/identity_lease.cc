#include "controlplane/apiserver/bootstrap/identity_lease.h"

#include <unistd.h>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/meta.h"
#include "lib/api/types.h"
#include "lib/crypto/digest.h"

namespace keelson::apiserver {
namespace {

using coordinationv1::Lease;

constexpr const char* kNamespace = "kube-system";
constexpr const char* kNamePrefix = "apiserver-";
constexpr const char* kIdentityLabel = "apiserver.kubernetes.io/identity";
constexpr const char* kIdentity = "kube-apiserver";
constexpr const char* kHostLabel = "kubernetes.io/hostname";
constexpr std::chrono::seconds kDuration{3600};

std::string HostName() {
  char host[256] = "";
  (void)gethostname(host, sizeof host - 1);
  return host;
}

// RFC 4648, lower case, without padding.
std::string Base32(std::string_view bytes) {
  constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz234567";
  std::string out;
  unsigned held = 0;
  int bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 5; bits -= 5) out += kDigits[held >> (bits - 5) & 31];
    held &= 31;
  }
  if (bits > 0) out += kDigits[held << (5 - bits) & 31];
  return out;
}

const api::ResourceInfo& Leases() {
  static const api::ResourceInfo& row = api::ResourceOf<Lease>();
  return row;
}

void Renew(Lease& lease, const std::string& host, const std::string& holder, WallTime now) {
  (*lease.mutable_metadata()->mutable_labels())[kIdentityLabel] = kIdentity;
  (*lease.mutable_metadata()->mutable_labels())[kHostLabel] = host;
  lease.mutable_spec()->set_holder_identity(holder);
  lease.mutable_spec()->set_lease_duration_seconds(static_cast<int32_t>(kDuration.count()));
  *lease.mutable_spec()->mutable_renew_time() = api::ToMicroTime(now);
}

bool IsOfApiServer(const Lease& lease) {
  const auto& labels = lease.metadata().labels();
  const auto found = labels.find(kIdentityLabel);
  return found != labels.end() && found->second == kIdentity;
}

bool IsExpired(const Lease& lease, WallTime now) {
  if (!IsOfApiServer(lease)) return false;
  if (!lease.spec().has_renew_time() || !lease.spec().has_lease_duration_seconds()) return true;
  return api::FromMicroTime(lease.spec().renew_time()) +
             std::chrono::seconds(lease.spec().lease_duration_seconds()) <
         now;
}

}  // namespace

std::string IdentityLeaseName(const std::string& host_name) {
  return kNamePrefix + Base32(crypto::Sha256(host_name).substr(0, 16));
}

std::string OwnIdentityLeaseName() { return IdentityLeaseName(HostName()); }

std::string IdentityHolder() { return OwnIdentityLeaseName() + "_" + api::NewUid(); }

Result<> EnsureIdentityLease(registry::Registry& registry, const std::string& holder, WallTime now,
                             std::stop_token stop) {
  const std::string host = HostName(), name = IdentityLeaseName(host);
  Result<registry::ObjectPtr> found = registry.Get(Leases(), kNamespace, name, "", stop);
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  if (!found) {
    Lease lease;
    lease.mutable_metadata()->set_namespace_(kNamespace);
    lease.mutable_metadata()->set_name(name);
    Renew(lease, host, holder, now);
    return CreateIfAbsent(registry, lease, stop);
  }
  auto renewed = registry.Modify(
      Leases(), kNamespace, name,
      [&](api::Message& object) -> Result<> {
        Renew(static_cast<Lease&>(object), host, holder, now);
        return {};
      },
      BootstrapWrite(stop));
  if (!renewed) return renewed.error().Wrap("renew Lease " + name);
  return {};
}

Result<> RemoveExpiredIdentityLeases(registry::Registry& registry, WallTime now, std::stop_token stop) {
  std::vector<metav1::ObjectMeta> expired;
  registry.store().ForEachIn(Leases(), kNamespace, [&](const storage::ObjectPtr& object) {
    const auto lease = std::static_pointer_cast<const Lease>(object->Decode());
    if (IsExpired(*lease, now)) expired.push_back(lease->metadata());
  });
  for (const metav1::ObjectMeta& meta : expired) {
    // Not one that its server has renewed meanwhile.
    metav1::DeleteOptions options;
    options.mutable_preconditions()->set_uid(meta.uid());
    options.mutable_preconditions()->set_resource_version(meta.resource_version());
    auto deleted = registry.Delete(Leases(), kNamespace, meta.name(), options, BootstrapWrite(stop));
    if (deleted || deleted.error().Is(Code::kNotFound) || deleted.error().Is(Code::kConflict)) continue;
    return deleted.error().Wrap("remove Lease " + meta.name());
  }
  return {};
}

std::map<std::string, std::string> IdentityHolders(const storage::Store& store) {
  std::map<std::string, std::string> out;
  store.ForEachIn(Leases(), kNamespace, [&](const storage::ObjectPtr& object) {
    if (!object->name().starts_with(kNamePrefix)) return;
    const auto lease = std::static_pointer_cast<const Lease>(object->Decode());
    if (!IsOfApiServer(*lease) || lease->spec().holder_identity().empty()) return;
    out[lease->metadata().name()] = lease->spec().holder_identity();
  });
  return out;
}

}  // namespace keelson::apiserver
