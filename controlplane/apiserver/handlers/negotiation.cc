#include "controlplane/apiserver/handlers/negotiation.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace keelson::apiserver {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kYamlType = "application/yaml";
constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";
constexpr const char* kAccepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
constexpr const char* kAcceptedStreams =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

constexpr size_t kAllWarnings = 4096, kOneWarning = 256;  // characters

std::string_view Trim(std::string_view text) {
  auto space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    auto end = text.find(separator);
    out.push_back(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// The clause's transformation; false when there is no such one here.
bool SetTransform(const MediaType& clause, Forms forms, Output& out) {
  std::string_view as = clause.Parameter("as");
  if (as.empty()) return true;
  std::string_view version = clause.Parameter("v");
  if (forms == Forms::kPlain || clause.Parameter("g") != "meta.k8s.io" ||
      (version != "v1" && version != "v1beta1"))
    return false;
  out.version = version;
  if (as == "Table") {
    out.as = As::kTable;
    return forms != Forms::kNoTable && out.encoding != Encoding::kProtobuf;
  }
  out.as = as == "PartialObjectMetadata" ? As::kPartialMetadata : As::kPartialMetadataList;
  return as == "PartialObjectMetadata" || as == "PartialObjectMetadataList";
}

bool SetEncoding(const MediaType& clause, Output& out) {
  if (Covers(clause, kJsonType))
    out.encoding = Encoding::kJson;
  else if (Covers(clause, kYamlType))
    out.encoding = Encoding::kYaml;
  else if (Covers(clause, kProtobufType))
    out.encoding = Encoding::kProtobuf;
  else
    return false;
  return true;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool IsTrue(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" || text == "True";
}

// Browsers and the simplest of clients show people what they get.
bool WantsPretty(const http::ServerRequest& request) {
  if (std::string_view pretty = request.query.Get("pretty"); !pretty.empty()) return IsTrue(pretty);
  std::string_view agent = request.headers.Get("User-Agent");
  return StartsWith(agent, "curl") || StartsWith(agent, "Wget") || StartsWith(agent, "Mozilla/5.0");
}

bool AcceptsGzip(const http::ServerRequest& request) {
  for (std::string_view coding : Split(request.headers.Get("Accept-Encoding"), ',')) {
    MediaType parsed = ParseMediaType(coding);
    if (parsed.type == "gzip" && parsed.quality > 0) return true;
  }
  return false;
}

int Wildcards(const MediaType& clause) {
  if (clause.type == "*/*") return 2;
  return clause.type.size() > 2 && clause.type.compare(clause.type.size() - 2, 2, "/*") == 0 ? 1 : 0;
}

// Characters of UTF-8 text; nullopt when it is none, or has control characters.
std::optional<size_t> HeaderCharacters(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0 || i + size > text.size() || lead < 0x20 || lead == 0x7f) return std::nullopt;
    uint32_t rune = size == 1 ? lead : lead & (0x7fu >> size);
    for (size_t k = 1; k < size; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return std::nullopt;
      rune = rune << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (rune < kLeast[size] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) return std::nullopt;
    if (rune >= 0x80 && rune < 0xa0) return std::nullopt;
    i += size;
  }
  return count;
}

std::string_view FirstCharacters(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size() && count > 0; --count) {
    ++at;
    while (at < text.size() && static_cast<unsigned char>(text[at]) >> 6 == 2) ++at;
  }
  return text.substr(0, at);
}

std::string WarningHeader(std::string_view text) {
  std::string out = "299 - \"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string Output::ContentType() const {
  switch (encoding) {
    case Encoding::kYaml:
      return std::string(kYamlType);
    case Encoding::kProtobuf:
      return std::string(kProtobufType);
    case Encoding::kJson:
      break;
  }
  return std::string(kJsonType);
}

std::string_view MediaType::Parameter(std::string_view name) const {
  for (const auto& parameter : parameters) {
    if (parameter.first == name) return parameter.second;
  }
  return "";
}

MediaType ParseMediaType(std::string_view text) {
  std::vector<std::string_view> parts = Split(text, ';');
  MediaType out;
  out.type = parts[0];
  std::transform(out.type.begin(), out.type.end(), out.type.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (size_t i = 1; i < parts.size(); ++i) {
    auto equals = parts[i].find('=');
    if (equals == std::string_view::npos) continue;
    std::string name(Trim(parts[i].substr(0, equals)));
    std::string_view value = Trim(parts[i].substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    if (name == "q") {
      std::string number(value);
      char* end = nullptr;
      double quality = std::strtod(number.c_str(), &end);
      out.quality = end != number.c_str() && *end == '\0' && quality >= 0 && quality <= 1 ? quality : 1;
    } else {
      out.parameters.emplace_back(std::move(name), value);
    }
  }
  return out;
}

std::vector<MediaType> ParseAccept(std::string_view header) {
  std::vector<MediaType> out;
  for (std::string_view clause : Split(header, ',')) {
    MediaType parsed = ParseMediaType(clause);
    if (parsed.type == "*") parsed.type = "*/*";
    if (parsed.type.find('/') != std::string::npos) out.push_back(std::move(parsed));
  }
  std::stable_sort(out.begin(), out.end(), [](const MediaType& a, const MediaType& b) {
    if (a.quality != b.quality) return a.quality > b.quality;
    return Wildcards(a) < Wildcards(b);
  });
  return out;
}

bool Covers(const MediaType& clause, std::string_view type) {
  if (clause.type == type || clause.type == "*/*") return true;
  size_t slash = type.find('/');
  return Wildcards(clause) == 1 && clause.type.compare(0, slash + 1, type.substr(0, slash + 1)) == 0;
}

Output PlainOutput(const http::ServerRequest& request) {
  Output out;
  out.pretty = WantsPretty(request);
  out.gzip = AcceptsGzip(request);
  return out;
}

Result<Output> NegotiateOutput(const http::ServerRequest& request, Forms forms) {
  Output base = PlainOutput(request);
  const char* accepted = forms == Forms::kWatch ? kAcceptedStreams : kAccepted;
  const Error refused(Code::kNotAcceptable,
                      fmt::format("only the following media types are accepted: {}", accepted));
  std::string_view header = request.headers.Get("Accept");
  if (header.empty()) return base;
  for (const MediaType& clause : ParseAccept(header)) {
    Output out = base;
    if (clause.quality <= 0 || !SetEncoding(clause, out) || !SetTransform(clause, forms, out)) continue;
    if (std::string_view stream = clause.Parameter("stream"); !stream.empty()) {
      if (forms == Forms::kPlain || stream != "watch") continue;
    }
    if (forms == Forms::kWatch && out.encoding == Encoding::kYaml) return refused;
    out.pretty |= clause.Parameter("pretty") == "1";
    return out;
  }
  return refused;
}

Result<Encoding> BodyEncoding(const http::ServerRequest& request) {
  std::string_view header = request.headers.Get("Content-Type");
  if (header.empty()) return Encoding::kJson;
  std::string type = ParseMediaType(header).type;
  if (type == kJsonType) return Encoding::kJson;
  if (type == kYamlType) return Encoding::kYaml;
  if (type == kProtobufType) return Encoding::kProtobuf;
  return Error(
      Code::kUnsupportedMediaType,
      std::string("the body of the request was in an unknown format - accepted media types include: ") +
          kAccepted);
}

std::vector<std::string> WarningHeaders(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string_view, size_t>> kept;
  std::set<std::string_view> seen;
  size_t all = 0;
  for (const std::string& text : texts) {
    if (text.empty() || !seen.insert(text).second) continue;
    std::optional<size_t> characters = HeaderCharacters(text);
    if (!characters) continue;
    kept.emplace_back(text, *characters);
    all += *characters;
  }
  std::vector<std::string> out;
  size_t written = 0;
  for (const auto& [text, characters] : kept) {
    std::string_view shown = all > kAllWarnings ? FirstCharacters(text, kOneWarning) : text;
    written += std::min(characters, all > kAllWarnings ? kOneWarning : characters);
    if (written > kAllWarnings) break;
    out.push_back(WarningHeader(shown));
  }
  return out;
}

}  // namespace keelson::apiserver
