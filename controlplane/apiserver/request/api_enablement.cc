#include "controlplane/apiserver/request/api_enablement.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

// Served like an aggregated API, so --runtime-config does not apply.
constexpr std::string_view kExtension = "metrics.k8s.io";
// Groups of Kubernetes 1.36 without a version here.
constexpr std::string_view kGroupsElsewhere[] = {"extensions", "imagepolicy.k8s.io",
                                                 "internal.apiserver.k8s.io"};

std::string_view StageOf(std::string_view version) {
  if (version.find("alpha") != std::string_view::npos) return "alpha";
  return version.find("beta") != std::string_view::npos ? "beta" : "ga";
}

std::string VersionKey(std::string_view group, std::string_view version) {
  return std::string(group) + "/" + std::string(version);
}

bool HasGroup(std::string_view group) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group == group && group != kExtension) return true;
  }
  return std::find(std::begin(kGroupsElsewhere), std::end(kGroupsElsewhere), group) !=
         std::end(kGroupsElsewhere);
}

bool HasVersion(std::string_view group, std::string_view version) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group == group && info.version == version) return true;
  }
  return false;
}

Result<bool> BoolOf(const std::string& key, const std::string& text) {
  constexpr std::string_view kTrue[] = {"", "1", "t", "T", "true", "TRUE", "True"};
  constexpr std::string_view kFalse[] = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::find(std::begin(kTrue), std::end(kTrue), text) != std::end(kTrue)) return true;
  if (std::find(std::begin(kFalse), std::end(kFalse), text) != std::end(kFalse)) return false;
  return Error(Code::kInvalid, "invalid value of " + key + ": " + text +
                                   ", err: strconv.ParseBool: parsing \"" + text + "\": invalid syntax");
}

// api/all, api/ga, api/beta and api/alpha take no other spelling.
Result<bool> WideBoolOf(const std::string& key, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return Error(Code::kInvalid, "invalid value " + key + "=" + text);
}

void TellNotHere(const std::string& what) { log::Warn("This API is not served here", {{"api", what}}); }

}  // namespace

Result<ApiEnablement> ApiEnablement::Parse(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> given;  // the last setting counts
  for (const std::string& setting : settings) {
    const size_t equals = std::min(setting.find('='), setting.size());
    given[setting.substr(0, equals)] = setting.substr(std::min(equals + 1, setting.size()));
  }
  ApiEnablement out;
  if (auto all = given.find("api/all"); all != given.end()) {
    KEELSON_ASSIGN_OR_RETURN(const bool on, WideBoolOf(all->first, all->second));
    if (!on && given.size() == 1) return Error(Code::kInvalid, "invalid key with only api/all=false");
    for (const char* stage : {"ga", "beta", "alpha"}) out.wide_[stage] = on;
  }
  std::string unknown;
  for (const auto& [key, text] : given) {
    if (key == "api/all") continue;
    const bool core = key == "v1" || key == "api/v1";
    const std::vector<std::string_view> path = Split(core ? std::string_view("/v1") : key, '/');
    const std::vector<std::string> parts(path.begin(), path.end());
    if (parts.size() != 2 && parts.size() != 3) {
      return Error(Code::kInvalid, "runtime-config invalid key " + key);
    }
    if (parts[0] == "api" && parts.size() == 2 &&
        (parts[1] == "ga" || parts[1] == "beta" || parts[1] == "alpha")) {
      KEELSON_ASSIGN_OR_RETURN(out.wide_[parts[1]], WideBoolOf(key, text));
      continue;
    }
    if (!HasGroup(parts[0])) {
      unknown += (unknown.empty() ? "" : ",") + parts[0];
      continue;
    }
    if (!HasVersion(parts[0], parts[1])) {
      if (StageOf(parts[1]) == "ga") {
        return Error(Code::kInvalid,
                     "group version " + VersionKey(parts[0], parts[1]) + " that has not been registered");
      }
      KEELSON_ASSIGN_OR_RETURN(const bool on, BoolOf(key, text));
      if (on) TellNotHere(key);
      continue;
    }
    KEELSON_ASSIGN_OR_RETURN(const bool on, BoolOf(key, text));
    if (parts.size() == 3) {
      if (Lower(parts[2]) != parts[2]) {
        return Error(Code::kInvalid,
                     "invalid key " + key +
                         ": group/version/resource and resource is always lowercase plural, not \"" +
                         parts[2] + "\"");
      }
      out.resources_[VersionKey(parts[0], parts[1]) + "/" + parts[2]] = on;
    } else {
      out.versions_[VersionKey(parts[0], parts[1])] = on;
    }
  }
  if (!unknown.empty()) return Error(Code::kInvalid, "unknown api groups " + unknown);
  for (const char* stage : {"beta", "alpha"}) {
    if (auto it = out.wide_.find(stage); it != out.wide_.end() && it->second) {
      TellNotHere(stage == std::string_view("beta") ? "what is beta, but certificates.k8s.io/v1beta1 and "
                                                      "storagemigration.k8s.io/v1beta1"
                                                    : "what is alpha");
    }
  }
  return out;
}

bool ApiEnablement::ServesVersion(std::string_view group, std::string_view version) const {
  if (auto it = versions_.find(VersionKey(group, version)); it != versions_.end()) return it->second;
  const std::string_view stage = StageOf(version);
  if (auto it = wide_.find(stage); it != wide_.end()) return it->second;
  return stage == "ga";
}

bool ApiEnablement::Serves(const api::ResourceInfo& info) const {
  if (info.group == kExtension) return true;
  if (!resources_.empty()) {
    const std::string_view main = info.resource.substr(0, info.resource.find('/'));
    auto it = resources_.find(VersionKey(info.group, info.version) + "/" + std::string(main));
    if (it != resources_.end()) return it->second;
  }
  return ServesVersion(info.group, info.version);
}

}  // namespace keelson::apiserver
