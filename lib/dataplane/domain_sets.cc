#include "lib/dataplane/domain_sets.h"

namespace keelson::dataplane {
namespace {

constexpr size_t kLongest = 240;                     // a set's name has 255 bytes
constexpr std::chrono::minutes kDefaultLifetime{1};  // every element says its own
constexpr std::string_view kWildcard = "*.";

std::string ExactPrefix(bool v4) { return v4 ? "domain4-" : "domain6-"; }
std::string WildcardPrefix(bool v4) { return v4 ? "subdomains4-" : "subdomains6-"; }

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsLabel(std::string_view label) {
  if (label.empty() || !IsAlphanumeric(label.front()) || !IsAlphanumeric(label.back())) return false;
  for (char c : label) {
    if (!IsAlphanumeric(c) && c != '-' && c != '_') return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> DomainPattern(std::string_view text) {
  std::string out;
  for (char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  if (out.ends_with('.')) out.pop_back();
  if (out.size() > kLongest) return std::nullopt;
  std::string_view rest = out;
  if (rest.starts_with(kWildcard)) rest.remove_prefix(kWildcard.size());
  size_t labels = 0;
  for (;; ++labels) {
    const size_t dot = rest.find('.');
    if (!IsLabel(rest.substr(0, dot))) return std::nullopt;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (labels == 0) return std::nullopt;  // the API wants two labels: "*.com" is none
  return out;
}

nft::Set DomainAddresses(std::string_view pattern, bool v4) {
  const bool wildcard = pattern.starts_with(kWildcard);
  if (wildcard) pattern.remove_prefix(kWildcard.size());
  nft::Set out{.name = wildcard ? WildcardPrefix(v4) : ExactPrefix(v4), .key = {}};
  out.name += pattern;
  out.key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr};
  out.dynamic = true;
  out.timeout = kDefaultLifetime;
  return out;
}

std::optional<std::string> PatternOf(std::string_view set_name, bool v4) {
  const std::string exact = ExactPrefix(v4), wildcard = WildcardPrefix(v4);
  if (set_name.starts_with(exact)) return std::string(set_name.substr(exact.size()));
  if (!set_name.starts_with(wildcard)) return std::nullopt;
  return std::string(kWildcard) + std::string(set_name.substr(wildcard.size()));
}

std::vector<std::string> DomainSetsOf(std::string_view name, bool v4) {
  std::vector<std::string> out;
  if (name.empty()) return out;
  out.push_back(ExactPrefix(v4) + std::string(name));
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    name.remove_prefix(dot + 1);
    out.push_back(WildcardPrefix(v4) + std::string(name));
  }
  return out;
}

}  // namespace keelson::dataplane
