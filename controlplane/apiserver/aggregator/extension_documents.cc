#include "controlplane/apiserver/aggregator/extension_documents.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/aggregator/aggregation_metrics.h"
#include "lib/api/codec/codec.h"
#include "lib/api/openapi/extension.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kPatience{5}, kFreshFor{60};
constexpr size_t kMaxDocument = 16u << 20;
constexpr const char* kCurrent = "Current";
constexpr const char* kStale = "Stale";
constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

bool IsAggregated(std::string_view content_type) {
  return content_type.find("as=APIGroupDiscoveryList") != std::string_view::npos;
}

discoveryapi::APIVersionDiscovery EmptyOf(const ApiServiceEntry& service, const char* freshness) {
  discoveryapi::APIVersionDiscovery out;
  out.set_version(service.version);
  out.set_freshness(freshness);
  return out;
}

void SetKind(const metav1::APIResource& from, const ApiServiceEntry& service, metav1::GroupVersionKind& out) {
  const std::string& group = from.group().empty() && from.version().empty() ? service.group : from.group();
  if (!group.empty()) out.set_group(group);
  out.set_version(from.version().empty() ? service.version : from.version());
  out.set_kind(from.kind());
}

std::shared_ptr<const discoveryapi::APIVersionDiscovery> Shared(discoveryapi::APIVersionDiscovery version) {
  return std::make_shared<const discoveryapi::APIVersionDiscovery>(std::move(version));
}

}  // namespace

Result<discoveryapi::APIVersionDiscovery> FromAggregated(std::string_view text,
                                                         const ApiServiceEntry& service) {
  discoveryapi::APIGroupDiscoveryList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, list));
  for (const discoveryapi::APIGroupDiscovery& group : list.items()) {
    if (group.metadata().name() != service.group) continue;
    for (const discoveryapi::APIVersionDiscovery& version : group.versions()) {
      if (version.version() != service.version) continue;
      discoveryapi::APIVersionDiscovery out = version;
      out.set_freshness(kCurrent);
      return out;
    }
  }
  return EmptyOf(service, kCurrent);
}

Result<discoveryapi::APIVersionDiscovery> FromResourceList(std::string_view text,
                                                           const ApiServiceEntry& service) {
  metav1::APIResourceList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, list));
  discoveryapi::APIVersionDiscovery out = EmptyOf(service, kCurrent);
  auto resource_of = [&out](std::string_view name) -> discoveryapi::APIResourceDiscovery& {
    for (discoveryapi::APIResourceDiscovery& one : *out.mutable_resources()) {
      if (one.resource() == name) return one;
    }
    discoveryapi::APIResourceDiscovery& added = *out.add_resources();
    added.set_resource(std::string(name));
    return added;
  };
  for (const metav1::APIResource& from : list.resources()) {
    const std::string_view name = from.name();
    const size_t slash = name.find('/');
    discoveryapi::APIResourceDiscovery& resource = resource_of(name.substr(0, slash));
    if (slash != std::string_view::npos) {
      discoveryapi::APISubresourceDiscovery& sub = *resource.add_subresources();
      sub.set_subresource(std::string(name.substr(slash + 1)));
      SetKind(from, service, *sub.mutable_response_kind());
      for (const std::string& verb : from.verbs().items()) sub.add_verbs(verb);
      if (resource.scope().empty()) resource.set_scope(from.namespaced() ? "Namespaced" : "Cluster");
      continue;
    }
    resource.set_scope(from.namespaced() ? "Namespaced" : "Cluster");
    resource.set_singular_resource(from.singular_name());
    SetKind(from, service, *resource.mutable_response_kind());
    for (const std::string& verb : from.verbs().items()) resource.add_verbs(verb);
    for (const std::string& one : from.short_names()) resource.add_short_names(one);
    for (const std::string& one : from.categories()) resource.add_categories(one);
  }
  return out;
}

std::string OpenApiUrlOf(std::string_view index, const ApiServiceEntry& service) {
  json::error_code failed;
  const json::value parsed = json::parse(index, failed);
  if (failed || !parsed.is_object()) return "";
  const json::value* paths = parsed.as_object().if_contains("paths");
  const std::string path = service.Path().substr(1);
  const json::value* entry = paths && paths->is_object() ? paths->as_object().if_contains(path) : nullptr;
  const json::value* url =
      entry && entry->is_object() ? entry->as_object().if_contains("serverRelativeURL") : nullptr;
  if (!url || !url->is_string()) return "";
  std::string out(url->as_string());
  // Only the document that is asked of the extension server under the same name.
  const std::string expected = "/openapi/v3/" + path;
  const bool good = out == expected || out.starts_with(expected + "?");
  return good ? out : "";
}

Result<http::ClientResponse> ExtensionDocuments::Get(const ApiServiceEntry& service, const std::string& path,
                                                     const std::string& accept, std::stop_token stop,
                                                     const std::string& etag) {
  KEELSON_ASSIGN_OR_RETURN(const ExtensionClients::Target target, clients_.For(service));
  http::ClientRequest request;
  request.target = path;
  KEELSON_ASSIGN_OR_RETURN(request.headers, IdentityHeaders(AggregatorUser()));
  request.headers.Add("Accept", accept);
  if (!etag.empty()) request.headers.Add("If-None-Match", etag);
  request.max_response_body = kMaxDocument;
  Result<http::ClientResponse> response = target.client->Do(request, kPatience, std::move(stop));
  if (!response) clients_.Forget(target.address);
  return response;
}

Result<discoveryapi::APIVersionDiscovery> ExtensionDocuments::ReadDiscovery(const ApiServiceEntry& service,
                                                                            std::stop_token stop) {
  const std::string root = service.group.empty() ? "/api" : "/apis";
  KEELSON_ASSIGN_OR_RETURN(const http::ClientResponse response, Get(service, root, kAggregated, stop));
  if (response.status == 200 && IsAggregated(response.headers.Get("Content-Type"))) {
    return FromAggregated(response.body, service);
  }
  KEELSON_ASSIGN_OR_RETURN(const http::ClientResponse plain,
                           Get(service, service.Path(), "application/json", stop));
  if (plain.status != 200) {
    return Error(Code::kUnavailable,
                 fmt::format("failed to download discovery for {}: status {}", service.Path(), plain.status));
  }
  return FromResourceList(plain.body, service);
}

std::string ExtensionDocuments::ReadOpenApiV2(const ApiServiceEntry& service, std::stop_token stop,
                                              ExtensionDocument& document) {
  std::shared_ptr<const std::string> known;
  std::string etag;
  {
    MutexLock lock(mutex_);
    if (auto found = kept_.find(service.name);
        found != kept_.end() && found->second.target == service.Target()) {
      known = found->second.document.openapi_v2;
      if (known) etag = found->second.openapi_v2_etag;
    }
  }
  // Not every server has one.
  const Result<http::ClientResponse> response =
      Get(service, "/openapi/v2", "application/json", std::move(stop), etag);
  if (response && response->status == 304 && known) {
    document.openapi_v2 = std::move(known);
    return etag;
  }
  if (!response || response->status != 200) return "";
  Result<std::string> part = api::CutOpenApiV2(response->body, service.Path());
  if (!part) {
    log::Warn("Cannot use the OpenAPI document of an extension API server",
              {{"apiservice", service.name}, {"err", part.error()}});
    return "";
  }
  document.openapi_v2 =
      known && *known == *part ? std::move(known) : std::make_shared<const std::string>(*std::move(part));
  return std::string(response->headers.Get("ETag"));
}

void ExtensionDocuments::Put(const ApiServiceEntry& service, ExtensionDocument document, std::string etag) {
  Kept& kept = kept_[service.name];
  const bool same = kept.document.discovery && kept.document.fresh == document.fresh &&
                    kept.document.openapi_url == document.openapi_url &&
                    kept.document.openapi_v2 == document.openapi_v2 &&
                    api::EncodeRaw(*kept.document.discovery) == api::EncodeRaw(*document.discovery);
  kept.target = service.Target();
  kept.read = clock_.SteadyNow();
  kept.openapi_v2_etag = std::move(etag);
  const auto &before = kept.document.openapi_v2, &after = document.openapi_v2;
  if (before != after) {
    CountOpenApiChange(service.name, !after   ? PartChange::kDelete
                                     : before ? PartChange::kUpdate
                                              : PartChange::kAdd);
  }
  kept.document = std::move(document);
  if (!same) ++generation_;
}

void ExtensionDocuments::Refresh(const ApiServiceEntry& service, std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    auto found = kept_.find(service.name);
    if (found != kept_.end() && found->second.document.fresh && found->second.target == service.Target() &&
        clock_.SteadyNow() - found->second.read < kFreshFor) {
      return;
    }
  }
  Result<discoveryapi::APIVersionDiscovery> discovery = ReadDiscovery(service, stop);
  if (!discovery) {
    log::Warn("Cannot read the discovery of an extension API server",
              {{"apiservice", service.name}, {"err", discovery.error()}});
    return MarkStale(service);
  }
  ExtensionDocument document;
  document.fresh = true;
  document.discovery = Shared(std::move(*discovery));
  // Not every server has one.
  const Result<http::ClientResponse> index = Get(service, "/openapi/v3", "application/json", stop);
  if (index && index->status == 200) document.openapi_url = OpenApiUrlOf(index->body, service);
  document.openapi_path = service.Path().substr(1);
  std::string etag = ReadOpenApiV2(service, stop, document);
  MutexLock lock(mutex_);
  Put(service, std::move(document), std::move(etag));
}

void ExtensionDocuments::MarkStale(const ApiServiceEntry& service) {
  MutexLock lock(mutex_);
  ExtensionDocument document;
  auto found = kept_.find(service.name);
  const bool known = found != kept_.end() && found->second.target == service.Target();
  discoveryapi::APIVersionDiscovery last =
      known ? *found->second.document.discovery : EmptyOf(service, kStale);
  last.set_freshness(kStale);
  document.discovery = Shared(std::move(last));
  Put(service, std::move(document));
}

void ExtensionDocuments::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = kept_.find(name);
  if (found == kept_.end()) return;
  if (found->second.document.openapi_v2) CountOpenApiChange(name, PartChange::kDelete);
  kept_.erase(found);
  ++generation_;
}

std::map<std::string, ExtensionDocument> ExtensionDocuments::All() const {
  MutexLock lock(mutex_);
  std::map<std::string, ExtensionDocument> out;
  for (const auto& [name, kept] : kept_) out.emplace(name, kept.document);
  return out;
}

std::string ExtensionDocuments::OpenApiEntries() const {
  MutexLock lock(mutex_);
  std::string out;
  for (const auto& one : kept_) {
    const ExtensionDocument& document = one.second.document;
    if (!document.fresh || document.openapi_url.empty()) continue;
    out += fmt::format("{}{}:{{\"serverRelativeURL\":{}}}", out.empty() ? "" : ",",
                       JsonQuoted(document.openapi_path), JsonQuoted(document.openapi_url));
  }
  return out;
}

uint64_t ExtensionDocuments::generation() const {
  MutexLock lock(mutex_);
  return generation_;
}

}  // namespace keelson::apiserver
