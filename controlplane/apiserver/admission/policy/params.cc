#include "controlplane/apiserver/admission/policy/params.h"

#include <fmt/format.h>

#include "lib/api/selector.h"

namespace keelson::apiserver::policy {
namespace {

constexpr std::chrono::seconds kPatience{1};

Error Misconfigured(std::string message) { return Error(Code::kInvalid, std::move(message)); }

}  // namespace

Result<const api::ResourceInfo*> ResourceOfParams(const api::admissionregistration::v1::ParamKind& kind,
                                                  const KindFinder& find_kind) {
  const auto [group, version] = api::SplitApiVersion(kind.api_version());
  const api::ResourceInfo* row = find_kind(group, version, kind.kind());
  if (row && !row->etcd_prefix.empty()) return row;
  return Misconfigured(fmt::format("failed to find resource referenced by paramKind: '{}/{}, Kind={}'", group,
                                   version, kind.kind()));
}

Result<std::vector<Param>> CollectParams(const api::ResourceInfo& row,
                                         const api::admissionregistration::v1::ParamRef& reference,
                                         std::string_view ns, storage::Store& store, SteadyTime deadline) {
  if (row.namespaced && !reference.namespace_().empty()) ns = reference.namespace_();
  if (row.namespaced && ns.empty()) {
    return Misconfigured(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  }
  if (!row.namespaced && !reference.namespace_().empty()) {
    return Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  const storage::Limits limits{std::min(deadline, SteadyTime::clock::now() + kPatience), {}};
  if (row.IsCustom()) KEELSON_RETURN_IF_ERROR(store.Ensure(row, limits));
  std::vector<Param> out;
  if (!reference.name().empty()) {
    const std::string key =
        row.namespaced ? fmt::format("{}/{}", ns, reference.name()) : std::string(reference.name());
    storage::ObjectPtr found = store.Peek(row, key);
    // It may be too new for the cache.
    if (!found) {
      KEELSON_ASSIGN_OR_RETURN(found, store.Get(row, key, "", limits));
    }
    if (found) out.push_back({found->Decode(), &row});
  } else {
    KEELSON_ASSIGN_OR_RETURN(const api::LabelSelector selector,
                             api::LabelSelector::From(reference.selector()));
    const auto take = [&](const storage::ObjectPtr& object) {
      if (object->Matches(selector, {})) out.push_back({object->Decode(), &row});
    };
    row.namespaced ? store.ForEachIn(row, ns, take) : store.ForEach(row, take);
  }
  if (out.empty() && reference.parameter_not_found_action() == "Deny") {
    return Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction");
  }
  return out;
}

}  // namespace keelson::apiserver::policy
