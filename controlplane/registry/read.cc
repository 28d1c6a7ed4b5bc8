// List and watch.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/selector.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

constexpr std::string_view kExact = "Exact", kNotOlderThan = "NotOlderThan";

// events.k8s.io has its own field names; selectors work on the stored form.
std::string StoredField(const ResourceInfo& info, const std::string& field) {
  if (info.group == "events.k8s.io") {
    constexpr std::string_view kRegarding = "regarding.";
    if (field.compare(0, kRegarding.size(), kRegarding) == 0) {
      return "involvedObject." + field.substr(kRegarding.size());
    }
    if (field == "reportingController") return "reportingComponent";
  }
  if (info.kind == "Pod" && field == "spec.host") return "spec.nodeName";
  return field;
}

// Upstream's message depends on whether the kind has selectable fields of its own.
Error NotSelectable(const ResourceInfo& info, bool has_own_fields, const std::string& field) {
  std::string message = fmt::format(
      "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", field);
  if (info.kind == "Job") {
    message = fmt::format("field label \"{}\" not supported for batchv1.Job", field);
  } else if (info.kind == "ResourceSlice") {
    message =
        fmt::format("field label not supported for {}, Kind={}: {}", info.ApiVersion(), info.kind, field);
  } else if (has_own_fields || info.IsCustom()) {
    message = fmt::format("field label not supported: {}", field);
  }
  return Error(Code::kBadRequest, std::move(message));
}

Error InvalidOptions(const k8s::FieldErrors& errors) {
  return k8s::ToInvalid({"meta.k8s.io", "v1", "ListOptions"}, "", errors);
}

Result<> ValidateList(const ListOptions& options) {
  const k8s::Path match("resourceVersionMatch");
  const std::string& value = options.resource_version_match;
  k8s::FieldErrors errors;
  if (!value.empty()) {
    if (options.resource_version.empty()) {
      errors.push_back(
          k8s::Forbidden(match, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!options.continue_token.empty()) {
      errors.push_back(k8s::Forbidden(match, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (value != kExact && value != kNotOlderThan) {
      errors.push_back(k8s::NotSupported(match, value, {kExact, kNotOlderThan, ""}));
    }
    if (value == kExact && options.resource_version == "0") {
      errors.push_back(
          k8s::Forbidden(match, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
    }
  }
  if (options.send_initial_events) {
    errors.push_back(
        k8s::Forbidden(k8s::Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"));
  }
  if (errors.empty()) return {};
  return InvalidOptions(errors);
}

Result<> ValidateWatch(const ListOptions& options) {
  const k8s::Path match("resourceVersionMatch");
  const std::string& value = options.resource_version_match;
  k8s::FieldErrors errors;
  if (options.send_initial_events && value != kNotOlderThan) {
    errors.push_back(
        k8s::Forbidden(match, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  }
  if (!value.empty()) {
    if (!options.send_initial_events) {
      errors.push_back(k8s::Forbidden(
          match, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    }
    if (value != kNotOlderThan) errors.push_back(k8s::NotSupported(match, value, {kNotOlderThan}));
    if (!options.continue_token.empty()) {
      errors.push_back(k8s::Forbidden(match, "resourceVersionMatch is forbidden when continue is provided"));
    }
  }
  if (errors.empty()) return {};
  return InvalidOptions(errors);
}

std::vector<std::string> SelectableFieldsOf(const ResourceInfo& info) {
  if (!info.IsCustom()) return api::SelectableFields(storage::StoredAs(info).descriptor());
  std::vector<std::string> fields = {"metadata.name"};
  if (info.namespaced) fields.emplace_back("metadata.namespace");
  if (auto version = apiextensions::CustomOf(info)->owner->VersionOf(info)) {
    fields.insert(fields.end(), version->selectable_fields.begin(), version->selectable_fields.end());
  }
  return fields;
}

// The value that a selector fixes a field to; null: none.
const std::string* Pinned(const api::FieldSelector& fields, std::string_view field) {
  for (const auto& term : fields.terms) {
    if (term.equal && term.field == field) return &term.value;
  }
  return nullptr;
}

}  // namespace

Result<storage::Predicate> Registry::Impl::ParseSelectors(const ResourceInfo& info,
                                                          const ListOptions& options) const {
  storage::Predicate predicate;
  KEELSON_ASSIGN_OR_RETURN(predicate.labels, api::LabelSelector::Parse(options.label_selector));
  KEELSON_ASSIGN_OR_RETURN(predicate.fields, api::FieldSelector::Parse(options.field_selector));
  std::vector<std::string> known = SelectableFieldsOf(info);
  bool has_own_fields = std::any_of(known.begin(), known.end(), [](const std::string& field) {
    return field.compare(0, 9, "metadata.") != 0;
  });
  for (auto& term : predicate.fields.terms) {
    std::string asked = std::exchange(term.field, StoredField(info, term.field));
    // Field names of the stored form are invalid in this version.
    bool foreign = asked == term.field && info.group == "events.k8s.io" &&
                   (asked.compare(0, 15, "involvedObject.") == 0 || asked == "reportingComponent");
    bool is_known = std::find(known.begin(), known.end(), term.field) != known.end();
    // Built-in kinds without fields of their own accept both names, whether they are namespaced or not.
    bool common =
        !has_own_fields && !info.IsCustom() && (asked == "metadata.name" || asked == "metadata.namespace");
    if (foreign || (!is_known && !common)) return NotSelectable(info, has_own_fields, asked);
  }
  if (options.name.empty()) return predicate;
  if (predicate.fields.IsEverything()) {
    predicate.fields.terms.push_back({"metadata.name", options.name, true});
  } else if (const std::string* name = Pinned(predicate.fields, "metadata.name");
             !name || *name != options.name) {
    return Error(Code::kBadRequest, "fieldSelector metadata.name doesn't match requested name");
  }
  return predicate;
}

Result<ObjectList> Registry::List(const ResourceInfo& info, std::string_view ns, const ListOptions& options,
                                  std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(ValidateList(options));
  storage::ListRequest request;
  KEELSON_ASSIGN_OR_RETURN(request.predicate, impl_->ParseSelectors(info, options));
  request.ns = ns;
  if (const std::string* pinned = Pinned(request.predicate.fields, "metadata.namespace");
      pinned && ns.empty() && info.namespaced && !pinned->empty()) {
    request.ns = *pinned;
  }
  if (const std::string* name = Pinned(request.predicate.fields, "metadata.name");
      name && !name->empty() && (!info.namespaced || !request.ns.empty())) {
    request.name = *name;
  }
  request.resource_version = options.resource_version;
  request.match = options.resource_version_match;
  request.limit = options.limit;
  request.continue_token = options.continue_token;
  KEELSON_ASSIGN_OR_RETURN(storage::ListResult found,
                           store_.List(info, request, impl_->ReadLimits(stop, options.deadline)));
  return ObjectList{std::move(found.items), found.revision, std::move(found.continue_token), found.remaining};
}

Result<std::unique_ptr<storage::WatchHandle>> Registry::Watch(const ResourceInfo& info, std::string_view ns,
                                                              const ListOptions& given,
                                                              std::shared_ptr<storage::WatchSink> sink,
                                                              std::stop_token stop) {
  ListOptions options = given;
  // Without a version to start from, or from "0", a watch first sends the present objects.
  bool from_nowhere = options.resource_version.empty() || options.resource_version == "0";
  if (from_nowhere && !options.send_initial_events && options.resource_version_match.empty()) {
    options.send_initial_events = true;
    options.resource_version_match = kNotOlderThan;
  }
  KEELSON_RETURN_IF_ERROR(ValidateWatch(options));
  storage::WatchRequest request;
  KEELSON_ASSIGN_OR_RETURN(request.predicate, impl_->ParseSelectors(info, options));
  request.ns = std::string(ns);
  if (const std::string* pinned = Pinned(request.predicate.fields, "metadata.namespace");
      pinned && ns.empty() && info.namespaced && !pinned->empty()) {
    request.ns = *pinned;
  }
  request.resource_version = options.resource_version;
  request.bookmarks = options.allow_bookmarks;
  request.initial_events = options.send_initial_events.value_or(false);
  request.initial_events_end = request.initial_events && options.allow_bookmarks;
  return store_.Watch(info, request, std::move(sink), impl_->ReadLimits(stop));
}

}  // namespace keelson::registry
