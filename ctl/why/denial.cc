#include "ctl/why/denial.h"

#include <array>

namespace keelson::ctl {

namespace {

// In upstream's words; NS is the namespace. The first that fits counts.
struct Refusal {
  const char* words;
  const char* reason;
  const char* sentence;
  const char* next;
};
constexpr std::array<Refusal, 14> kRefusals{{
    {"exceeded quota", "QuotaExceeded", "they exceed a ResourceQuota of the namespace",
     "kubectl -n NS describe resourcequota"},
    {"failed quota", "QuotaExceeded", "a ResourceQuota counts what they do not state",
     "kubectl -n NS describe resourcequota"},
    {"violates PodSecurity", "PodSecurityDenied",
     "the namespace enforces a Pod Security Standard that they break",
     "kubectl get namespace NS --show-labels"},
    {"failed calling webhook", "WebhookUnavailable", "an admission webhook does not answer",
     "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
    {"admission webhook", "WebhookDenied", "an admission webhook denies them",
     "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
    {"ValidatingAdmissionPolicy", "PolicyDenied", "an admission policy denies them",
     "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"},
    {"error looking up service account", "ServiceAccountMissing", "their ServiceAccount does not exist",
     "kubectl -n NS get serviceaccounts"},
    {"no PriorityClass with name", "PriorityClassMissing", "their PriorityClass does not exist",
     "kubectl get priorityclasses"},
    {" usage per ", "LimitRangeDenied", "a LimitRange of the namespace forbids their resources",
     "kubectl -n NS describe limitrange"},
    {"being terminated", "NamespaceTerminating", "the namespace is being deleted",
     "kubectl get namespace NS -o yaml"},
    {"RuntimeClass", "RuntimeClassMissing", "their RuntimeClass is refused", "kubectl get runtimeclasses"},
    {" is invalid: ", "Invalid", "the template is invalid", nullptr},
    {"is forbidden", "Forbidden", "the API server forbids them", nullptr},
    {"", "FailedCreate", "the API server refuses them", nullptr},
}};

std::string WithNamespace(std::string text, const std::string& ns) {
  if (const size_t at = text.find("NS"); at != std::string::npos) text.replace(at, 2, ns);
  return text;
}

}  // namespace

Problem JudgeRefusal(const std::string& what, const std::string& ns, const std::string& refusal) {
  for (const Refusal& one : kRefusals) {
    if (refusal.find(one.words) == std::string::npos) continue;
    Problem out{one.reason, what + ": " + one.sentence, {refusal}};
    if (one.next) out.next.push_back(WithNamespace(one.next, ns));
    return out;
  }
  return {"FailedCreate", what, {refusal}};
}

}  // namespace keelson::ctl
