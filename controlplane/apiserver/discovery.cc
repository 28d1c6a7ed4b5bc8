#include "controlplane/apiserver/discovery.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/apiserver/aggregator/aggregation_metrics.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/peers/peer_metrics.h"
#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec/codec.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kDiscoveryGroup = "apidiscovery.k8s.io", kListKind = "APIGroupDiscoveryList";

// The version of aggregated discovery that the client prefers to the plain document, with the encoding; empty
// version: plain.
struct Wanted {
  std::string version;
  Encoding encoding = Encoding::kJson;
  bool no_peer = false;  // of this server alone
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
        return {std::string(version), encoding, clause.Parameter("profile") == "nopeer"};
      }
      break;
    }
  }
  return {};
}

// The served versions of established definitions.
std::vector<ServedResource> CustomServed(registry::Registry& registry) {
  std::vector<ServedResource> out;
  registry.ForEachCustom(
      [&](apiextensions::CustomResource& resource, const apiextensions::Definition& definition) {
        if (!definition.established) return;
        for (const auto& version : definition.versions) {
          if (!version->served) continue;
          std::vector<std::string> verbs = {"delete", "deletecollection", "get", "list", "watch"};
          if (!definition.terminating) {
            verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
          }
          const std::vector<std::string> part = {"get", "patch", "update"};
          out.push_back({&resource.Row(version->name), definition.singular, verbs, definition.short_names,
                         definition.categories});
          if (version->has_status) out.push_back({&resource.Row(version->name, "status"), "", part, {}, {}});
          if (version->scale) out.push_back({&resource.Row(version->name, "scale"), "", part, {}, {}});
        }
      });
  return out;
}

// A group version whose server has not been asked yet has no resources, and is not fresh.
DiscoveryMerge MergeOf(const ApiServices::Map& services, std::map<std::string, ExtensionDocument> documents) {
  DiscoveryMerge out;
  for (const auto& [name, service] : services) {
    if (service->group == kRegistrationGroup) continue;
    const DiscoveryMerge::GroupVersion of{service->group, service->version};
    out.priorities[of] = {service->group_priority, service->version_priority};
    if (service->local) continue;
    if (auto found = documents.find(name); found != documents.end()) {
      out.remote[of] = found->second.discovery;
      continue;
    }
    auto unknown = std::make_shared<discoveryapi::APIVersionDiscovery>();
    unknown->set_version(service->version);
    unknown->set_freshness("Stale");
    out.remote[of] = std::move(unknown);
  }
  return out;
}

// Adds what peers serve and this server does not: whole group versions, and resources of its own ones.
void AddPeers(const std::vector<ServedResource>& own, const PeerDirectory::Peers& peers,
              DiscoveryMerge& merge) {
  std::map<DiscoveryMerge::GroupVersion, std::set<std::string, std::less<>>> known;
  for (const ServedResource& one : own) {
    known[{std::string(one.row->group), std::string(one.row->version)}].emplace(one.row->resource);
  }
  for (const auto& [name, peer] : peers) {
    for (const discoveryapi::APIGroupDiscovery& group : peer->groups.items()) {
      for (const discoveryapi::APIVersionDiscovery& version : group.versions()) {
        const DiscoveryMerge::GroupVersion of{group.metadata().name(), version.version()};
        const auto ours = known.find(of);
        if (ours == known.end()) {
          merge.remote.emplace(of, std::shared_ptr<const discoveryapi::APIVersionDiscovery>(peer, &version));
          continue;
        }
        for (const discoveryapi::APIResourceDiscovery& resource : version.resources()) {
          if (ours->second.insert(resource.resource()).second) merge.further[of].push_back(resource);
        }
      }
    }
  }
}

// Changes whenever a definition does: a write raises the highest revision, and a deletion lowers the number.
std::string Fingerprint(const storage::Store& store) {
  size_t count = 0;
  int64_t highest = 0;
  store.ForEach(api::ResourceOf<apiextensionsv1::CustomResourceDefinition>(),
                [&](const storage::ObjectPtr& object) {
                  ++count;
                  highest = std::max(highest, object->revision());
                });
  return fmt::format("{} {}", count, highest);
}

}  // namespace

Discovery::Discovery(std::string server_address, ApiEnablement enablement, registry::Registry* registry,
                     const ApiServices* services, const ExtensionDocuments* extensions)
    : server_address_(std::move(server_address)),
      enablement_(std::move(enablement)),
      registry_(registry),
      services_(services),
      extensions_(extensions) {
  documents_ = std::make_shared<const DiscoveryDocuments>(server_address_, BuiltInResources(enablement_));
  with_peers_ = documents_;
}

Discovery::Made Discovery::Current() const {
  std::string now = registry_ ? Fingerprint(registry_->store()) : "";
  auto services = services_ ? services_->All() : nullptr;
  const uint64_t generation = extensions_ ? extensions_->generation() : 0;
  auto peers = peers_ ? peers_->All() : nullptr;
  MutexLock lock(mutex_);
  if (now == made_of_ && services == made_with_ && generation == made_at_ && peers == made_beside_) {
    return {documents_, with_peers_};
  }
  std::vector<ServedResource> all = BuiltInResources(enablement_);
  if (registry_) {
    for (ServedResource& custom : CustomServed(*registry_)) all.push_back(std::move(custom));
  }
  DiscoveryMerge merge;
  if (services && extensions_) merge = MergeOf(*services, extensions_->All());
  documents_ = std::make_shared<const DiscoveryDocuments>(server_address_, all, merge);
  with_peers_ = documents_;
  if (peers && !peers->empty()) {
    AddPeers(all, *peers, merge);
    with_peers_ = std::make_shared<const DiscoveryDocuments>(server_address_, all, merge);
  }
  made_of_ = std::move(now);
  made_with_ = std::move(services);
  made_at_ = generation;
  made_beside_ = std::move(peers);
  CountAggregatedDiscovery();
  return {documents_, with_peers_, true};
}

void Discovery::ReplyAggregated(Context& context, const DiscoveryDocuments::Aggregated& list,
                                const std::string& version) const {
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
  if (path != "/api" && path != "/apis" && !path.starts_with("/api/") && !path.starts_with("/apis/")) {
    return false;
  }
  const Made documents = Current();
  auto found = documents.own->by_path.find(path);
  if (found == documents.own->by_path.end()) return false;
  if (!IsRead(context)) {
    ReplyError(context, MethodNotAllowed());
    return true;
  }
  if (path == "/api" || path == "/apis") {
    if (Wanted wanted = WantedForm(*context.request); !wanted.version.empty()) {
      context.output.encoding = wanted.encoding;
      if (peers_) {
        CountPeerDiscovery(wanted.no_peer  ? PeerDiscovery::kNoPeer
                           : documents.now ? PeerDiscovery::kMiss
                                           : PeerDiscovery::kHit);
      }
      const DiscoveryDocuments& all = wanted.no_peer ? *documents.own : *documents.with_peers;
      ReplyAggregated(context, path == "/api" ? documents.own->core : all.groups, wanted.version);
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
