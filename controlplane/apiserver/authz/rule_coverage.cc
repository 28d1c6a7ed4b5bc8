#include "controlplane/apiserver/authz/rule_coverage.h"

#include <algorithm>

#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using Strings = std::vector<std::string>;

bool Has(const Strings& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
bool HasOrAny(const Strings& all, const std::string& one) { return Has(all, "*") || Has(all, one); }

bool CoversResource(const Strings& resources, const std::string& resource) {
  if (HasOrAny(resources, resource)) return true;
  auto slash = resource.find('/');
  return slash != std::string::npos && Has(resources, "*" + resource.substr(slash));
}

// "/a/*" covers "/a/b" and "/a/b/*".
bool CoversUrl(const Strings& urls, const std::string& url) {
  return std::any_of(urls.begin(), urls.end(), [&](const std::string& one) {
    if (one == url) return true;
    return !one.empty() && one.back() == '*' && url.compare(0, one.size() - 1, one, 0, one.size() - 1) == 0;
  });
}

bool CoversSingle(const PolicyRule& have, const PolicyRule& single) {
  if (!HasOrAny(have.verbs, single.verbs.front())) return false;
  if (!single.urls.empty()) return CoversUrl(have.urls, single.urls.front());
  if (!HasOrAny(have.groups, single.groups.front()) ||
      !CoversResource(have.resources, single.resources.front())) {
    return false;
  }
  if (have.names.empty()) return true;
  return !single.names.empty() && Has(have.names, single.names.front());
}

std::vector<PolicyRule> BreakDown(const PolicyRule& rule) {
  std::vector<PolicyRule> out;
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) out.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) out.push_back({{verb}, {group}, {resource}, {name}, {}});
      }
    }
  }
  for (const std::string& url : rule.urls) {
    for (const std::string& verb : rule.verbs) out.push_back({{verb}, {}, {}, {}, {url}});
  }
  return out;
}

}  // namespace

std::vector<PolicyRule> Uncovered(const std::vector<PolicyRule>& have,
                                  const std::vector<PolicyRule>& wanted) {
  std::vector<PolicyRule> out;
  for (const PolicyRule& rule : wanted) {
    for (PolicyRule& single : BreakDown(rule)) {
      bool covered = std::any_of(have.begin(), have.end(),
                                 [&](const PolicyRule& one) { return CoversSingle(one, single); });
      if (!covered) out.push_back(std::move(single));
    }
  }
  return out;
}

std::vector<PolicyRule> Compact(const std::vector<PolicyRule>& single) {
  std::vector<PolicyRule> out;
  for (const PolicyRule& rule : single) {
    auto same = std::find_if(out.begin(), out.end(), [&](const PolicyRule& one) {
      return rule.urls.empty() && one.groups == rule.groups && one.resources == rule.resources &&
             one.names == rule.names && one.urls.empty();
    });
    if (same == out.end()) {
      out.push_back(rule);
    } else {
      same->verbs.push_back(rule.verbs.front());
    }
  }
  return out;
}

std::string QuotedList(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ' ';
    out += k8s::Quote(item);
  }
  return out + "]";
}

std::string Describe(const PolicyRule& rule) {
  std::string out;
  auto part = [&](const char* name, const std::vector<std::string>& items) {
    if (items.empty()) return;
    out += out.empty() ? "{" : ", ";
    out += name;
    out += ":" + QuotedList(items);
  };
  part("APIGroups", rule.groups);
  part("Resources", rule.resources);
  part("NonResourceURLs", rule.urls);
  part("ResourceNames", rule.names);
  part("Verbs", rule.verbs);
  return out.empty() ? "{}" : out + "}";
}

}  // namespace keelson::apiserver
