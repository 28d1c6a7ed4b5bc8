#include "controlplane/controllers/validatingadmissionpolicystatus/controller.h"

#include <algorithm>
#include <map>
#include <optional>

#include "controlplane/controllers/common/json_api.h"
#include "lib/api/scheme.h"
#include "lib/base/log.h"
#include "lib/base/percent.h"
#include "lib/client/discovery.h"
#include "lib/k8s/expressions/open_api_types.h"

namespace keelson::controllers {
namespace {

using admissionregistrationv1::ValidatingAdmissionPolicy;

// Kinds of resources: of built-in ones without a request, of others by discovery, which is asked once.
class Mapper {
 public:
  explicit Mapper(client::RestClient api, std::stop_token stop)
      : api_(std::move(api)), stop_(std::move(stop)) {}

  std::string KindOf(std::string_view group, std::string_view version, const std::string& resource) {
    if (const api::ResourceInfo* row = api::FindResource(group, version, resource)) {
      return std::string(row->kind);
    }
    if (group.empty()) return "";
    if (!asked_) {
      asked_ = true;
      Result<client::DiscoveredResources> found = client::Discover(api_, stop_);
      if (found) {
        discovered_ = *std::move(found);
      } else {
        log::Debug("Discovery failed; policies on other than built-in resources are not checked",
                   {{"err", found.error()}});
      }
    }
    const auto& rows = discovered_.resources;
    const auto it = std::find_if(rows.begin(), rows.end(), [&](const api::ResourceInfo* row) {
      return row->group == group && row->version == version && row->resource == resource;
    });
    return it == rows.end() ? "" : std::string((*it)->kind);
  }

 private:
  const client::RestClient api_;
  const std::stop_token stop_;
  bool asked_ = false;
  client::DiscoveredResources discovered_;
};

std::optional<CheckedKind> ParamKindOf(const ValidatingAdmissionPolicy& policy) {
  if (!policy.spec().has_param_kind()) return std::nullopt;
  const auto& kind = policy.spec().param_kind();
  auto [group, version] = api::SplitApiVersion(kind.api_version());
  return CheckedKind{group, version, kind.kind()};
}

using Types = std::map<CheckedKind, cel::DeclTypePtr>;

Result<std::vector<cel::DeclTypePtr>> TypesIn(const client::RestClient& api, const std::string& group,
                                              const std::string& version,
                                              const std::vector<std::string>& kinds) {
  const std::string path = group.empty() ? "api/" : "apis/" + PercentEncode(group) + "/";
  KEELSON_ASSIGN_OR_RETURN(const std::string document,
                           Fetch(api, "/openapi/v3/" + path + PercentEncode(version)));
  return k8s::TypesInOpenApi(document, group, version, kinds);
}

// What is known of kinds, from one document a group version. Checks must not hold a policy up, so that failures leave
// kinds out.
Types TypesOf(const client::RestClient& api, const std::vector<CheckedKind>& kinds) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> documents;
  for (const CheckedKind& one : kinds) documents[{one.group, one.version}].push_back(one.kind);
  Types out;
  for (const auto& [place, names] : documents) {
    const auto& [group, version] = place;
    const auto types = TypesIn(api, group, version, names);
    if (!types) {
      if (!types.error().Is(Code::kNotFound)) {
        log::Debug("Reading the schemas of a group version failed, its kinds are not checked",
                   {{"group", group}, {"version", version}, {"err", types.error()}});
      }
      continue;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if ((*types)[i]) out[{group, version, names[i]}] = (*types)[i];
    }
  }
  return out;
}

std::vector<admissionregistrationv1::ExpressionWarning> Check(const client::RestClient& api,
                                                              const ValidatingAdmissionPolicy& policy,
                                                              std::stop_token stop) {
  Mapper mapper(api, std::move(stop));
  const std::vector<CheckedKind> kinds = KindsToCheck(
      policy, [&](std::string_view group, std::string_view version, const std::string& resource) {
        return mapper.KindOf(group, version, resource);
      });
  const std::optional<CheckedKind> params = ParamKindOf(policy);
  std::vector<CheckedKind> wanted = kinds;
  if (params) wanted.push_back(*params);
  const Types types = TypesOf(api, wanted);
  const auto type_of = [&](const CheckedKind& kind) {
    const auto found = types.find(kind);
    return found == types.end() ? nullptr : found->second;
  };
  std::vector<TypedKind> typed;
  for (const CheckedKind& kind : kinds) {
    if (cel::DeclTypePtr type = type_of(kind)) typed.push_back({kind, std::move(type)});
  }
  return CheckTypes(policy, typed, params ? type_of(*params) : nullptr);
}

}  // namespace

ValidatingAdmissionPolicyStatusController::ValidatingAdmissionPolicyStatusController(
    client::RestClient api, client::InformerFactory& informers, client::EventRecorder&, Clock& clock)
    : Controller("validatingadmissionpolicy-status", clock, 5),
      api_(std::move(api)),
      policies_(informers.Get<ValidatingAdmissionPolicy>()) {
  policies_.AddHandler([this](const client::Change<ValidatingAdmissionPolicy>& change) {
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> ValidatingAdmissionPolicyStatusController::Reconcile(const std::string& key,
                                                                     std::stop_token stop) {
  const auto policy = policies_.Get(key);
  if (!policy || policy->metadata().generation() <= policy->status().observed_generation()) return Requeue{};
  const client::RestClient api = api_.With(stop);
  const auto warnings = Check(api, *policy, stop);
  ValidatingAdmissionPolicy changed = *policy;
  auto& status = *changed.mutable_status();
  status.set_observed_generation(policy->metadata().generation());
  status.clear_type_checking();
  auto& list = *status.mutable_type_checking()->mutable_expression_warnings();
  list.Assign(warnings.begin(), warnings.end());
  Result<ValidatingAdmissionPolicy> stored = api.UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return Requeue{};
}

}  // namespace keelson::controllers
