#include "lib/cel/library/go_url.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace keelson::cel {
namespace {

enum class Mode { kPath, kHost, kQuery, kUserinfo };

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
int HexValue(char c) {
  return IsDigit(c)             ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

Error Bad(std::string message) { return Error(Code::kBadRequest, std::move(message)); }

// Whether the path form of the character is %XX.
bool MustEscapeInPath(char c) {
  if (IsAlpha(c) || IsDigit(c)) return false;
  return std::string_view("-_.~$&+,/:;=@").find(c) == std::string_view::npos;
}

bool IsHostCharacter(char c) {
  return IsAlpha(c) || IsDigit(c) || static_cast<uint8_t>(c) >= 0x80 ||
         std::string_view("-_.~!$&'()*+,;=:[]<>\"").find(c) != std::string_view::npos;
}

Result<std::string> Unescape(std::string_view text, Mode mode) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      int high = i + 1 < text.size() ? HexValue(text[i + 1]) : -1,
          low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) return Bad(fmt::format("invalid URL escape \"{}\"", text.substr(i, 3)));
      // Hosts may only spell bytes that are no ASCII.
      if (mode == Mode::kHost && high < 8 && text.substr(i, 3) != "%25") {
        return Bad(fmt::format("invalid URL escape \"{}\"", text.substr(i, 3)));
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && mode == Mode::kQuery) {
      out += ' ';
    } else if (mode == Mode::kHost && !IsHostCharacter(c)) {
      return Bad(fmt::format("invalid character \"{}\" in host name", c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string Escape(std::string_view path) {
  std::string out;
  for (char c : path) {
    out += MustEscapeInPath(c) ? fmt::format("%{:02X}", static_cast<uint8_t>(c)) : std::string(1, c);
  }
  return out;
}

// A path that is already in its escaped form, if perhaps not the shortest.
bool IsEncodedPath(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::string_view("!$&'()*+,;=:@[]%").find(c) != std::string_view::npos || !MustEscapeInPath(c);
  });
}

// The scheme in front of ':', nothing if there is none.
Result<std::string> TakeScheme(std::string_view& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (IsAlpha(c)) continue;
    if (c == ':') {
      if (i == 0) return Bad("missing protocol scheme");
      std::string scheme(text.substr(0, i));
      std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                     [](char s) { return s >= 'A' && s <= 'Z' ? static_cast<char>(s + 32) : s; });
      text.remove_prefix(i + 1);
      return scheme;
    }
    if (i == 0 || (!IsDigit(c) && c != '+' && c != '-' && c != '.')) break;
  }
  return std::string();
}

bool IsPort(std::string_view text) {
  return text.empty() || (text[0] == ':' && std::all_of(text.begin() + 1, text.end(), IsDigit));
}

Result<std::string> ParseHost(std::string_view host) {
  size_t port_at = host.starts_with('[') ? host.rfind(']') + 1 : host.rfind(':');
  if (host.starts_with('[') && port_at == 0) return Bad("missing ']' in host");
  std::string_view port = port_at == std::string_view::npos ? std::string_view() : host.substr(port_at);
  if (!IsPort(port)) return Bad(fmt::format("invalid port \"{}\" after host", port));
  return Unescape(host, Mode::kHost);
}

Result<GoUrl> ParseParts(std::string_view text) {
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; })) {
    return Bad("net/url: invalid control character in URL");
  }
  if (text.empty()) return Bad("empty url");
  GoUrl out;
  if (text == "*") {
    out.path = out.raw_path = "*";
    return out;
  }
  KEELSON_ASSIGN_OR_RETURN(out.scheme, TakeScheme(text));
  if (size_t question = text.find('?'); question != std::string_view::npos) {
    out.raw_query = text.substr(question + 1);
    text = text.substr(0, question);
  }
  if (!text.starts_with('/')) {
    if (out.scheme.empty()) return Bad("invalid URI for request");
    out.opaque = text;
    return out;
  }
  if (!out.scheme.empty() && text.starts_with("//")) {
    std::string_view authority = text.substr(2, text.find('/', 2) - 2);
    text.remove_prefix(2 + authority.size());
    if (size_t at = authority.rfind('@'); at != std::string_view::npos) {
      auto user = Unescape(authority.substr(0, at), Mode::kUserinfo);
      if (!user || authority.substr(0, at).find_first_of(" \"<>[]^`{|}\\/?#") != std::string_view::npos) {
        return Bad("net/url: invalid userinfo");
      }
      authority.remove_prefix(at + 1);
    }
    KEELSON_ASSIGN_OR_RETURN(out.host, ParseHost(authority));
  }
  out.raw_path = text;
  KEELSON_ASSIGN_OR_RETURN(out.path, Unescape(text, Mode::kPath));
  return out;
}

}  // namespace

Result<GoUrl> GoUrl::Parse(std::string_view text) {
  auto url = ParseParts(text);
  if (!url) return Bad(fmt::format("parse \"{}\": {}", text, url.error().message()));
  return url;
}

std::string GoUrl::Hostname() const {
  std::string_view out = host;
  if (size_t colon = out.rfind(':'); colon != std::string_view::npos && IsPort(out.substr(colon)) &&
                                     out.find(']', colon) == std::string_view::npos) {
    out = out.substr(0, colon);
  }
  if (out.starts_with('[') && out.ends_with(']')) out = out.substr(1, out.size() - 2);
  return std::string(out);
}

std::string GoUrl::Port() const {
  size_t colon = host.rfind(':');
  if (colon == std::string::npos || !IsPort(std::string_view(host).substr(colon)) ||
      host.find(']', colon) != std::string::npos) {
    return {};
  }
  return host.substr(colon + 1);
}

std::string GoUrl::EscapedPath() const {
  if (path == "*") return "*";
  return IsEncodedPath(raw_path) ? raw_path : Escape(path);
}

std::map<std::string, std::vector<std::string>> GoUrl::Query() const {
  std::map<std::string, std::vector<std::string>> out;
  for (std::string_view rest = raw_query; !rest.empty();) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    size_t equals = pair.find('=');
    auto key = Unescape(pair.substr(0, equals), Mode::kQuery);
    auto value = Unescape(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1),
                          Mode::kQuery);
    if (key && value) out[*key].push_back(*value);
  }
  return out;
}

std::string GoUrl::ToString() const {
  std::string out = scheme.empty() ? "" : scheme + ":";
  if (!opaque.empty()) {
    out += opaque;
  } else {
    if (!scheme.empty() || !host.empty()) out += "//" + host;
    out += EscapedPath();
  }
  return raw_query.empty() ? out : out + "?" + raw_query;
}

}  // namespace keelson::cel
