// CertificateSigningRequest: the requester is fixed on creation, approvers write the conditions Approved
// and Denied, and the signer writes the rest of the status.
#include <vector>

#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"

namespace keelson::registry {
namespace {

namespace certificatesv1 = api::certificates::v1;
using Request = certificatesv1::CertificateSigningRequest;

class CertificateStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  // The server knows the requester; ignore what the request says.
  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& spec = *static_cast<Request&>(object).mutable_spec();
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

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    auto& request = static_cast<Request&>(object);
    const auto& before = static_cast<const Request&>(old);
    if (part == Part::kApproval) {
      certificatesv1::CertificateSigningRequestStatus status = before.status();
      *status.mutable_conditions() = request.status().conditions();
      *request.mutable_spec() = before.spec();
      *request.mutable_status() = std::move(status);
    } else {
      Strategy::PreparePart(context, part, object, old);
      for (const char* decision : {"Approved", "Denied"}) KeepConditions(decision, request, before);
    }
    Stamp(context, request, before);
  }

 private:
  static std::vector<int> Indices(const Request& request, std::string_view type) {
    std::vector<int> out;
    for (int i = 0; i < request.status().conditions_size(); ++i) {
      if (request.status().conditions(i).type() == type) out.push_back(i);
    }
    return out;
  }

  // Keeps the decisions as they were. Validation refuses added or removed ones.
  static void KeepConditions(std::string_view type, Request& request, const Request& before) {
    const std::vector<int> now = Indices(request, type), then = Indices(before, type);
    if (now.size() != then.size()) return;
    for (size_t i = 0; i < now.size(); ++i) {
      *request.mutable_status()->mutable_conditions(now[i]) = before.status().conditions(then[i]);
    }
  }

  static void Stamp(const Context& context, Request& request, const Request& before) {
    const metav1::Time now = api::ToTime(context.clock.Now());
    for (auto& condition : *request.mutable_status()->mutable_conditions()) {
      if (!condition.has_last_update_time()) *condition.mutable_last_update_time() = now;
      if (condition.has_last_transition_time()) continue;
      *condition.mutable_last_transition_time() = now;
      for (const auto& known : before.status().conditions()) {
        if (known.type() != condition.type() || known.status() != condition.status() ||
            !known.has_last_transition_time()) {
          continue;
        }
        *condition.mutable_last_transition_time() = known.last_transition_time();
        break;
      }
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeCertificateStrategy(const ResourceInfo& info) {
  if (info.group != "certificates.k8s.io" || info.resource != "certificatesigningrequests") return nullptr;
  return std::make_unique<CertificateStrategy>(info);
}

}  // namespace keelson::registry
