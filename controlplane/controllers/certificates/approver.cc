#include "controlplane/controllers/certificates/approver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace keelson::controllers {
namespace {

struct Permission {
  const char* subresource;
  bool own;  // the requester must be the subject
  const char* message;
};
constexpr Permission kPermissions[] = {
    {"selfnodeclient", true, "Auto approving self kubelet client certificate after SubjectAccessReview."},
    {"nodeclient", false, "Auto approving kubelet client certificate after SubjectAccessReview."},
};

Result<bool> Allowed(const client::RestClient& api, const CertificateSigningRequest& request,
                     const Permission& permission) {
  authorizationv1::SubjectAccessReview review;
  auto& spec = *review.mutable_spec();
  spec.set_user(request.spec().username());
  spec.set_uid(request.spec().uid());
  *spec.mutable_groups() = request.spec().groups();
  for (const auto& [name, values] : request.spec().extra()) {
    *(*spec.mutable_extra())[name].mutable_items() = values.items();
  }
  auto& what = *spec.mutable_resource_attributes();
  what.set_group("certificates.k8s.io");
  what.set_version("*");
  what.set_resource("certificatesigningrequests");
  what.set_subresource(permission.subresource);
  what.set_verb("create");
  KEELSON_ASSIGN_OR_RETURN(authorizationv1::SubjectAccessReview answer, api.Create(review));
  return answer.status().allowed();
}

}  // namespace

CertificateApprover::CertificateApprover(client::RestClient api, client::InformerFactory& informers,
                                         client::EventRecorder&, Clock& clock)
    : Controller("certificate", clock),
      api_(std::move(api)),
      requests_(informers.Get<CertificateSigningRequest>()) {
  requests_.AddHandler([this](const auto& change) {
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> CertificateApprover::Reconcile(const std::string& key, std::stop_token stop) {
  auto request = requests_.Get(key);
  if (!request || !request->status().certificate().empty()) return Requeue{};
  if (ConditionOf(*request, "Approved") || ConditionOf(*request, "Denied")) return Requeue{};
  if (request->spec().signer_name() != kKubeletClientSigner) return Requeue{};
  auto asked = crypto::InspectRequest(request->spec().request());
  if (!asked) return asked.error().Wrap(fmt::format("unable to parse csr \"{}\"", key));
  if (!CheckKubeletClient(*asked, request->spec().usages())) return Requeue{};

  const client::RestClient api = api_.With(stop);
  std::vector<std::string> tried;
  for (const Permission& permission : kPermissions) {
    if (permission.own && request->spec().username() != asked->common_name) continue;
    tried.push_back(permission.subresource);
    KEELSON_ASSIGN_OR_RETURN(bool allowed, Allowed(api, *request, permission));
    if (!allowed) continue;
    CertificateSigningRequest approved = *request;
    AddCondition(approved, "Approved", "AutoApproved", permission.message, clock().Now());
    auto stored = api.Update(approved, "approval");
    if (!stored) return stored.error().Wrap("error updating approval for csr");
    return Requeue{};
  }
  // Retry: the permission may be granted later.
  return Error(Code::kForbidden,
               fmt::format("recognized csr \"{}\" as [{}] but subject access review was not approved", key,
                           fmt::join(tried, " ")));
}

}  // namespace keelson::controllers
