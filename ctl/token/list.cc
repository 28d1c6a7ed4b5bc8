#include "ctl/token/list.h"

#include <boost/json.hpp>

#include "ctl/output.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

std::string OrNone(const std::string& text) { return text.empty() ? "<none>" : text; }

json::array Texts(const std::vector<std::string>& values) {
  json::array out;
  for (const std::string& value : values) out.emplace_back(value);
  return out;
}

}  // namespace

std::string TokenTable(const std::vector<BootstrapToken>& tokens, WallTime now) {
  std::vector<std::vector<std::string>> rows = {
      {"TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"}};
  for (const BootstrapToken& token : tokens) {
    const auto left = LifeLeft(token, now);
    const std::string ttl = !left ? "<invalid>" : !*left ? "<forever>" : ShortDuration(**left);
    rows.push_back({token.token, ttl, token.expires.empty() ? "<never>" : token.expires,
                    OrNone(Join(token.usages, ",")), OrNone(token.description),
                    OrNone(Join(token.groups, ","))});
  }
  return TextTable(rows);
}

json::value TokenDocument(const BootstrapToken& token) {
  json::object out;
  out["kind"] = "BootstrapToken";
  out["apiVersion"] = "output.kubeadm.k8s.io/v1alpha3";
  out["token"] = token.token;
  if (!token.description.empty()) out["description"] = token.description;
  if (!token.expires.empty()) out["expires"] = token.expires;
  if (!token.usages.empty()) out["usages"] = Texts(token.usages);
  if (!token.groups.empty()) out["groups"] = Texts(token.groups);
  return out;
}

}  // namespace keelson::ctl
