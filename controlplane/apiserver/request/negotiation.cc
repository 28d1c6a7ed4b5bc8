#include "controlplane/apiserver/request/negotiation.h"

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

// The error of upstream's router, which compares types only and runs first.
constexpr std::string_view kNoRoute = "406: Not Acceptable\n\nAvailable representations: ";

constexpr size_t kAllWarnings = 4096, kOneWarning = 256;  // characters

// Reads the clause's transformation; false when it is not supported.
bool SetTransform(const MediaType& clause, Forms forms, Output& out) {
  std::string_view as = clause.Parameter("as");
  if (as.empty()) return true;
  std::string_view version = clause.Parameter("v");
  if (forms == Forms::kPlain || clause.Parameter("g") != "meta.k8s.io" ||
      (version != "v1" && version != "v1beta1")) {
    return false;
  }
  out.version = version;
  if (as == "Table") {
    out.as = As::kTable;
    return forms != Forms::kNoTable && out.encoding != Encoding::kProtobuf;
  }
  out.as = as == "PartialObjectMetadata" ? As::kPartialMetadata : As::kPartialMetadataList;
  return as == "PartialObjectMetadata" || as == "PartialObjectMetadataList";
}

bool SetEncoding(const MediaType& clause, Output& out) {
  if (Covers(clause, kJsonType)) {
    out.encoding = Encoding::kJson;
  } else if (Covers(clause, kYamlType)) {
    out.encoding = Encoding::kYaml;
  } else if (Covers(clause, kProtobufType)) {
    out.encoding = Encoding::kProtobuf;
  } else {
    return false;
  }
  return true;
}

bool IsTrue(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" || text == "True";
}

// Browsers and simple clients get pretty output.
bool WantsPretty(const http::ServerRequest& request) {
  if (std::string_view pretty = request.query.Get("pretty"); !pretty.empty()) return IsTrue(pretty);
  std::string_view agent = request.headers.Get("User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

// The number of UTF-8 characters; nullopt for invalid UTF-8 and control characters.
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

Output PlainOutput(const http::ServerRequest& request) {
  Output out;
  out.pretty = WantsPretty(request);
  out.gzip = AcceptsGzip(request.headers.Get("Accept-Encoding"));
  return out;
}

Result<Output> NegotiateOutput(const http::ServerRequest& request, Forms forms, bool text_only) {
  Output base = PlainOutput(request);
  const char* accepted = forms == Forms::kWatch ? kAcceptedStreams : kAccepted;
  const Error refused(Code::kNotAcceptable,
                      fmt::format("only the following media types are accepted: {}", accepted));
  std::string_view header = request.headers.Get("Accept");
  if (header.empty()) return base;
  bool known = false;
  for (const MediaType& clause : ParseAccept(header)) {
    Output out = base;
    known |= SetEncoding(clause, out);
    if (clause.quality <= 0 || !SetEncoding(clause, out) || !SetTransform(clause, forms, out)) continue;
    if (std::string_view stream = clause.Parameter("stream"); !stream.empty()) {
      if (forms == Forms::kPlain || stream != "watch") continue;
    }
    if (forms == Forms::kWatch && out.encoding == Encoding::kYaml) return refused;
    if (text_only && out.encoding == Encoding::kProtobuf && out.as == As::kObject) continue;
    out.pretty |= clause.Parameter("pretty") == "1";
    return out;
  }
  if (known || text_only) return refused;  // no router looks at requests for custom resources
  const bool streams = forms == Forms::kWatch || forms == Forms::kList;
  return Error(Code::kNotAcceptable,
               std::string(kNoRoute) + kAccepted + (streams ? std::string(", ") + kAcceptedStreams : ""))
      .WithDetails({});
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
