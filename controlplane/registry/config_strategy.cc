// Secret, PersistentVolume, PersistentVolumeClaim, CertificateSigningRequest.
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"

namespace keelson::registry {
namespace {

namespace certificatesv1 = api::certificates::v1;

class SecretStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    Fold(object);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    Fold(object);
  }

 private:
  // stringData is for writing only: it goes into data, over what is there.
  static void Fold(Message& object) {
    auto& secret = static_cast<corev1::Secret&>(object);
    for (const auto& entry : secret.string_data()) (*secret.mutable_data())[entry.first] = entry.second;
    secret.clear_string_data();
  }
};

// Both kinds of volume start out Pending.
template <typename Volume>
class VolumeStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    static_cast<Volume&>(object).mutable_status()->set_phase("Pending");
  }
};

class CsrStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  // Who asks is what the server knows, not what the request says.
  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& spec = *static_cast<certificatesv1::CertificateSigningRequest&>(object).mutable_spec();
    const UserInfo& user = context.options.user;
    spec.set_username(user.name);
    spec.set_uid(user.uid);
    spec.clear_groups();
    for (const std::string& group : user.groups) spec.add_groups(group);
    spec.clear_extra();
    for (const auto& [key, values] : user.extra) {
      for (const std::string& value : values) (*spec.mutable_extra())[key].add_items(value);
    }
    if (user.name.empty()) spec.clear_username();
    if (user.uid.empty()) spec.clear_uid();
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    CopyField(old, object, "spec");
  }

  // Approval decides on Approved and Denied; status (the signer) on everything else.
  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    auto& csr = static_cast<certificatesv1::CertificateSigningRequest&>(object);
    const auto& before = static_cast<const certificatesv1::CertificateSigningRequest&>(old);
    if (part == Part::kApproval) {
      certificatesv1::CertificateSigningRequest merged = before;
      merged.mutable_metadata()->set_resource_version(csr.metadata().resource_version());
      *merged.mutable_status()->mutable_conditions() = csr.status().conditions();
      csr = std::move(merged);
      Stamp(context, csr);
      return;
    }
    Strategy::PreparePart(context, part, object, old);
    if (part == Part::kStatus) Stamp(context, csr);
  }

 private:
  static void Stamp(const Context& context, certificatesv1::CertificateSigningRequest& csr) {
    for (auto& condition : *csr.mutable_status()->mutable_conditions()) {
      if (!condition.has_last_update_time())
        *condition.mutable_last_update_time() = api::ToTime(context.clock.Now());
      if (!condition.has_last_transition_time())
        *condition.mutable_last_transition_time() = api::ToTime(context.clock.Now());
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeConfigStrategy(const ResourceInfo& info) {
  if (info.group.empty() && info.resource == "secrets") return std::make_unique<SecretStrategy>(info);
  if (info.group.empty() && info.resource == "persistentvolumes")
    return std::make_unique<VolumeStrategy<corev1::PersistentVolume>>(info);
  if (info.group.empty() && info.resource == "persistentvolumeclaims")
    return std::make_unique<VolumeStrategy<corev1::PersistentVolumeClaim>>(info);
  if (info.group == "certificates.k8s.io" && info.resource == "certificatesigningrequests")
    return std::make_unique<CsrStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry
