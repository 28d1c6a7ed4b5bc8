#include "controlplane/controllers/certificates/requests.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kNodes[] = "system:nodes", kNodePrefix[] = "system:node:";

Error Refused(const char* why) { return Error(Code::kBadRequest, why); }

// `purpose` and digital signature; key encipherment as well, for RSA keys.
Result<> CheckUsages(const Usages& usages, const char* purpose) {
  const std::set<std::string> asked(usages.begin(), usages.end()), wanted = {"digital signature", purpose};
  std::set<std::string> with_rsa = wanted;
  with_rsa.insert("key encipherment");
  if (asked == wanted || asked == with_rsa) return {};
  return Error(Code::kBadRequest, fmt::format("usages did not match [{}]", fmt::join(with_rsa, " ")));
}

Result<> CheckNode(const crypto::RequestedCertificate& asked) {
  if (asked.organizations != std::vector<std::string>{kNodes}) {
    return Refused("subject organization is not system:nodes");
  }
  return {};
}

Result<> CheckNodeName(const crypto::RequestedCertificate& asked) {
  if (asked.common_name.rfind(kNodePrefix, 0) != 0) {
    return Refused("subject common name does not begin with system:node:");
  }
  return {};
}

Result<> CheckApiServerClient(const Usages& usages) {
  bool client = false;
  for (const std::string& usage : usages) {
    client |= usage == "client auth";
    if (usage != "digital signature" && usage != "key encipherment" && usage != "client auth") {
      return Error(Code::kBadRequest, "invalid usage for client certificate: " + usage);
    }
  }
  if (!client) return Refused("missing required usage for client certificate: client auth");
  return {};
}

}  // namespace

const certificatesv1::CertificateSigningRequestCondition* ConditionOf(
    const CertificateSigningRequest& request, std::string_view type) {
  for (const auto& condition : request.status().conditions()) {
    if (condition.type() == type) return &condition;
  }
  return nullptr;
}

void AddCondition(CertificateSigningRequest& request, const char* type, const char* reason,
                  const std::string& message, WallTime now) {
  auto& condition = *request.mutable_status()->add_conditions();
  condition.set_type(type);
  condition.set_status("True");
  condition.set_reason(reason);
  condition.set_message(message);
  *condition.mutable_last_update_time() = api::ToTime(now);
}

Result<> CheckKubeletClient(const crypto::RequestedCertificate& asked, const Usages& usages) {
  KEELSON_RETURN_IF_ERROR(CheckNode(asked));
  if (!asked.dns_names.empty()) return Refused("DNS subjectAltNames are not allowed");
  if (!asked.emails.empty()) return Refused("Email subjectAltNames are not allowed");
  if (!asked.ip_addresses.empty()) return Refused("IP subjectAltNames are not allowed");
  if (!asked.uris.empty()) return Refused("URI subjectAltNames are not allowed");
  KEELSON_RETURN_IF_ERROR(CheckNodeName(asked));
  return CheckUsages(usages, "client auth");
}

Result<> CheckKubeletServing(const crypto::RequestedCertificate& asked, const Usages& usages) {
  KEELSON_RETURN_IF_ERROR(CheckNode(asked));
  if (asked.dns_names.empty() && asked.ip_addresses.empty()) {
    return Refused("DNS or IP subjectAltName is required");
  }
  if (!asked.emails.empty()) return Refused("Email subjectAltNames are not allowed");
  if (!asked.uris.empty()) return Refused("URI subjectAltNames are not allowed");
  KEELSON_RETURN_IF_ERROR(CheckUsages(usages, "server auth"));
  return CheckNodeName(asked);
}

Result<> CheckForSigner(const std::string& signer, const crypto::RequestedCertificate& asked,
                        const Usages& usages) {
  if (signer == kApiServerClientSigner) return CheckApiServerClient(usages);
  if (signer == kKubeletClientSigner) return CheckKubeletClient(asked, usages);
  if (signer == kKubeletServingSigner) return CheckKubeletServing(asked, usages);
  return {};  // kubernetes.io/legacy-unknown has no rules
}

}  // namespace keelson::controllers
