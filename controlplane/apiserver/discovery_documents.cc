#include "controlplane/apiserver/discovery_documents.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "controlplane/apiserver/aggregator/priorities.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/base/base64.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::apiserver {
namespace {

struct Version {
  std::string name;
  std::vector<const ServedResource*> resources;
  const discoveryapi::APIVersionDiscovery* remote = nullptr;  // of an extension API server, instead of these
  const std::vector<discoveryapi::APIResourceDiscovery>* further = nullptr;  // beside these
  int32_t priority = 0;
};
struct Group {
  std::string name;
  std::vector<Version> versions;  // preferred version first
  int32_t priority = 0;           // the highest of its versions
  std::string first_name;         // of the APIServices with that priority
};

// v10beta3 -> stage 1, 10, 3; nothing for names of another form.
std::optional<std::tuple<int, int, int>> ParseVersion(std::string_view version) {
  int major = 0, minor = 0;
  if (!version.starts_with('v')) return std::nullopt;
  const char* end = version.data() + version.size();
  const auto [after, error] = std::from_chars(version.data() + 1, end, major);
  if (error != std::errc()) return std::nullopt;
  std::string_view level(after, static_cast<size_t>(end - after));
  if (level.empty()) return std::tuple(2, major, 0);
  const int stage = level.starts_with("beta") ? 1 : level.starts_with("alpha") ? 0 : -1;
  if (stage < 0) return std::nullopt;
  level.remove_prefix(stage == 1 ? 4 : 5);
  const auto [last, wrong] = std::from_chars(level.data(), end, minor);
  if (wrong != std::errc() || last != end) return std::nullopt;
  return std::tuple(stage, major, minor);
}

// Version priority: v2, v1, v1beta2, v1beta1, v1alpha1, and other names behind these, by name.
bool IsPreferred(std::string_view a, std::string_view b) {
  const auto one = ParseVersion(a), other = ParseVersion(b);
  if (one && other) return *one > *other;
  if (one || other) return one.has_value();
  return a < b;
}

using GroupVersion = DiscoveryMerge::GroupVersion;

ApiServicePriority PriorityOf(const DiscoveryMerge& merge, std::string_view group, std::string_view version) {
  auto given = merge.priorities.find(GroupVersion(group, version));
  if (given != merge.priorities.end()) return given->second;
  if (group == kRegistrationGroup) return kFirstPriority;
  return BuiltInPriority(group, version).value_or(kCustomPriority);
}

// Clients that look a kind up by its name alone take the first group that has it, in its first version.
void Sort(std::vector<Group>& groups, const DiscoveryMerge& merge) {
  for (Group& group : groups) {
    for (Version& version : group.versions) {
      const ApiServicePriority priority = PriorityOf(merge, group.name, version.name);
      version.priority = priority.version;
      const std::string name = version.name + "." + group.name;
      if (group.first_name.empty() || priority.group > group.priority) {
        group.priority = priority.group;
        group.first_name = name;
      } else if (priority.group == group.priority) {
        group.first_name = std::min(group.first_name, name);
      }
    }
    std::stable_sort(group.versions.begin(), group.versions.end(), [](const Version& a, const Version& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      return IsPreferred(a.name, b.name);
    });
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.first_name < b.first_name;
  });
}

std::vector<Group> Groups(const std::vector<ServedResource>& resources, const DiscoveryMerge& merge) {
  std::vector<Group> out;
  std::unordered_map<std::string, size_t> places;
  auto version_of = [&](std::string_view group, std::string_view version) -> Version& {
    auto [place, added] = places.emplace(group, out.size());
    if (added) out.push_back({std::string(group), {}});
    std::vector<Version>& versions = out[place->second].versions;
    for (Version& one : versions) {
      if (one.name == version) return one;
    }
    return versions.emplace_back(Version{std::string(version), {}});
  };
  for (const ServedResource& served : resources) {
    const api::ResourceInfo& info = *served.row;
    if (merge.remote.contains(GroupVersion(info.group, info.version))) continue;
    version_of(info.group, info.version).resources.push_back(&served);
  }
  for (const auto& [of, remote] : merge.remote) version_of(of.first, of.second).remote = remote.get();
  for (const auto& [of, further] : merge.further) version_of(of.first, of.second).further = &further;
  Sort(out, merge);
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

std::string Etag(const std::string& body) { return "\"" + crypto::Sha256Hex(body) + "\""; }

metav1::APIGroup ToApiGroup(const Group& group) {
  metav1::APIGroup out;
  out.set_name(group.name);
  for (const Version& version : group.versions) {
    metav1::GroupVersionForDiscovery& added = *out.add_versions();
    added.set_group_version(ApiVersion(group.name, version.name));
    added.set_version(version.name);
  }
  *out.mutable_preferred_version() = out.versions(0);
  return out;
}

metav1::APIResource ToApiResource(const ServedResource& served) {
  const api::ResourceInfo& info = *served.row;
  metav1::APIResource out;
  out.set_name(std::string(info.resource));
  if (!served.singular.empty()) out.set_singular_name(served.singular);
  if (info.namespaced) out.set_namespaced(true);
  if (info.kind_group != info.group || info.kind_version != info.version) {
    if (!info.kind_group.empty()) out.set_group(std::string(info.kind_group));
    out.set_version(std::string(info.kind_version));
  }
  out.set_kind(std::string(info.kind));
  out.mutable_verbs();
  for (const std::string& verb : served.verbs) out.mutable_verbs()->add_items(verb);
  for (const std::string& name : served.short_names) out.add_short_names(name);
  for (const std::string& category : served.categories) out.add_categories(category);
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

discoveryapi::APIVersionDiscovery ToVersion(const Version& version) {
  if (version.remote) return *version.remote;
  discoveryapi::APIVersionDiscovery out;
  out.set_version(version.name);
  out.set_freshness("Current");
  for (const ServedResource* served : version.resources) {
    const api::ResourceInfo& info = *served->row;
    if (info.IsSubresource()) {
      std::string_view parent = info.resource.substr(0, info.resource.find('/'));
      if (out.resources_size() == 0 || out.resources(out.resources_size() - 1).resource() != parent) continue;
      auto& sub = *out.mutable_resources(out.resources_size() - 1)->add_subresources();
      sub.set_subresource(std::string(info.resource.substr(parent.size() + 1)));
      SetKind(info, *sub.mutable_response_kind());
      for (const std::string& verb : served->verbs) sub.add_verbs(verb);
      continue;
    }
    auto& resource = *out.add_resources();
    resource.set_resource(std::string(info.resource));
    SetKind(info, *resource.mutable_response_kind());
    resource.set_scope(info.namespaced ? "Namespaced" : "Cluster");
    resource.set_singular_resource(served->singular);
    for (const std::string& verb : served->verbs) resource.add_verbs(verb);
    for (const std::string& name : served->short_names) resource.add_short_names(name);
    for (const std::string& category : served->categories) resource.add_categories(category);
  }
  if (version.further) {
    for (const auto& one : *version.further) *out.add_resources() = one;
  }
  return out;
}

metav1::APIVersions CoreVersions(const std::string& server_address) {
  metav1::APIVersions versions;
  versions.add_versions("v1");
  metav1::ServerAddressByClientCIDR& address = *versions.add_server_address_by_client_cidrs();
  address.set_client_cidr("0.0.0.0/0");
  address.set_server_address(server_address);
  return versions;
}

}  // namespace

std::vector<ServedResource> BuiltInResources(const ApiEnablement& enablement) {
  std::vector<ServedResource> out;
  for (const api::ResourceInfo& info : api::Resources()) {
    if (!enablement.Serves(info)) continue;
    out.push_back({&info, std::string(info.singular), SplitList(info.verbs), SplitList(info.short_names),
                   SplitList(info.categories)});
  }
  return out;
}

DiscoveryDocuments::DiscoveryDocuments(const std::string& server_address,
                                       const std::vector<ServedResource>& resources,
                                       const DiscoveryMerge& merge) {
  auto add = [this](std::string path, auto message, std::string kind) {
    using Type = decltype(message);
    by_path.insert_or_assign(
        std::move(path), Document{std::make_unique<Type>(std::move(message)), {"", "v1", std::move(kind)}});
  };
  core.message = std::make_unique<discoveryapi::APIGroupDiscoveryList>();
  groups.message = std::make_unique<discoveryapi::APIGroupDiscoveryList>();
  core.message->mutable_metadata();
  groups.message->mutable_metadata();
  metav1::APIGroupList list;
  for (const Group& group : Groups(resources, merge)) {
    auto& item = *(group.name.empty() ? core : groups).message->add_items();
    item.mutable_metadata();
    if (!group.name.empty()) {
      item.mutable_metadata()->set_name(group.name);
      *list.add_groups() = ToApiGroup(group);
      add("/apis/" + group.name, ToApiGroup(group), "APIGroup");
    }
    for (const Version& version : group.versions) {
      *item.add_versions() = ToVersion(version);
      if (version.remote) continue;  // requests for its own document go to the extension server
      metav1::APIResourceList served;
      served.set_group_version(ApiVersion(group.name, version.name));
      for (const ServedResource* one : version.resources) *served.add_resources() = ToApiResource(*one);
      add(group.name.empty() ? "/api/" + version.name : "/apis/" + group.name + "/" + version.name,
          std::move(served), "APIResourceList");
    }
  }
  add("/api", CoreVersions(server_address), "APIVersions");
  add("/apis", std::move(list), "APIGroupList");
  core.etag = Etag(api::EncodeJson(*core.message));
  groups.etag = Etag(api::EncodeJson(*groups.message));
}

}  // namespace keelson::apiserver
