#include "controlplane/apiserver/connect/link_rewriter.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kMaxHeld = 256 << 10;  // an unterminated tag or comment; longer is text

struct Link {
  std::string_view tag, attribute;
};
// Attributes that are URLs.
constexpr Link kLinks[] = {
    {"a", "href"},          {"applet", "codebase"}, {"area", "href"},        {"audio", "src"},
    {"base", "href"},       {"blockquote", "cite"}, {"body", "background"},  {"button", "formaction"},
    {"command", "icon"},    {"del", "cite"},        {"embed", "src"},        {"form", "action"},
    {"frame", "longdesc"},  {"frame", "src"},       {"head", "profile"},     {"html", "manifest"},
    {"iframe", "longdesc"}, {"iframe", "src"},      {"img", "longdesc"},     {"img", "src"},
    {"img", "usemap"},      {"input", "src"},       {"input", "formaction"}, {"input", "usemap"},
    {"ins", "cite"},        {"link", "href"},       {"object", "classid"},   {"object", "codebase"},
    {"object", "data"},     {"object", "usemap"},   {"q", "cite"},           {"script", "src"},
    {"source", "src"},      {"video", "poster"},    {"video", "src"}};
// Elements with raw text content.
constexpr std::string_view kRaw[] = {"script", "style",  "textarea", "title",
                                     "xmp",    "iframe", "noembed",  "noframes"};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool IsLink(std::string_view tag, std::string_view attribute) {
  return std::any_of(std::begin(kLinks), std::end(kLinks),
                     [&](const Link& link) { return link.tag == tag && link.attribute == attribute; });
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

}  // namespace

std::string RewriteLink(const ProxyPlace& place, std::string_view url) {
  std::string_view rest = url;
  if (size_t scheme = rest.find("://");
      scheme != std::string_view::npos && rest.find_first_of("/?#") > scheme) {
    rest.remove_prefix(scheme + 1);
  }
  if (rest.substr(0, 2) == "//") {
    size_t end = std::min(rest.find_first_of("/?#", 2), rest.size());
    std::string_view host = rest.substr(2, end - 2);
    if (host != place.backend_host && host != place.request_host) return std::string(url);
    rest.remove_prefix(end);
  }
  if (rest.empty() || rest[0] != '/') return std::string(url);
  size_t end = std::min(rest.find_first_of("?#"), rest.size());
  std::string path(rest.substr(0, end));
  if (path.compare(0, place.prefix.size(), place.prefix) != 0) {
    path = std::filesystem::path(place.prefix + path).lexically_normal().string();
  }
  return path + std::string(rest.substr(end));
}

std::string HtmlRewriter::Feed(std::string_view html) {
  buffer_ += html;
  std::string out;
  size_t at = 0;
  while (at < buffer_.size()) {
    if (!raw_until_.empty()) {
      // Case-insensitive; the last bytes may be the start of the end tag.
      std::string lower = Lower(std::string_view(buffer_).substr(at));
      size_t end = lower.find(raw_until_);
      size_t sure = end != std::string::npos ? end : lower.size() - std::min(lower.size(), raw_until_.size());
      out.append(buffer_, at, sure);
      at += sure;
      if (end == std::string::npos) break;
      raw_until_.clear();
    }
    size_t open = std::min(buffer_.find('<', at), buffer_.size());
    out.append(buffer_, at, open - at);
    at = open;
    if (at == buffer_.size()) break;
    size_t next = Tag(at, out);
    if (next == std::string::npos) {
      if (buffer_.size() - at <= kMaxHeld) break;
      next = at + 1;
      out += '<';
    }
    at = next;
  }
  buffer_.erase(0, at);
  return out;
}

std::string HtmlRewriter::Finish() { return std::exchange(buffer_, {}); }

size_t HtmlRewriter::Tag(size_t begin, std::string& out) {
  constexpr std::string_view kComment = "<!--", kCommentEnd = "-->";
  std::string_view text = std::string_view(buffer_).substr(begin);
  if (text.size() < 2 || (text[1] == '!' && text.size() < kComment.size())) return std::string::npos;
  size_t size = 0;
  if (text.substr(0, kComment.size()) == kComment) {
    size_t end = text.find(kCommentEnd, kComment.size());
    if (end == std::string_view::npos) return end;
    size = end + kCommentEnd.size();
  } else if (IsLetter(text[1])) {
    char quote = 0;
    for (size_t i = 1; i < text.size() && size == 0; ++i) {
      if (quote != 0) {
        if (text[i] == quote) quote = 0;
      } else if ((text[i] == '"' || text[i] == '\'') &&
                 text[text.find_last_not_of(" \t\r\n\f", i - 1)] == '=') {
        quote = text[i];
      } else if (text[i] == '>') {
        size = i + 1;
      }
    }
    if (size == 0) return std::string::npos;
    size_t name_end = std::min(text.find_first_of(" \t\r\n\f/>"), size - 1);
    std::string name = Lower(text.substr(1, name_end - 1));
    Attributes(text.substr(0, size), name_end, out);
    if (std::find(std::begin(kRaw), std::end(kRaw), name) != std::end(kRaw)) raw_until_ = "</" + name;
    return begin + size;
  } else {
    size = 1;  // an end tag, a doctype, a lone "<"
  }
  out += text.substr(0, size);
  return begin + size;
}

// Returns `tag` with rewritten links.
void HtmlRewriter::Attributes(std::string_view tag, size_t name_end, std::string& out) const {
  const std::string name = Lower(tag.substr(1, name_end - 1));
  size_t copied = 0, at = name_end;
  while (at < tag.size()) {
    while (at < tag.size() && (IsSpace(tag[at]) || tag[at] == '/' || tag[at] == '>')) ++at;
    size_t key_end = std::min(tag.find_first_of(" \t\r\n\f=/>", at), tag.size());
    if (key_end == at) ++key_end;  // a stray "="
    std::string key = Lower(tag.substr(at, key_end - at));
    at = SkipSpace(tag, key_end);
    if (at >= tag.size() || tag[at] != '=') continue;
    size_t value = SkipSpace(tag, at + 1), end = 0;
    if (value < tag.size() && (tag[value] == '"' || tag[value] == '\'')) {
      end = std::min(tag.find(tag[value], value + 1), tag.size());
      ++value;
    } else {
      end = std::min(tag.find_first_of(" \t\r\n\f>", value), tag.size());
    }
    if (IsLink(name, key)) {
      out += tag.substr(copied, value - copied);
      out += RewriteLink(place_, tag.substr(value, end - value));
      copied = end;
    }
    at = end + (end < tag.size() && (tag[end] == '"' || tag[end] == '\'') ? 1 : 0);
  }
  out += tag.substr(copied);
}

}  // namespace keelson::apiserver
