#include "controlplane/apiserver/flowcontrol/matcher.h"

#include <algorithm>
#include <string_view>

namespace keelson::apiserver::flowcontrol {
namespace {

namespace v1 = api::flowcontrol::v1;

template <typename List>
bool Has(const List& list, std::string_view value) {
  return std::any_of(list.begin(), list.end(), [&](const auto& one) { return one == value || one == "*"; });
}

bool Is(const v1::Subject& subject, const User& user) {
  if (subject.kind() == "User") return subject.user().name() == "*" || subject.user().name() == user.name;
  if (subject.kind() == "Group") return subject.group().name() == "*" || user.InGroup(subject.group().name());
  const v1::ServiceAccountSubject& account = subject.service_account();
  const std::string prefix = std::string(kUserServiceAccountPrefix) + account.namespace_() + ":";
  if (user.name.compare(0, prefix.size(), prefix) != 0) return false;
  return account.name() == "*" || user.name.substr(prefix.size()) == account.name();
}

bool Covers(const v1::ResourcePolicyRule& rule, const RequestInfo& request) {
  if (!Has(rule.verbs(), request.verb) || !Has(rule.api_groups(), request.group) ||
      !Has(rule.resources(), request.FullResource())) {
    return false;
  }
  return request.ns.empty() ? rule.cluster_scope() : Has(rule.namespaces(), request.ns);
}

bool Covers(const v1::NonResourcePolicyRule& rule, const RequestInfo& request) {
  if (!Has(rule.verbs(), request.verb)) return false;
  const auto& urls = rule.non_resource_urls();
  return std::any_of(urls.begin(), urls.end(), [&](const std::string& url) {
    if (url == "*" || url == request.path) return true;
    return url.size() > 1 && url.substr(url.size() - 2) == "/*" &&
           request.path.compare(0, url.size() - 1, url, 0, url.size() - 1) == 0;
  });
}

uint64_t Hash(std::string_view text, uint64_t hash) {
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace

bool Matches(const v1::FlowSchema& schema, const User& user, const RequestInfo& request) {
  for (const v1::PolicyRulesWithSubjects& rules : schema.spec().rules()) {
    const auto& subjects = rules.subjects();
    if (std::none_of(subjects.begin(), subjects.end(), [&](const auto& one) { return Is(one, user); })) {
      continue;
    }
    if (request.is_resource) {
      for (const auto& rule : rules.resource_rules()) {
        if (Covers(rule, request)) return true;
      }
    } else {
      for (const auto& rule : rules.non_resource_rules()) {
        if (Covers(rule, request)) return true;
      }
    }
  }
  return false;
}

std::string FlowOf(const v1::FlowSchema& schema, const User& user, const RequestInfo& request) {
  const std::string& method = schema.spec().distinguisher_method().type();
  if (method == "ByUser") return user.name;
  return method == "ByNamespace" ? request.ns : "";
}

uint64_t FlowHash(const v1::FlowSchema& schema, std::string_view flow) {
  uint64_t hash = Hash(schema.metadata().name(), 0xcbf29ce484222325);
  hash = Hash(std::string_view("\0", 1), hash);
  hash = Hash(flow, hash);
  // Mix all bits, because shuffle sharding uses the low ones.
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 33;
}

void Matcher::Put(FlowSchemaPtr schema) {
  MutexLock lock(mutex_);
  schemas_[schema->metadata().name()] = std::move(schema);
  Sort();
}

void Matcher::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  schemas_.erase(name);
  Sort();
}

void Matcher::Sort() {
  auto sorted = std::make_shared<Sorted>();
  for (const auto& [name, schema] : schemas_) sorted->push_back(schema);
  std::stable_sort(sorted->begin(), sorted->end(), [](const FlowSchemaPtr& a, const FlowSchemaPtr& b) {
    return a->spec().matching_precedence() < b->spec().matching_precedence();
  });
  sorted_ = std::move(sorted);
}

FlowSchemaPtr Matcher::Find(const User& user, const RequestInfo& request) const {
  std::shared_ptr<const Sorted> sorted;
  {
    MutexLock lock(mutex_);
    sorted = sorted_;
  }
  for (const FlowSchemaPtr& schema : *sorted) {
    if (Matches(*schema, user, request)) return schema;
  }
  return nullptr;
}

}  // namespace keelson::apiserver::flowcontrol
