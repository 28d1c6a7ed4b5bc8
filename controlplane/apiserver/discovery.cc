#include "controlplane/apiserver/discovery.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/base/base64.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::apiserver {
namespace {

namespace discoveryapi = api::apidiscovery::v2;

constexpr std::string_view kDiscoveryGroup = "apidiscovery.k8s.io", kListKind = "APIGroupDiscoveryList";

// Clients that look a kind up by its name alone take the first group that has it.
constexpr std::string_view kGroupOrder[] = {"",
                                            "apiregistration.k8s.io",
                                            "apps",
                                            "events.k8s.io",
                                            "authentication.k8s.io",
                                            "authorization.k8s.io",
                                            "autoscaling",
                                            "batch",
                                            "certificates.k8s.io",
                                            "networking.k8s.io",
                                            "policy",
                                            "rbac.authorization.k8s.io",
                                            "storage.k8s.io",
                                            "admissionregistration.k8s.io",
                                            "apiextensions.k8s.io",
                                            "scheduling.k8s.io",
                                            "coordination.k8s.io",
                                            "node.k8s.io",
                                            "discovery.k8s.io",
                                            "flowcontrol.apiserver.k8s.io",
                                            "resource.k8s.io"};

size_t PlaceOf(std::string_view group) {
  return static_cast<size_t>(std::find(std::begin(kGroupOrder), std::end(kGroupOrder), group) - kGroupOrder);
}

struct Group {
  std::string name;
  std::vector<std::string> versions;  // preferred version first
};

// Version priority: v2, v1, v1beta2, v1beta1, v1alpha1.
bool IsPreferred(std::string_view a, std::string_view b) {
  auto parse = [](std::string_view version) {
    int major = 0, minor = 0;
    std::string_view rest = version.substr(1);
    const char* after = std::from_chars(rest.data(), rest.data() + rest.size(), major).ptr;
    std::string_view level(after, static_cast<size_t>(rest.data() + rest.size() - after));
    const int stage = level.empty() ? 2 : level.starts_with("beta") ? 1 : 0;
    const size_t digits = std::min(level.find_first_of("0123456789"), level.size());
    std::from_chars(level.data() + digits, level.data() + level.size(), minor);
    return std::tuple(stage, major, minor);
  };
  return parse(a) > parse(b);
}

std::vector<Group> Groups(const ApiEnablement& enablement) {
  std::vector<Group> out;
  for (const api::ResourceInfo& info : api::Resources()) {
    if (!enablement.Serves(info)) continue;
    if (out.empty() || out.back().name != info.group) out.push_back({std::string(info.group), {}});
    auto& versions = out.back().versions;
    if (std::find(versions.begin(), versions.end(), info.version) == versions.end()) {
      auto place = std::find_if(versions.begin(), versions.end(),
                                [&](const std::string& one) { return IsPreferred(info.version, one); });
      versions.emplace(place, info.version);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return PlaceOf(a.name) < PlaceOf(b.name); });
  return out;
}

// storageVersionHash tells clients when the storage format changes, so that objects need a migration.
std::string StorageVersionHash(const api::ResourceInfo& info) {
  if (info.etcd_prefix.empty() || info.IsSubresource()) return "";
  const api::ResourceInfo& stored = storage::StoredAs(info);
  constexpr size_t kBytes = 8;
  return EncodeBase64(
      crypto::Sha256(fmt::format("{}/{}/{}", stored.kind_group, stored.kind_version, stored.kind))
          .substr(0, kBytes));
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
  for (std::string& verb : SplitList(info.verbs)) out.mutable_verbs()->add_items(std::move(verb));
  for (std::string& name : SplitList(info.short_names)) out.add_short_names(std::move(name));
  for (std::string& category : SplitList(info.categories)) out.add_categories(std::move(category));
  if (std::string hash = StorageVersionHash(info); !hash.empty()) {
    out.set_storage_version_hash(std::move(hash));
  }
  return out;
}

void SetKind(const api::ResourceInfo& info, metav1::GroupVersionKind& out) {
  if (!info.kind_group.empty()) out.set_group(std::string(info.kind_group));
  out.set_version(std::string(info.kind_version));
  out.set_kind(std::string(info.kind));
}

discoveryapi::APIVersionDiscovery ToVersion(const std::string& group, const std::string& version,
                                            const ApiEnablement& enablement) {
  discoveryapi::APIVersionDiscovery out;
  out.set_version(version);
  out.set_freshness("Current");
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group != group || info.version != version || !enablement.Serves(info)) continue;
    if (info.IsSubresource()) {
      // Rows are sorted: a resource precedes its subresources.
      std::string_view parent = info.resource.substr(0, info.resource.find('/'));
      if (out.resources_size() == 0 || out.resources(out.resources_size() - 1).resource() != parent) continue;
      auto& sub = *out.mutable_resources(out.resources_size() - 1)->add_subresources();
      sub.set_subresource(std::string(info.resource.substr(parent.size() + 1)));
      SetKind(info, *sub.mutable_response_kind());
      for (std::string& verb : SplitList(info.verbs)) sub.add_verbs(std::move(verb));
      continue;
    }
    auto& resource = *out.add_resources();
    resource.set_resource(std::string(info.resource));
    SetKind(info, *resource.mutable_response_kind());
    resource.set_scope(info.namespaced ? "Namespaced" : "Cluster");
    resource.set_singular_resource(std::string(info.singular));
    for (std::string& verb : SplitList(info.verbs)) resource.add_verbs(std::move(verb));
    for (std::string& name : SplitList(info.short_names)) resource.add_short_names(std::move(name));
    for (std::string& category : SplitList(info.categories)) resource.add_categories(std::move(category));
  }
  return out;
}

// The version of aggregated discovery that the client prefers to the plain document, with the encoding; empty
// version: plain.
struct Wanted {
  std::string version;
  Encoding encoding = Encoding::kJson;
};
Wanted WantedForm(const http::ServerRequest& request) {
  static constexpr std::pair<std::string_view, Encoding> kEncodings[] = {
      {"application/json", Encoding::kJson},
      {"application/yaml", Encoding::kYaml},
      {"application/vnd.kubernetes.protobuf", Encoding::kProtobuf}};
  for (const MediaType& clause : ParseAccept(request.headers.Get("Accept"))) {
    for (const auto& [type, encoding] : kEncodings) {
      if (clause.quality <= 0 || !Covers(clause, type)) continue;
      std::string_view as = clause.Parameter("as"), version = clause.Parameter("v");
      if (as.empty()) return {};
      if (as == kListKind && clause.Parameter("g") == kDiscoveryGroup &&
          (version == "v2" || version == "v2beta1")) {
        return {std::string(version), encoding};
      }
      break;
    }
  }
  return {};
}

std::string Etag(const std::string& body) { return "\"" + crypto::Sha256Hex(body) + "\""; }

}  // namespace

Discovery::Discovery(std::string server_address, ApiEnablement enablement)
    : server_address_(std::move(server_address)), enablement_(std::move(enablement)) {
  AddGroups();
  AddResourceLists();
  auto core = std::make_unique<discoveryapi::APIGroupDiscoveryList>();
  auto groups = std::make_unique<discoveryapi::APIGroupDiscoveryList>();
  for (auto* list : {core.get(), groups.get()}) list->mutable_metadata();
  for (const Group& group : Groups(enablement_)) {
    auto& item = *(group.name.empty() ? *core : *groups).add_items();
    item.mutable_metadata();
    if (!group.name.empty()) item.mutable_metadata()->set_name(group.name);
    for (const std::string& version : group.versions) {
      *item.add_versions() = ToVersion(group.name, version, enablement_);
    }
  }
  core_aggregated_.etag = Etag(api::EncodeJson(*core));
  groups_aggregated_.etag = Etag(api::EncodeJson(*groups));
  core_aggregated_.message = std::move(core);
  groups_aggregated_.message = std::move(groups);
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
  for (const Group& group : Groups(enablement_)) {
    if (group.name.empty()) continue;
    *list->add_groups() = ToApiGroup(group);
    Add("/apis/" + group.name, std::make_unique<metav1::APIGroup>(ToApiGroup(group)), "APIGroup");
  }
  Add("/apis", std::move(list), "APIGroupList");
}

void Discovery::AddResourceLists() {
  for (const Group& group : Groups(enablement_)) {
    for (const std::string& version : group.versions) {
      auto list = std::make_unique<metav1::APIResourceList>();
      list->set_group_version(ApiVersion(group.name, version));
      for (const api::ResourceInfo& info : api::Resources()) {
        if (info.group == group.name && info.version == version && enablement_.Serves(info)) {
          *list->add_resources() = ToApiResource(info);
        }
      }
      std::string path = group.name.empty() ? "/api/" + version : "/apis/" + group.name + "/" + version;
      Add(std::move(path), std::move(list), "APIResourceList");
    }
  }
}

void Discovery::ReplyAggregated(Context& context, const Aggregated& list, const std::string& version) const {
  if (context.request->headers.Get("If-None-Match") == list.etag) {
    context.status = 304;
    context.writer->Reply(304, {{"ETag", list.etag}, {"Cache-Control", "public"}, {"Vary", "Accept"}}, "");
    return;
  }
  const api::GroupVersionKind gvk{std::string(kDiscoveryGroup), version, std::string(kListKind)};
  std::string body;
  if (context.output.encoding == Encoding::kProtobuf) {
    body = api::EncodeProtobuf(*list.message, gvk);
  } else {
    body = api::EncodeJson(*list.message, gvk);
    if (context.output.encoding == Encoding::kYaml) {
      body = JsonToYaml(body);
    } else if (context.output.pretty) {
      body = api::PrettyJson(body);
    } else {
      body += '\n';
    }
  }
  http::Headers headers{{"Content-Type", fmt::format("{};g={};v={};as={}", context.output.ContentType(),
                                                     kDiscoveryGroup, version, kListKind)},
                        {"ETag", list.etag},
                        {"Cache-Control", "public"},
                        {"Vary", "Accept"}};
  context.status = 200;
  context.writer->Reply(200, std::move(headers), std::move(body));
}

bool Discovery::Handle(Context& context) const {
  std::string_view path = context.info.path;
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  auto found = documents_.find(path);
  if (found == documents_.end()) return false;
  if (!IsRead(context)) {
    ReplyError(context, MethodNotAllowed());
    return true;
  }
  if (path == "/api" || path == "/apis") {
    if (Wanted wanted = WantedForm(*context.request); !wanted.version.empty()) {
      context.output.encoding = wanted.encoding;
      ReplyAggregated(context, path == "/api" ? core_aggregated_ : groups_aggregated_, wanted.version);
      return true;
    }
  }
  Result<Output> output = NegotiateOutput(*context.request, Forms::kPlain);
  if (!output) {
    ReplyError(context, output.error());
    return true;
  }
  context.output = *output;
  ReplyMessage(context, 200, *found->second.message, found->second.gvk);
  return true;
}

}  // namespace keelson::apiserver
