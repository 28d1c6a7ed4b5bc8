#include "ctl/token/token.h"

#include <algorithm>

#include "lib/api/codec/text_forms.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/base/wall_time.h"
#include "lib/crypto/random.h"

namespace keelson::ctl {
namespace {

constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t kIdSize = 6, kSecretSize = 16;
constexpr char kType[] = "bootstrap.kubernetes.io/token";
constexpr char kUsagePrefix[] = "usage-bootstrap-";

bool IsOf(std::string_view text, size_t size) {
  return text.size() == size && text.find_first_not_of(kAlphabet) == text.npos;
}

// Bytes beyond the last multiple of the alphabet's size would favour its first letters.
std::string RandomText(size_t size) {
  constexpr unsigned kLimit = 256 / kAlphabet.size() * kAlphabet.size();
  std::string out;
  while (out.size() < size) {
    for (char byte : crypto::RandomBytes(size)) {
      const unsigned value = static_cast<unsigned char>(byte);
      if (value < kLimit && out.size() < size) out += kAlphabet[value % kAlphabet.size()];
    }
  }
  return out;
}

std::string Stored(const corev1::Secret& secret, const std::string& key) {
  const auto found = secret.data().find(key);
  return found == secret.data().end() ? "" : found->second;
}

}  // namespace

Result<TokenParts> ParseToken(std::string_view token) {
  const size_t dot = token.find('.');
  if (dot != token.npos && IsOf(token.substr(0, dot), kIdSize) && IsOf(token.substr(dot + 1), kSecretSize)) {
    return TokenParts{std::string(token.substr(0, dot)), std::string(token.substr(dot + 1))};
  }
  return Error(Code::kInvalid, "the bootstrap token \"" + std::string(token) +
                                   "\" was not of the form \"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\"");
}

bool IsTokenId(std::string_view text) { return IsOf(text, kIdSize); }

std::string NewToken() { return RandomText(kIdSize) + "." + RandomText(kSecretSize); }

std::string TokenSecretName(std::string_view id) { return "bootstrap-token-" + std::string(id); }

Result<corev1::Secret> TokenSecret(const BootstrapToken& token, WallTime now) {
  KEELSON_ASSIGN_OR_RETURN(const TokenParts parts, ParseToken(token.token));
  corev1::Secret out;
  out.mutable_metadata()->set_name(TokenSecretName(parts.id));
  out.mutable_metadata()->set_namespace_("kube-system");
  out.set_type(kType);
  auto& data = *out.mutable_data();
  data["token-id"] = parts.id;
  data["token-secret"] = parts.secret;
  if (!token.description.empty()) data["description"] = token.description;
  if (!token.expires.empty()) {
    KEELSON_RETURN_IF_ERROR(api::ParseTime(token.expires, false));
    data["expiration"] = token.expires;
  } else if (token.ttl && token.ttl->count() > 0) {
    data["expiration"] = api::FormatTime(api::ToTime(now + *token.ttl));
  }
  for (const std::string& usage : token.usages) data[kUsagePrefix + usage] = "true";
  if (!token.groups.empty()) data["auth-extra-groups"] = Join(token.groups, ",");
  return out;
}

Result<BootstrapToken> TokenOf(const corev1::Secret& secret) {
  BootstrapToken out;
  const std::string id = Stored(secret, "token-id"), value = Stored(secret, "token-secret");
  const std::string name = secret.metadata().name();
  if (id.empty()) return Error(Code::kInvalid, "bootstrap Token Secret has no token-id data: " + name);
  if (name != TokenSecretName(id)) {
    return Error(Code::kInvalid,
                 "bootstrap token name is not of the form 'bootstrap-token-(token-id)'. Actual: \"" + name +
                     "\". Expected: \"" + TokenSecretName(id) + "\"");
  }
  if (value.empty()) return Error(Code::kInvalid, "bootstrap Token Secret has no token-secret data: " + name);
  out.token = id + "." + value;
  KEELSON_RETURN_IF_ERROR(ParseToken(out.token));
  out.description = Stored(secret, "description");
  out.expires = Stored(secret, "expiration");
  for (const auto& [key, text] : secret.data()) {
    if (!key.starts_with(kUsagePrefix) || text != "true") continue;
    out.usages.push_back(key.substr(sizeof kUsagePrefix - 1));
  }
  std::sort(out.usages.begin(), out.usages.end());
  out.groups = SplitList(Stored(secret, "auth-extra-groups"));
  return out;
}

Result<std::optional<std::chrono::seconds>> LifeLeft(const BootstrapToken& token, WallTime now) {
  if (token.expires.empty()) return std::optional<std::chrono::seconds>();
  KEELSON_ASSIGN_OR_RETURN(const api::Instant end, api::ParseTime(token.expires, false));
  return std::optional(std::chrono::duration_cast<std::chrono::seconds>(WallTimeOf(end.seconds) - now));
}

}  // namespace keelson::ctl
