// List and watch.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/selector.h"

namespace keelson::registry {
namespace {

// events.k8s.io names fields as its own form does; selection happens on the stored form.
std::string StoredField(const ResourceInfo& info, const std::string& field) {
  if (info.group != "events.k8s.io") return field;
  constexpr std::string_view kRegarding = "regarding.";
  if (field.compare(0, kRegarding.size(), kRegarding) == 0)
    return "involvedObject." + field.substr(kRegarding.size());
  if (field == "reportingController") return "reportingComponent";
  return field;
}

}  // namespace

Result<storage::Predicate> Registry::Impl::ParseSelectors(const ResourceInfo& info,
                                                          const ListOptions& options) const {
  storage::Predicate predicate;
  ASSIGN_OR_RETURN(predicate.labels, api::LabelSelector::Parse(options.label_selector));
  ASSIGN_OR_RETURN(predicate.fields, api::FieldSelector::Parse(options.field_selector));
  if (predicate.fields.IsEverything()) return predicate;
  std::vector<std::string> known = api::SelectableFields(storage::StoredAs(info).descriptor());
  for (auto& term : predicate.fields.terms) {
    term.field = StoredField(info, term.field);
    if (term.field == "metadata.name" || (term.field == "metadata.namespace" && info.namespaced)) continue;
    if (std::find(known.begin(), known.end(), term.field) != known.end()) continue;
    return Error(
        Code::kBadRequest,
        fmt::format("Unable to find \"{}, Resource={}\" that match label selector \"{}\", field selector "
                    "\"{}\": field label not supported: {}",
                    info.group.empty() ? "/" + std::string(info.version) : info.ApiVersion(), info.resource,
                    options.label_selector, options.field_selector, term.field));
  }
  return predicate;
}

Result<ObjectList> Registry::List(const ResourceInfo& info, std::string_view ns, const ListOptions& options,
                                  std::stop_token stop) {
  if (options.resource_version_match == "Exact" &&
      (options.resource_version.empty() || options.resource_version == "0"))
    return Error(Code::kBadRequest,
                 "resourceVersionMatch: Forbidden: resourceVersionMatch \"Exact\" is forbidden for "
                 "resourceVersion \"\" and \"0\"");
  if (!options.resource_version_match.empty() && options.resource_version.empty())
    return Error(Code::kBadRequest,
                 "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion "
                 "is provided");
  if (!options.continue_token.empty() && !options.resource_version.empty() && options.resource_version != "0")
    return Error(Code::kBadRequest, "specifying resource version is not allowed when using continue");
  storage::ListRequest request;
  ASSIGN_OR_RETURN(request.predicate, impl_->ParseSelectors(info, options));
  request.ns = ns;
  request.resource_version = options.resource_version;
  request.match = options.resource_version_match;
  request.limit = options.limit;
  request.continue_token = options.continue_token;
  ASSIGN_OR_RETURN(storage::ListResult found, store_.List(info, request, impl_->ReadLimits(stop)));
  return ObjectList{std::move(found.items), found.revision, std::move(found.continue_token), found.remaining};
}

Result<std::unique_ptr<storage::WatchHandle>> Registry::Watch(const ResourceInfo& info, std::string_view ns,
                                                              const ListOptions& options,
                                                              std::shared_ptr<storage::WatchSink> sink,
                                                              std::stop_token stop) {
  storage::WatchRequest request;
  ASSIGN_OR_RETURN(request.predicate, impl_->ParseSelectors(info, options));
  request.ns = std::string(ns);
  request.resource_version = options.resource_version;
  request.bookmarks = options.allow_bookmarks;
  // Without a version to start from, and at "0", a watch tells first what there is.
  bool from_nowhere = options.resource_version.empty() || options.resource_version == "0";
  request.initial_events = options.send_initial_events.value_or(from_nowhere);
  request.initial_events_end = options.send_initial_events.value_or(false) && options.allow_bookmarks;
  if (options.send_initial_events.has_value() && options.resource_version_match != "NotOlderThan")
    return Error(Code::kInvalid,
                 "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
                 "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  return store_.Watch(info, request, std::move(sink), impl_->ReadLimits(stop));
}

}  // namespace keelson::registry
