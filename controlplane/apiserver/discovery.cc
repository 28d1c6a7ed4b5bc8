#include "controlplane/apiserver/discovery.h"

#include <algorithm>

#include "controlplane/apiserver/handlers/response.h"
#include "lib/api/codec.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/http/signing_key.h"

namespace keelson::apiserver {
namespace {

namespace discoveryapi = api::apidiscovery::v2;

constexpr std::string_view kAggregatedType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return out;
}

struct Group {
  std::string name;
  std::vector<std::string> versions;  // the preferred one first
};

// Newer versions come first: v2 before v1.
std::vector<Group> Groups() {
  std::vector<Group> out;
  for (const api::ResourceInfo& info : api::Resources()) {
    if (out.empty() || out.back().name != info.group) out.push_back({std::string(info.group), {}});
    auto& versions = out.back().versions;
    if (std::find(versions.begin(), versions.end(), info.version) == versions.end()) {
      versions.emplace(versions.begin(), info.version);
    }
  }
  return out;
}

std::string ApiVersion(const std::string& group, const std::string& version) {
  return group.empty() ? version : group + "/" + version;
}

metav1::APIGroup ToApiGroup(const Group& group) {
  metav1::APIGroup out;
  out.set_name(group.name);
  for (const std::string& version : group.versions) {
    metav1::GroupVersionForDiscovery& added = *out.add_versions();
    added.set_group_version(ApiVersion(group.name, version));
    added.set_version(version);
  }
  *out.mutable_preferred_version() = out.versions(0);
  return out;
}

metav1::APIResource ToApiResource(const api::ResourceInfo& info) {
  metav1::APIResource out;
  out.set_name(std::string(info.resource));
  if (!info.singular.empty()) out.set_singular_name(std::string(info.singular));
  if (info.namespaced) out.set_namespaced(true);
  if (info.kind_group != info.group || info.kind_version != info.version) {
    if (!info.kind_group.empty()) out.set_group(std::string(info.kind_group));
    out.set_version(std::string(info.kind_version));
  }
  out.set_kind(std::string(info.kind));
  out.mutable_verbs();
  for (std::string& verb : Split(info.verbs)) out.mutable_verbs()->add_items(std::move(verb));
  for (std::string& name : Split(info.short_names)) out.add_short_names(std::move(name));
  for (std::string& category : Split(info.categories)) out.add_categories(std::move(category));
  return out;
}

void SetKind(const api::ResourceInfo& info, metav1::GroupVersionKind& out) {
  if (!info.kind_group.empty()) out.set_group(std::string(info.kind_group));
  out.set_version(std::string(info.kind_version));
  out.set_kind(std::string(info.kind));
}

discoveryapi::APIVersionDiscovery ToVersion(const std::string& group, const std::string& version) {
  discoveryapi::APIVersionDiscovery out;
  out.set_version(version);
  out.set_freshness("Current");
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group != group || info.version != version) continue;
    if (info.IsSubresource()) {
      // Rows come in order: the resource stands right before its subresources.
      std::string_view parent = info.resource.substr(0, info.resource.find('/'));
      if (out.resources_size() == 0 || out.resources(out.resources_size() - 1).resource() != parent) continue;
      auto& sub = *out.mutable_resources(out.resources_size() - 1)->add_subresources();
      sub.set_subresource(std::string(info.resource.substr(parent.size() + 1)));
      SetKind(info, *sub.mutable_response_kind());
      for (std::string& verb : Split(info.verbs)) sub.add_verbs(std::move(verb));
      continue;
    }
    auto& resource = *out.add_resources();
    resource.set_resource(std::string(info.resource));
    SetKind(info, *resource.mutable_response_kind());
    resource.set_scope(info.namespaced ? "Namespaced" : "Cluster");
    resource.set_singular_resource(std::string(info.singular));
    for (std::string& verb : Split(info.verbs)) resource.add_verbs(std::move(verb));
    for (std::string& name : Split(info.short_names)) resource.add_short_names(std::move(name));
    for (std::string& category : Split(info.categories)) resource.add_categories(std::move(category));
  }
  return out;
}

bool WantsAggregated(const Context& context) {
  for (const MediaType& clause : ParseAccept(context.request->headers.Get("Accept"))) {
    if (clause.type != "application/json" && clause.type != "*/*") continue;
    if (clause.Parameter("as").empty()) return false;
    if (clause.Parameter("as") == "APIGroupDiscoveryList" && clause.Parameter("g") == "apidiscovery.k8s.io" &&
        clause.Parameter("v") == "v2") {
      return true;
    }
  }
  return false;
}

std::string Etag(const std::string& body) { return "\"" + http::Sha256Hex(body) + "\""; }

}  // namespace

Discovery::Discovery(std::string server_address) : server_address_(std::move(server_address)) {
  AddGroups();
  AddResourceLists();
  discoveryapi::APIGroupDiscoveryList core, groups;
  for (auto* list : {&core, &groups}) list->mutable_metadata();
  for (const Group& group : Groups()) {
    auto& item = *(group.name.empty() ? core : groups).add_items();
    item.mutable_metadata();
    if (!group.name.empty()) item.mutable_metadata()->set_name(group.name);
    for (const std::string& version : group.versions) *item.add_versions() = ToVersion(group.name, version);
  }
  const api::GroupVersionKind gvk{"apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"};
  core_aggregated_ = api::EncodeJson(core, gvk);
  groups_aggregated_ = api::EncodeJson(groups, gvk);
  core_etag_ = Etag(core_aggregated_);
  groups_etag_ = Etag(groups_aggregated_);
}

void Discovery::Add(std::string path, std::unique_ptr<api::Message> message, std::string kind) {
  Document document{path, std::move(message), {"", "v1", std::move(kind)}};
  documents_.insert_or_assign(std::move(path), std::move(document));
}

void Discovery::AddGroups() {
  auto versions = std::make_unique<metav1::APIVersions>();
  versions->add_versions("v1");
  metav1::ServerAddressByClientCIDR& address = *versions->add_server_address_by_client_cidrs();
  address.set_client_cidr("0.0.0.0/0");
  address.set_server_address(server_address_);
  Add("/api", std::move(versions), "APIVersions");
  auto list = std::make_unique<metav1::APIGroupList>();
  for (const Group& group : Groups()) {
    if (group.name.empty()) continue;
    *list->add_groups() = ToApiGroup(group);
    Add("/apis/" + group.name, std::make_unique<metav1::APIGroup>(ToApiGroup(group)), "APIGroup");
  }
  Add("/apis", std::move(list), "APIGroupList");
}

void Discovery::AddResourceLists() {
  for (const Group& group : Groups()) {
    for (const std::string& version : group.versions) {
      auto list = std::make_unique<metav1::APIResourceList>();
      list->set_group_version(ApiVersion(group.name, version));
      for (const api::ResourceInfo& info : api::Resources()) {
        if (info.group == group.name && info.version == version) *list->add_resources() = ToApiResource(info);
      }
      std::string path = group.name.empty() ? "/api/" + version : "/apis/" + group.name + "/" + version;
      Add(std::move(path), std::move(list), "APIResourceList");
    }
  }
}

void Discovery::ReplyAggregated(Context& context, const std::string& json, const std::string& etag) const {
  http::Headers headers{{"Content-Type", std::string(kAggregatedType)},
                        {"ETag", etag},
                        {"Cache-Control", "public"},
                        {"Vary", "Accept"}};
  context.status = context.request->headers.Get("If-None-Match") == etag ? 304 : 200;
  context.writer->Reply(context.status, std::move(headers), context.status == 304 ? "" : json);
}

bool Discovery::Handle(Context& context) const {
  std::string_view path = context.info.path;
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  auto found = documents_.find(path);
  if (found == documents_.end()) return false;
  if (context.request->method != "GET" && context.request->method != "HEAD") return false;
  if ((path == "/api" || path == "/apis") && WantsAggregated(context)) {
    bool core = path == "/api";
    ReplyAggregated(context, core ? core_aggregated_ : groups_aggregated_, core ? core_etag_ : groups_etag_);
    return true;
  }
  Result<Output> output = NegotiateOutput(*context.request, false);
  if (!output) {
    ReplyError(context, output.error());
    return true;
  }
  context.output = *output;
  ReplyMessage(context, 200, *found->second.message, found->second.gvk);
  return true;
}

}  // namespace keelson::apiserver
