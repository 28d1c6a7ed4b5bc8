#include "controlplane/apiserver/authn/impersonation.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/percent.h"
#include "lib/base/text.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/names.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kNodeNameExtra = "authentication.kubernetes.io/node-name";
constexpr std::string_view kAssociatedNode = "associated-node";
// With more groups, one combined check comes first.
constexpr size_t kMany = 4;

// {namespace, name} of "system:serviceaccount:NS:NAME".
std::optional<std::pair<std::string, std::string>> ServiceAccountOf(std::string_view name) {
  if (!name.starts_with(kUserServiceAccountPrefix)) return std::nullopt;
  name.remove_prefix(kUserServiceAccountPrefix.size());
  auto colon = name.find(':');
  if (colon == std::string_view::npos || name.find(':', colon + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(std::string(name.substr(0, colon)), std::string(name.substr(colon + 1)));
}

std::optional<std::string> NodeOf(std::string_view name) {
  if (!name.starts_with(kUserNodePrefix)) return std::nullopt;
  name.remove_prefix(kUserNodePrefix.size());
  if (!k8s::CheckDns1123Subdomain(name).empty()) return std::nullopt;
  return std::string(name);
}

// As the headers have it. Empty: no header asks for another user.
User WantedUser(const http::Headers& headers) {
  User out;
  out.name = headers.Get("Impersonate-User");
  out.uid = headers.Get("Impersonate-Uid");
  for (std::string_view group : headers.All("Impersonate-Group")) out.groups.emplace_back(group);
  for (const auto& header : headers) {
    std::string_view name = header.first;
    if (name.size() < kExtraPrefix.size() ||
        !EqualsIgnoreCase(name.substr(0, kExtraPrefix.size()), kExtraPrefix)) {
      continue;
    }
    out.extra[PercentDecode(Lower(name.substr(kExtraPrefix.size())))].push_back(header.second);
  }
  return out;
}

// A list as Go prints it.
std::string GoList(const std::vector<std::string>& values) {
  std::vector<std::string> quoted;
  for (const std::string& value : values) quoted.push_back(k8s::Quote(value));
  return fmt::format("{{{}}}", fmt::join(quoted, ", "));
}

Error WithoutAName(const User& wanted) {
  const std::string groups = wanted.groups.empty() ? "(nil)" : GoList(wanted.groups);
  std::vector<std::string> extra;
  for (const auto& [key, values] : wanted.extra) {
    extra.push_back(fmt::format("{}:[]string{}", k8s::Quote(key), GoList(values)));
  }
  return Error(Code::kBadRequest,
               fmt::format("requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{}, "
                           "Extra:map[string][]string{}}} without impersonating a user name",
                           k8s::Quote(wanted.uid), groups,
                           extra.empty() ? "(nil)" : fmt::format("{{{}}}", fmt::join(extra, ", "))));
}

bool HasNameOnly(const User& wanted) {
  return wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty();
}

struct Mode {
  std::string_view name;  // empty: the legacy mode
  bool (*fits)(const User& wanted, const User& requestor);
};
constexpr Mode kModes[] = {
    {kAssociatedNode,
     [](const User& wanted, const User& requestor) {
       std::optional<std::string> node = NodeOf(wanted.name);
       if (!node || !HasNameOnly(wanted) || !ServiceAccountOf(requestor.name)) return false;
       auto own = requestor.extra.find(std::string(kNodeNameExtra));
       return own != requestor.extra.end() && own->second == std::vector<std::string>{*node};
     }},
    {"arbitrary-node",
     [](const User& wanted, const User&) { return HasNameOnly(wanted) && NodeOf(wanted.name).has_value(); }},
    {"serviceaccount",
     [](const User& wanted, const User&) {
       return HasNameOnly(wanted) && ServiceAccountOf(wanted.name).has_value();
     }},
    {"user-info",
     [](const User& wanted, const User&) { return !NodeOf(wanted.name) && !ServiceAccountOf(wanted.name); }},
    {"", [](const User&, const User&) { return true; }},
};

// The authorization checks of one mode.
class Attempt {
 public:
  Attempt(const Mode& mode, const User& requestor, const User& wanted, const Authorizer& authorizer)
      : mode_(mode),
        constrained_(!mode.name.empty()),
        verb_(constrained_ ? fmt::format("impersonate:{}", mode.name) : "impersonate"),
        wanted_(wanted),
        authorizer_(authorizer),
        requestor_(requestor) {
    if (mode.name != kAssociatedNode) return;
    // Authorizers may see that these facts are known, but not their values: the decision must hold for every
    // node.
    std::vector<std::string> keys;
    for (const auto& extra : requestor.extra) keys.push_back(extra.first);
    requestor_.extra = {{"authentication.kubernetes.io/associated-node-keys", std::move(keys)}};
  }

  Result<Impersonation> Run(const RequestInfo& request) const {
    if (constrained_) {
      RequestInfo on = request;
      on.verb = fmt::format("impersonate-on:{}:{}", mode_.name, request.verb);
      KEELSON_RETURN_IF_ERROR(Ask(on));
    }
    Impersonation out{wanted_, constrained_ ? verb_ : ""};
    KEELSON_RETURN_IF_ERROR(AskName(out.user));
    if (!wanted_.uid.empty()) KEELSON_RETURN_IF_ERROR(Ask(About("uids", wanted_.uid)));
    KEELSON_RETURN_IF_ERROR(AskGroups());
    KEELSON_RETURN_IF_ERROR(AskExtra());
    const bool anonymous = out.user.name == kUserAnonymous;
    const std::string_view group = anonymous ? kGroupUnauthenticated : kGroupAuthenticated;
    if (!out.user.InGroup(group) && !out.user.InGroup(kGroupUnauthenticated)) {
      out.user.groups.emplace_back(group);
    }
    return out;
  }

 private:
  // In legacy mode users and groups are in the core group.
  RequestInfo About(std::string_view resource, std::string_view name) const {
    const bool core = !constrained_ && (resource == "users" || resource == "groups");
    RequestInfo out;
    out.is_resource = true;
    out.verb = verb_;
    out.group = core ? "" : "authentication.k8s.io";
    out.version = "v1";
    out.resource = resource;
    out.name = name;
    return out;
  }
  Result<> Ask(const RequestInfo& about) const {
    const Attributes attributes{requestor_, about};
    Decision decision = authorizer_.Authorize(attributes);
    if (decision.allowed) return {};
    return ForbiddenTo(attributes, decision.reason);
  }
  Error Refuse(const RequestInfo& about, std::string_view why) const {
    return ForbiddenTo({requestor_, about}, why);
  }

  Result<> AskName(User& actual) const {
    RequestInfo about = About("users", wanted_.name);
    if (std::optional<std::string> node = NodeOf(wanted_.name); node && constrained_) {
      about.resource = "nodes";
      about.name = mode_.name == kAssociatedNode ? "*" : *node;
      actual.groups = {std::string(kGroupNodes)};
    }
    if (auto account = ServiceAccountOf(wanted_.name)) {
      about.resource = "serviceaccounts";
      about.ns = account->first;
      about.name = account->second;
      if (wanted_.groups.empty()) {
        actual.groups = {std::string(kGroupServiceAccounts),
                         fmt::format("{}:{}", kGroupServiceAccounts, account->first)};
      }
    }
    return Ask(about);
  }

  Result<> AskGroups() const {
    if (wanted_.groups.empty()) return {};
    if (constrained_) {
      if (wanted_.InGroup("")) {
        return Refuse(About("groups", ""), "impersonating the empty string group is not allowed");
      }
      if (wanted_.InGroup(kGroupMasters)) {
        return Refuse(About("groups", kGroupMasters),
                      "impersonating the system:masters group is not allowed");
      }
      if (wanted_.groups.size() >= kMany && Ask(About("groups", "*"))) return {};
    }
    for (const std::string& group : wanted_.groups) KEELSON_RETURN_IF_ERROR(Ask(About("groups", group)));
    return {};
  }

  Result<> AskExtra() const {
    if (wanted_.extra.empty()) return {};
    RequestInfo about = About("userextras", "");
    if (constrained_) {
      if (std::string problem = ProblemOfExtra(); !problem.empty()) return Refuse(about, problem);
      size_t count = 0;
      for (const auto& extra : wanted_.extra) count += extra.second.size();
      about.subresource = about.name = "*";
      if (count >= kMany && Ask(about)) return {};
    }
    for (const auto& extra : wanted_.extra) {
      about.subresource = extra.first;
      for (const std::string& value : extra.second) {
        about.name = value;
        KEELSON_RETURN_IF_ERROR(Ask(about));
      }
    }
    return {};
  }

  std::string ProblemOfExtra() const {
    const k8s::Path root("extra"), path = root.Child("key");
    for (const auto& [key, values] : wanted_.extra) {
      if (key.empty()) return "impersonating the empty string key in extra is not allowed";
      k8s::FieldErrors errors;
      k8s::CheckDomainPrefixedPath(key, path, errors);
      if (!errors.empty()) {
        std::vector<std::string> texts;
        for (const k8s::FieldError& error : errors) texts.push_back(error.ToString());
        return "impersonating an invalid key in extra is not allowed: " + Aggregate(texts);
      }
      if (key != Lower(key)) {
        return fmt::format("impersonating a non-lowercase key in extra is not allowed: {}", k8s::Quote(key));
      }
      if (std::find(values.begin(), values.end(), "") != values.end()) {
        return "impersonating the empty string value in extra is not allowed";
      }
    }
    return "";
  }

  const Mode& mode_;
  const bool constrained_;
  const std::string verb_;
  const User& wanted_;
  const Authorizer& authorizer_;
  User requestor_;
};

}  // namespace

Result<std::optional<Impersonation>> Impersonate(const User& requestor, const http::Headers& headers,
                                                 const RequestInfo& request, const Authorizer& authorizer) {
  const User wanted = WantedUser(headers);
  if (wanted.name.empty()) {
    if (HasNameOnly(wanted)) return std::optional<Impersonation>();
    return WithoutAName(wanted);
  }
  std::optional<Error> first;
  for (const Mode& mode : kModes) {
    if (!mode.fits(wanted, requestor)) continue;
    Result<Impersonation> tried = Attempt(mode, requestor, wanted, authorizer).Run(request);
    if (tried) return std::optional<Impersonation>(std::move(*tried));
    if (!first) first = std::move(tried.error());
  }
  return std::move(*first);
}

}  // namespace keelson::apiserver
