#include "lib/api/names.h"

#include <arpa/inet.h>

#include <charconv>

#include <fmt/format.h>

namespace keelson::api {

namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsAlnum(char c) { return IsAlpha(c) || IsDigit(c); }
bool IsLowerAlnum(char c) { return IsLower(c) || IsDigit(c); }

template <typename Predicate>
bool All(std::string_view text, Predicate predicate) {
  for (char c : text) {
    if (!predicate(c)) return false;
  }
  return true;
}

// Hand-written matchers for the regular expressions that messages quote.
bool IsLabel(std::string_view text) {
  return !text.empty() && IsLowerAlnum(text.front()) && IsLowerAlnum(text.back()) &&
         All(text, [](char c) { return IsLowerAlnum(c) || c == '-'; });
}
bool IsSubdomain(std::string_view text) {
  for (;;) {
    const size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}
// Labels may begin with an underscore and contain more.
bool IsUnderscoredSubdomain(std::string_view text) {
  const auto inner = [](char c) { return IsLowerAlnum(c) || c == '-' || c == '_'; };
  for (;;) {
    const size_t dot = text.find('.');
    std::string_view label = text.substr(0, dot);
    if (label.starts_with('_')) label.remove_prefix(1);
    if (label.empty() || !IsLowerAlnum(label.front()) || !IsLowerAlnum(label.back()) || !All(label, inner)) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}
bool IsNamePart(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) && IsAlnum(text.back()) &&
         All(text, [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

constexpr char kLabelFormat[] = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr char kSubdomainFormat[] = R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)";
constexpr char kNamePartFormat[] = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr char kLabelValueFormat[] = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

std::string RegexProblem(std::string_view message, std::string_view format,
                         std::initializer_list<std::string_view> examples) {
  std::string out(message);
  out += " (";
  const char* separator = "e.g. ";
  for (std::string_view example : examples) {
    out += separator;
    out += fmt::format("'{}', ", example);
    separator = " or ";
  }
  return out + fmt::format("regex used for validation is '{}')", format);
}

std::string TooLongProblem(size_t limit) { return fmt::format("must be no more than {} bytes", limit); }

std::string NamePartProblem() {
  return RegexProblem(
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
      "character",
      kNamePartFormat, {"MyName", "my.name", "123-abc"});
}

constexpr int kOctetOutOfRange = -1;

// An IPv4 octet as Go's net.ParseIP accepted it before 1.17: leading zeros are decimal.
int ParseOctet(std::string_view text) {
  int value = 0;
  if (text.empty() || text.size() > 8 || !All(text, IsDigit)) return kOctetOutOfRange;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 255 ? kOctetOutOfRange : value;
}

}  // namespace

Problems CheckDns1123Label(std::string_view value) {
  Problems out;
  if (value.size() > 63) out.push_back(TooLongProblem(63));
  if (!IsLabel(value)) {
    if (IsSubdomain(value)) {
      out.push_back("must not contain dots");
    } else {
      out.push_back(RegexProblem(
          "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
          "and must start and end with an alphanumeric character",
          kLabelFormat, {"my-name", "123-abc"}));
    }
  }
  return out;
}

Problems CheckDns1123Subdomain(std::string_view value) {
  Problems out;
  if (value.size() > 253) out.push_back(TooLongProblem(253));
  if (!IsSubdomain(value)) {
    out.push_back(RegexProblem(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character",
        kSubdomainFormat, {"example.com"}));
  }
  return out;
}

Problems CheckDns1123SubdomainWithUnderscore(std::string_view value) {
  Problems out;
  if (value.size() > 253) out.push_back(TooLongProblem(253));
  if (!IsUnderscoredSubdomain(value)) {
    out.push_back(RegexProblem(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or "
        "'.', and must start and end with an alphanumeric character",
        R"(_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*)", {"example.com"}));
  }
  return out;
}

Problems CheckDns1035Label(std::string_view value) {
  Problems out;
  if (value.size() > 63) out.push_back(TooLongProblem(63));
  if (!IsLabel(value) || !IsLower(value.front())) {
    out.push_back(RegexProblem(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return out;
}

Problems CheckQualifiedName(std::string_view value) {
  Problems out;
  std::string_view name = value;
  const size_t slash = value.find('/');
  if (slash != std::string_view::npos) {
    if (value.find('/', slash + 1) != std::string_view::npos) {
      out.push_back("a qualified name " + NamePartProblem() +
                    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
      return out;
    }
    const std::string_view prefix = value.substr(0, slash);
    name = value.substr(slash + 1);
    if (prefix.empty()) {
      out.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : CheckDns1123Subdomain(prefix)) {
        out.push_back("prefix part " + problem);
      }
    }
  }
  if (name.empty()) {
    out.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    out.push_back("name part " + TooLongProblem(63));
  }
  if (!IsNamePart(name)) out.push_back("name part " + NamePartProblem());
  return out;
}

Problems CheckLabelValue(std::string_view value) {
  Problems out;
  if (value.size() > 63) out.push_back(TooLongProblem(63));
  if (!value.empty() && !IsNamePart(value)) {
    out.push_back(
        RegexProblem("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
                     "or '.', and must "
                     "start and end with an alphanumeric character",
                     kLabelValueFormat, {"MyValue", "my_value", "12345"}));
  }
  return out;
}

Problems CheckPathSegmentName(std::string_view value) {
  Problems out;
  if (value == "." || value == "..") return {fmt::format("may not be '{}'", value)};
  for (char c : {'/', '%'}) {
    if (value.find(c) != std::string_view::npos) out.push_back(fmt::format("may not contain '{}'", c));
  }
  return out;
}

Problems CheckPortName(std::string_view value) {
  Problems out;
  if (value.size() > 15) out.push_back(TooLongProblem(15));
  const auto allowed = [](char c) { return IsLowerAlnum(c) || c == '-'; };
  if (value.empty() || !All(value, allowed)) {
    out.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (All(value, [](char c) { return !IsLower(c); })) out.push_back("must contain at least one letter (a-z)");
  if (value.find("--") != std::string_view::npos) out.push_back("must not contain consecutive hyphens");
  if (!value.empty() && (value.front() == '-' || value.back() == '-')) {
    out.push_back("must not begin or end with a hyphen");
  }
  return out;
}

Problems CheckPortNumber(int64_t port) {
  if (port >= 1 && port <= 65535) return {};
  return {"must be between 1 and 65535, inclusive"};
}

Problems CheckEnvVarName(std::string_view value) {
  if (value.empty()) return {"environment variable name must be non-empty"};
  if (All(value, [](char c) { return c >= ' ' && c <= '~' && c != '='; })) return {};
  return {"a valid environment variable name must consist only of printable ASCII characters other than '='"};
}

Problems CheckConfigKey(std::string_view value) {
  Problems out;
  if (value.size() > 253) out.push_back(TooLongProblem(253));
  const auto allowed = [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; };
  if (value.empty() || !All(value, allowed)) {
    out.push_back(RegexProblem("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                               "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  if (value == "." || value == "..") {
    out.push_back(fmt::format("must not be '{}'", value));
  } else if (value.starts_with("..")) {
    out.push_back("must not start with '..'");
  }
  return out;
}

Problems CheckHttpHeaderName(std::string_view value) {
  if (!value.empty() && All(value, [](char c) { return IsAlnum(c) || c == '-'; })) return {};
  return {RegexProblem("a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+",
                       {"X-Header-Name"})};
}

Problems CheckCIdentifier(std::string_view value) {
  if (!value.empty() && !IsDigit(value.front()) &&
      All(value, [](char c) { return IsAlnum(c) || c == '_'; })) {
    return {};
  }
  return {RegexProblem(
      "a valid C identifier must start with alphabetic character or '_', followed by a string of "
      "alphanumeric characters or '_'",
      "[A-Za-z_][A-Za-z0-9_]*", {"my_name", "MY_NAME", "MyName"})};
}

bool IsIpv4(std::string_view value) {
  for (int octets = 1;; ++octets) {
    const size_t dot = value.find('.');
    if (ParseOctet(value.substr(0, dot)) == kOctetOutOfRange) return false;
    if (dot == std::string_view::npos) return octets == 4;
    value.remove_prefix(dot + 1);
  }
}

bool IsIpv6(std::string_view value) {
  if (value.size() > 45 || value.find(':') == std::string_view::npos) return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(value).c_str(), &address) == 1;
}

Problems CheckIp(std::string_view value) {
  if (IsIpv4(value) || IsIpv6(value)) return {};
  return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
}

bool IsCidr(std::string_view value) {
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view address = value.substr(0, slash), length = value.substr(slash + 1);
  int bits = 0;
  if (length.empty() || length.size() > 3 || !All(length, IsDigit)) return false;
  std::from_chars(length.data(), length.data() + length.size(), bits);
  return (IsIpv4(address) && bits <= 32) || (IsIpv6(address) && bits <= 128);
}

}  // namespace keelson::api
