#include "lib/client/discovery.h"

#include <algorithm>
#include <set>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"
#include "lib/base/percent.h"
#include "lib/client/request.h"

namespace keelson::client {
namespace {

constexpr std::chrono::seconds kDiscoveryPatience{30};
constexpr char kAggregatedKind[] = "APIGroupDiscoveryList";
constexpr char kAggregated[] =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

bool IsBuiltIn(std::string_view group, std::string_view resource) {
  const auto rows = api::Resources();
  return std::any_of(rows.begin(), rows.end(), [&](const api::ResourceInfo& row) {
    return row.group == group && row.resource == resource;
  });
}

// Rows that outlive every discovery.
class RowTable {
 public:
  static RowTable& Get() {
    static auto* table = new RowTable;
    return *table;
  }

  const api::ResourceInfo* Row(const std::string& group, const std::string& version,
                               const std::string& resource, const std::string& kind, bool namespaced,
                               const std::string& verbs) {
    if (const api::ResourceInfo* row = api::FindResource(group, version, resource)) return row;
    MutexLock lock(mutex_);
    std::unique_ptr<Owned>& owned =
        rows_[{group, version, resource, kind, namespaced ? "Namespaced" : "Cluster", verbs}];
    if (!owned) {
      owned = std::make_unique<Owned>(Owned{group, version, resource, kind, verbs, {}});
      api::ResourceInfo& row = owned->row;
      row.group = row.kind_group = owned->group;
      row.version = row.kind_version = owned->version;
      row.resource = owned->resource;
      row.kind = owned->kind;
      row.message = metav1::PartialObjectMetadata::descriptor()->full_name();
      row.namespaced = namespaced;
      row.verbs = owned->verbs;
    }
    return &owned->row;
  }

 private:
  struct Owned {
    std::string group, version, resource, kind, verbs;
    api::ResourceInfo row;
  };
  Mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<Owned>> rows_ KEELSON_GUARDED_BY(mutex_);
};

template <typename Verbs>
std::string Joined(const Verbs& verbs) {
  std::string out;
  for (const std::string& verb : verbs) out += (out.empty() ? "" : ",") + verb;
  return out;
}

Result<ApiResponse> Fetch(const RestClient& api, std::string target, std::string accept,
                          std::stop_token stop) {
  ApiRequest request;
  request.target = std::move(target);
  request.accept = std::move(accept);
  return Answered(api.transport(), request, kDiscoveryPatience, std::move(stop));
}

void TakeAggregated(const api::apidiscovery::v2::APIGroupDiscoveryList& list, DiscoveredResources& out) {
  for (const auto& group : list.items()) {
    const std::string& name = group.metadata().name();
    for (const auto& version : group.versions()) {
      if (version.freshness() == "Stale") {
        const std::string both = name + "/" + version.version();
        out.failures[both] = "stale GroupVersion discovery: " + both;
        continue;
      }
      for (const auto& resource : version.resources()) {
        out.resources.push_back(
            RowTable::Get().Row(name, version.version(), resource.resource(), resource.response_kind().kind(),
                                resource.scope() == "Namespaced", Joined(resource.verbs())));
      }
    }
  }
}

Result<> TakeVersion(const RestClient& api, const std::string& group, const std::string& version,
                     std::stop_token stop, DiscoveredResources& out) {
  KEELSON_ASSIGN_OR_RETURN(
      const ApiResponse response,
      Fetch(api, "/apis/" + PercentEncode(group) + "/" + PercentEncode(version), "application/json", stop));
  metav1::APIResourceList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(response.body, list));
  for (const metav1::APIResource& resource : list.resources()) {
    if (resource.name().find('/') != std::string::npos) continue;
    out.resources.push_back(RowTable::Get().Row(group, version, resource.name(), resource.kind(),
                                                resource.namespaced(), Joined(resource.verbs().items())));
  }
  return {};
}

Result<> TakeGroups(const RestClient& api, const metav1::APIGroupList& groups, std::stop_token stop,
                    DiscoveredResources& out) {
  for (const metav1::APIGroup& group : groups.groups()) {
    std::vector<std::string> versions;
    const std::string& preferred = group.preferred_version().version();
    if (!preferred.empty()) versions.push_back(preferred);
    for (const auto& version : group.versions()) {
      if (version.version() != preferred) versions.push_back(version.version());
    }
    for (const std::string& version : versions) {
      Result<> taken = TakeVersion(api, group.name(), version, stop, out);
      if (!taken && taken.error().Is(Code::kCancelled)) return taken;
      // A version that went in the meantime is no failure.
      if (!taken && !taken.error().Is(Code::kNotFound)) {
        out.failures[group.name() + "/" + version] = taken.error().message();
      }
    }
  }
  return {};
}

}  // namespace

const api::ResourceInfo* DiscoveredResources::FindKind(std::string_view group, std::string_view version,
                                                       std::string_view kind) const {
  auto found = std::find_if(resources.begin(), resources.end(), [&](const api::ResourceInfo* row) {
    return row->group == group && row->version == version && row->kind == kind;
  });
  return found == resources.end() ? nullptr : *found;
}

std::vector<const api::ResourceInfo*> DiscoveredResources::Unknown(
    const std::vector<std::string_view>& verbs) const {
  std::vector<const api::ResourceInfo*> out;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const api::ResourceInfo* row : resources) {
    const bool has_all =
        std::all_of(verbs.begin(), verbs.end(), [&](std::string_view verb) { return row->HasVerb(verb); });
    if (!has_all || IsBuiltIn(row->group, row->resource)) continue;
    if (seen.insert({row->group, row->resource}).second) out.push_back(row);
  }
  return out;
}

bool DiscoveredResources::HasFailed(std::string_view group) const {
  return std::any_of(failures.begin(), failures.end(), [&](const auto& failure) {
    return std::string_view(failure.first).substr(0, failure.first.find('/')) == group;
  });
}

std::string DiscoveredResources::FailureMessage() const {
  std::string out;
  for (const auto& [group_version, why] : failures) {
    out += (out.empty() ? "unable to retrieve the complete list of server APIs: " : ", ") + group_version +
           ": " + why;
  }
  return out;
}

Result<DiscoveredResources> Discover(const RestClient& api, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const ApiResponse response, Fetch(api, "/apis", kAggregated, stop));
  DiscoveredResources out;
  if (response.content_type.find(kAggregatedKind) != std::string::npos) {
    api::apidiscovery::v2::APIGroupDiscoveryList list;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(response.body, list));
    TakeAggregated(list, out);
  } else {
    metav1::APIGroupList list;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(response.body, list));
    KEELSON_RETURN_IF_ERROR(TakeGroups(api, list, stop, out));
  }
  if (out.resources.empty()) {
    return Error(Code::kUnavailable,
                 out.failures.empty() ? "unable to discover any resources" : out.FailureMessage());
  }
  return out;
}

}  // namespace keelson::client
