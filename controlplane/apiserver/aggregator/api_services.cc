#include "controlplane/apiserver/aggregator/api_services.h"

#include <fmt/format.h>

#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

constexpr int32_t kHttpsPort = 443;

}  // namespace

std::string ApiServiceEntry::Path() const {
  return group.empty() ? "/api/" + version : fmt::format("/apis/{}/{}", group, version);
}

std::string ApiServiceEntry::Target() const {
  return fmt::format("{}/{}:{} {} {}", service_ns, service_name, service_port, insecure, ca_pem);
}

const apiregistrationv1::APIServiceCondition* AvailableCondition(
    const apiregistrationv1::APIService& service) {
  for (const apiregistrationv1::APIServiceCondition& condition : service.status().conditions()) {
    if (condition.type() == "Available") return &condition;
  }
  return nullptr;
}

ApiServicePtr ToEntry(const apiregistrationv1::APIService& service) {
  auto out = std::make_shared<ApiServiceEntry>();
  const apiregistrationv1::APIServiceSpec& spec = service.spec();
  out->name = service.metadata().name();
  out->uid = service.metadata().uid();
  out->group = spec.group();
  out->version = spec.version();
  out->group_priority = spec.group_priority_minimum();
  out->version_priority = spec.version_priority();
  const apiregistrationv1::APIServiceCondition* available = AvailableCondition(service);
  out->available = available && available->status() == "True";
  if (!spec.has_service()) return out;
  out->local = false;
  out->service_ns = spec.service().namespace_();
  out->service_name = spec.service().name();
  out->service_port = spec.service().has_port() ? spec.service().port() : kHttpsPort;
  out->ca_pem = spec.ca_bundle();
  out->insecure = spec.insecure_skip_tls_verify();
  return out;
}

std::pair<std::string_view, std::string_view> GroupVersionOf(std::string_view path) {
  auto next = [&path] {
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), segment.size() + 1));
    return segment;
  };
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  const std::string_view root = next();
  if (root == "api") return {"", next()};
  if (root != "apis") return {};
  const std::string_view group = next(), version = next();
  if (group.empty() || version.empty()) return {};
  return {group, version};
}

ApiServices::ApiServices(const storage::Store& store) : store_(store), all_(std::make_shared<const Map>()) {}

void ApiServices::Replace(const std::string& name, ApiServicePtr entry) {
  MutexLock lock(mutex_);
  auto next = std::make_shared<Map>(*all_.load());
  if (entry) {
    next->insert_or_assign(name, std::move(entry));
  } else {
    next->erase(name);
  }
  size_t remote = 0;
  for (const auto& one : *next) remote += one.second->local ? 0 : 1;
  all_.store(std::move(next));
  remote_.store(remote);
}

void ApiServices::Put(const storage::ObjectPtr& object) {
  Replace(object->key(), ToEntry(static_cast<const apiregistrationv1::APIService&>(*object->Decode())));
}

void ApiServices::Remove(const std::string& name) { Replace(name, nullptr); }

ApiServicePtr ApiServices::RemoteOf(std::string_view group, std::string_view version) const {
  if (remote_.load() == 0 || version.empty() || group == kRegistrationGroup) return nullptr;
  const std::string name = fmt::format("{}.{}", version, group);
  const std::shared_ptr<const Map> all = all_.load();
  auto found = all->find(name);
  if (found == all->end() || found->second->local) return nullptr;
  if (found->second->available) return found->second;
  // The watch that feeds this table may be behind what the client has seen.
  const storage::ObjectPtr object = store_.Peek(api::ResourceOf<apiregistrationv1::APIService>(), name);
  if (!object) return found->second;
  ApiServicePtr newest = ToEntry(static_cast<const apiregistrationv1::APIService&>(*object->Decode()));
  return newest->local ? nullptr : newest;
}

}  // namespace keelson::apiserver
