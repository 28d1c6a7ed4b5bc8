#include "lib/k8s/schema/addresses.h"

#include <algorithm>
#include <cctype>

#include "lib/base/ip.h"
#include "lib/base/text.h"

namespace keelson::k8s {

namespace {

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// ---- uri ----

bool HasGoodEscapes(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (text.size() - i < 3 || !IsHex(text[i + 1]) || !IsHex(text[i + 2])) return false;
    i += 2;
  }
  return true;
}

bool IsPort(std::string_view text) {
  return text.empty() || (text[0] == ':' && std::all_of(text.begin() + 1, text.end(), IsDigit));
}

bool IsUserInfo(std::string_view text) {
  constexpr std::string_view kMarks = "-._:~!$&'()*+,;=%@";
  return HasGoodEscapes(text) && std::all_of(text.begin(), text.end(), [&](char c) {
           return IsAlpha(c) || IsDigit(c) || kMarks.find(c) != std::string_view::npos;
         });
}

bool IsHost(std::string_view host) {
  constexpr std::string_view kForbidden = " \"<>\\^`{|}";
  if (host.starts_with('[')) {
    const size_t end = host.rfind(']');
    if (end == std::string_view::npos || !IsPort(host.substr(end + 1))) return false;
    std::string_view address = host.substr(1, end - 1);
    address = address.substr(0, address.find("%25"));
    const Result<IpAddress> parsed = IpAddress::Parse(address);
    return parsed && parsed->is_v6();
  }
  const size_t colon = host.find(':');
  if (colon != std::string_view::npos && !IsPort(host.substr(host.rfind(':')))) return false;
  // Only bytes that are not ASCII may be escaped in a host.
  for (size_t at = host.find('%'); at != std::string_view::npos; at = host.find('%', at + 1)) {
    if (host.size() - at < 3 || !IsHex(host[at + 1]) || !IsHex(host[at + 2]) || IsDigit(host[at + 1])) {
      if (host.substr(at, 3) != "%25") return false;
    }
  }
  return host.find_first_of(kForbidden) == std::string_view::npos;
}

// ---- email ----

bool IsAtomCharacter(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-/=?^_`{|}~";
  return IsAlpha(c) || IsDigit(c) || kMarks.find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

class AddressReader {
 public:
  explicit AddressReader(std::string_view text) : rest_(text) {}

  bool IsAddress() {
    SkipSpace();
    if (rest_.empty()) return false;
    const std::string_view start = rest_;
    if (ReadSpec() && AtEnd()) return true;
    rest_ = start;
    // A name, then the address in angle brackets.
    while (!rest_.empty() && rest_[0] != '<') {
      if (!ReadWord(true)) return false;
      SkipSpace();
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    if (!ReadSpec() || rest_.empty() || rest_[0] != '>') return false;
    rest_.remove_prefix(1);
    return AtEnd();
  }

 private:
  bool AtEnd() {
    SkipSpace();
    return SkipComments() && rest_.empty();
  }

  void SkipSpace() { rest_ = TrimLeft(rest_, " \t"); }

  bool SkipComments() {
    while (rest_.starts_with('(')) {
      int depth = 0;
      size_t i = 0;
      do {
        if (i >= rest_.size()) return false;
        if (rest_[i] == '\\') ++i;
        if (i < rest_.size() && rest_[i] == '(') ++depth;
        if (i < rest_.size() && rest_[i] == ')') --depth;
        ++i;
      } while (depth > 0);
      rest_.remove_prefix(std::min(i, rest_.size()));
      SkipSpace();
    }
    return true;
  }

  // local@domain
  bool ReadSpec() {
    const bool quoted = rest_.starts_with('"');
    if (quoted ? !ReadQuoted() : !ReadAtom(true, false)) return false;
    SkipSpace();
    if (!rest_.starts_with('@')) return false;
    rest_.remove_prefix(1);
    SkipSpace();
    return rest_.starts_with('[') ? ReadLiteral() : ReadAtom(true, false);
  }

  bool ReadWord(bool permissive) {
    return rest_.starts_with('"') ? ReadQuoted() : ReadAtom(true, permissive);
  }

  bool ReadAtom(bool dots, bool permissive) {
    size_t size = 0;
    while (size < rest_.size() && (IsAtomCharacter(rest_[size]) || (dots && rest_[size] == '.'))) ++size;
    const std::string_view atom = rest_.substr(0, size);
    if (atom.empty()) return false;
    if (!permissive &&
        (atom.front() == '.' || atom.back() == '.' || atom.find("..") != std::string_view::npos)) {
      return false;
    }
    rest_.remove_prefix(size);
    return true;
  }

  bool ReadQuoted() {
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return i > 1 || !rest_.empty();
      }
      if (rest_[i] == '\\') ++i;
      if (i < rest_.size() && static_cast<unsigned char>(rest_[i]) < 0x20 && rest_[i] != '\t') return false;
    }
    return false;
  }

  // [192.0.2.1], [IPv6:2001:db8::1]
  bool ReadLiteral() {
    const size_t end = rest_.find(']');
    if (end == std::string_view::npos) return false;
    std::string_view inner = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    if (inner.starts_with("IPv6:")) inner.remove_prefix(5);
    return IpAddress::Parse(inner).has_value();
  }

  std::string_view rest_;
};

}  // namespace

bool IsRequestUri(std::string_view text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.empty() || std::any_of(text.begin(), text.end(), control)) return false;
  if (text == "*") return true;
  std::string_view rest = text;
  bool has_scheme = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsAlpha(text[i])) continue;
    if (i > 0 && (IsDigit(text[i]) || text[i] == '+' || text[i] == '-' || text[i] == '.')) continue;
    if (text[i] == ':') {
      if (i == 0) return false;
      has_scheme = true;
      rest.remove_prefix(i + 1);
    }
    break;
  }
  rest = rest.substr(0, rest.find('?'));
  if (!rest.starts_with('/')) return has_scheme;
  // A path of three slashes has no authority.
  if (has_scheme && rest.starts_with("//") && !rest.starts_with("///")) {
    rest.remove_prefix(2);
    const std::string_view authority = rest.substr(0, rest.find('/'));
    rest.remove_prefix(authority.size());
    const size_t at = authority.rfind('@');
    if (at != std::string_view::npos && !IsUserInfo(authority.substr(0, at))) return false;
    if (!IsHost(at == std::string_view::npos ? authority : authority.substr(at + 1))) return false;
  }
  return HasGoodEscapes(rest);
}

bool IsEmailAddress(std::string_view text) { return AddressReader(text).IsAddress(); }

}  // namespace keelson::k8s
