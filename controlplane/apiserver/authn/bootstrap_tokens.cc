#include "controlplane/apiserver/authn/bootstrap_tokens.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lib/crypto/digest.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kIdSize = 6, kSecretSize = 16;
constexpr std::string_view kGroup = "system:bootstrappers";

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// abcdef.0123456789abcdef
bool IsBootstrapToken(std::string_view token) {
  if (token.size() != kIdSize + 1 + kSecretSize || token[kIdSize] != '.') return false;
  for (size_t i = 0; i < token.size(); ++i) {
    if (i != kIdSize && !IsAlphanumeric(token[i])) return false;
  }
  return true;
}

// Groups must be system:bootstrappers:NAME, else the Secret could grant any group.
bool MayBeExtraGroup(std::string_view group) {
  std::string prefix = std::string(kGroup) + ":";
  if (group.substr(0, prefix.size()) != prefix) return false;
  group.remove_prefix(prefix.size());
  return !group.empty() && group.size() <= 256 && IsAlphanumeric(group.back()) &&
         std::all_of(group.begin(), group.end(),
                     [](char c) { return IsAlphanumeric(c) || c == ':' || c == '-'; });
}

Result<std::vector<std::string>> ExtraGroups(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string group = text.substr(at, comma - at);
    at = comma + 1;
    if (group.empty()) continue;
    if (!MayBeExtraGroup(group)) {
      return Error(Code::kUnauthenticated,
                   fmt::format("bootstrap token group {} is invalid (must match "
                               "\\Asystem:bootstrappers:[a-z0-9:-]{{0,255}}[a-z0-9]\\z)",
                               k8s::Quote(group)));
    }
    out.push_back(std::move(group));
  }
  return out;
}

// Parses 2026-01-01T00:00:00Z, or with an offset, to seconds.
std::optional<int64_t> ParseRfc3339(const std::string& text) {
  tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) return std::nullopt;
  if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
  tm zone = parts;
  if (rest == std::string_view("Z")) {
    zone.tm_gmtoff = 0;
  } else {
    rest = strptime(rest, "%z", &zone);
    if (!rest || *rest) return std::nullopt;
  }
  long offset = zone.tm_gmtoff;
  return static_cast<int64_t>(timegm(&parts)) - offset;
}

class Verifier : public TokenVerifier {
 public:
  Verifier(BootstrapSecretLookup lookup, std::vector<std::string> audiences, Clock& clock)
      : lookup_(std::move(lookup)), audiences_(std::move(audiences)), clock_(clock) {}

  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override {
    std::vector<std::string> both = Intersect(audiences, audiences_);
    if (!IsBootstrapToken(token) || both.empty()) return std::optional<TokenAnswer>();
    std::string id(token.substr(0, kIdSize));
    std::optional<BootstrapSecret> secret = lookup_("bootstrap-token-" + id);
    if (!secret || !IsGood(*secret, id, token.substr(kIdSize + 1))) return std::optional<TokenAnswer>();
    KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> extra, ExtraGroups(secret->data["auth-extra-groups"]));
    TokenAnswer answer;
    answer.user.name = "system:bootstrap:" + id;
    answer.user.groups.emplace_back(kGroup);
    for (std::string& group : extra) answer.user.groups.push_back(std::move(group));
    answer.audiences = std::move(both);
    return std::optional<TokenAnswer>(std::move(answer));
  }

 private:
  bool IsGood(BootstrapSecret& secret, const std::string& id, std::string_view token_secret) const {
    if (secret.deleted || secret.type != "bootstrap.kubernetes.io/token") return false;
    // Compares digests, so that timing reveals nothing about the secret.
    const std::string& stored = secret.data["token-secret"];
    if (stored.empty() || crypto::Sha256(stored) != crypto::Sha256(token_secret)) return false;
    if (secret.data["token-id"] != id || secret.data["usage-bootstrap-authentication"] != "true") {
      return false;
    }
    const std::string& expiration = secret.data["expiration"];
    if (expiration.empty()) return true;
    std::optional<int64_t> expires = ParseRfc3339(expiration);
    return expires && *expires > WallTime::clock::to_time_t(clock_.Now());
  }

  const BootstrapSecretLookup lookup_;
  const std::vector<std::string> audiences_;
  Clock& clock_;
};

}  // namespace

std::shared_ptr<TokenVerifier> NewBootstrapTokenVerifier(BootstrapSecretLookup lookup,
                                                         std::vector<std::string> api_audiences,
                                                         Clock& clock) {
  return std::make_shared<Verifier>(std::move(lookup), std::move(api_audiences), clock);
}

}  // namespace keelson::apiserver
