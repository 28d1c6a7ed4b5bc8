#include "kubelet/image/keyring.h"

#include <algorithm>
#include <boost/json.hpp>

#include "lib/base/file.h"
#include "lib/crypto/digest.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

std::string Decode64(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (char c : text) {
    size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(value);
    if (++count % 4 != 1) {
      out.push_back(static_cast<char>(bits >> (count % 4 == 0 ? 0 : count % 4 == 3 ? 2 : 4) & 0xff));
    }
  }
  return out;
}

// "https://index.docker.io/v1/" -> "docker.io": what images are matched with.
std::string PatternOfKey(std::string key) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.compare(0, scheme.size(), scheme) == 0) key.erase(0, scheme.size());
  }
  size_t slash = std::min(key.find('/'), key.size());
  std::string host = key.substr(0, slash), path = key.substr(slash);
  if (path.compare(0, 4, "/v1/") == 0 || path.compare(0, 4, "/v2/") == 0) path.erase(0, 3);
  if (path == "/" || path == "/v1" || path == "/v2") path.clear();
  if (host == "index.docker.io") host = "docker.io";
  return host + path;
}

struct Address {
  std::string_view host, port, path;
};

Address Split(std::string_view text) {
  Address out;
  size_t slash = std::min(text.find('/'), text.size());
  out.host = text.substr(0, slash);
  out.path = text.substr(slash);
  if (size_t colon = out.host.rfind(':'); colon != std::string_view::npos) {
    out.port = out.host.substr(colon + 1);
    out.host = out.host.substr(0, colon);
  }
  return out;
}

bool PartMatches(std::string_view pattern, std::string_view part) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == part;
  if (part.size() < star || pattern.substr(0, star) != part.substr(0, star)) return false;
  for (size_t skip = star; skip <= part.size(); ++skip) {
    if (PartMatches(pattern.substr(star + 1), part.substr(skip))) return true;
  }
  return false;
}

bool HostMatches(std::string_view pattern, std::string_view host) {
  while (true) {
    size_t a = std::min(pattern.find('.'), pattern.size()), b = std::min(host.find('.'), host.size());
    if (!PartMatches(pattern.substr(0, a), host.substr(0, b))) return false;
    if (a == pattern.size() || b == host.size()) return a == pattern.size() && b == host.size();
    pattern.remove_prefix(a + 1);
    host.remove_prefix(b + 1);
  }
}

Credential FromEntry(const json::object& entry) {
  auto text = [&entry](const char* name) {
    const auto* value = entry.if_contains(name);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  Credential out;
  out.auth.username = text("username");
  out.auth.password = text("password");
  out.auth.identity_token = text("identitytoken");
  out.auth.registry_token = text("registrytoken");
  if (std::string encoded = text("auth"); !encoded.empty() && out.auth.username.empty()) {
    std::string pair = Decode64(encoded);
    size_t colon = pair.find(':');
    out.auth.username = pair.substr(0, colon);
    if (colon != std::string::npos) out.auth.password = pair.substr(colon + 1);
  }
  const cri::AuthConfig& auth = out.auth;
  std::string all = auth.username;
  for (const std::string* part : {&auth.password, &auth.identity_token, &auth.registry_token}) {
    all += std::string(1, '\0') + *part;
  }
  out.hash = crypto::Sha256Hex(all);
  return out;
}

// `text` is a .dockercfg (the entries themselves) or a config.json (entries below "auths").
std::vector<Credential> FromConfig(const std::string& text, bool modern, const std::string& image) {
  json::error_code failed;
  json::value config = json::parse(text, failed);
  if (failed || !config.is_object()) return {};
  const json::value* auths = modern ? config.as_object().if_contains("auths") : &config;
  if (!auths || !auths->is_object()) return {};
  std::vector<std::pair<std::string, const json::object*>> matching;
  for (const auto& item : auths->as_object()) {
    std::string pattern = PatternOfKey(std::string(item.key()));
    if (item.value().is_object() && CoversImage(pattern, image)) {
      matching.emplace_back(pattern, &item.value().as_object());
    }
  }
  std::stable_sort(matching.begin(), matching.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::vector<Credential> out;
  for (const auto& [pattern, entry] : matching) out.push_back(FromEntry(*entry));
  return out;
}

}  // namespace

bool CoversImage(std::string_view pattern, std::string_view image) {
  Address wanted = Split(pattern), have = Split(image);
  return wanted.port == have.port && have.path.substr(0, wanted.path.size()) == wanted.path &&
         HostMatches(wanted.host, have.host);
}

std::vector<Credential> FindCredentials(const std::string& image,
                                        const std::vector<corev1::Secret>& secrets) {
  std::vector<Credential> out;
  for (const corev1::Secret& secret : secrets) {
    bool modern = secret.type() != "kubernetes.io/dockercfg";
    auto it = secret.data().find(modern ? ".dockerconfigjson" : ".dockercfg");
    if (it == secret.data().end()) continue;
    for (Credential& credential : FromConfig(it->second, modern, image)) {
      credential.from = Credential::From::kSecret;
      credential.ns = secret.metadata().namespace_();
      credential.name = secret.metadata().name();
      credential.uid = secret.metadata().uid();
      out.push_back(std::move(credential));
    }
  }
  return out;
}

std::vector<Credential> FindNodeCredentials(const std::string& image, const std::vector<std::string>& dirs) {
  for (const std::string& dir : dirs) {
    auto text = ReadFile(dir + "/config.json");
    if (!text) continue;
    if (auto found = FromConfig(*text, true, image); !found.empty()) return found;
  }
  return {};
}

}  // namespace keelson::kubelet
