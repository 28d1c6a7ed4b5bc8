#include "controlplane/apiserver/handlers/negotiation.h"

#include <algorithm>
#include <cstdlib>

namespace keelson::apiserver {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kYamlType = "application/yaml";
constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";
constexpr const char* kAccepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
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
bool SetTransform(const MediaType& clause, bool transform, Output& out) {
  std::string_view as = clause.Parameter("as");
  if (as.empty()) return true;
  std::string_view version = clause.Parameter("v");
  if (!transform || clause.Parameter("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1"))
    return false;
  out.version = version;
  if (as == "Table") {
    out.as = As::kTable;
    return out.encoding != Encoding::kProtobuf;
  }
  out.as = As::kPartialMetadata;
  return as == "PartialObjectMetadata" || as == "PartialObjectMetadataList";
}

bool SetEncoding(std::string_view type, Output& out) {
  if (type == kJsonType || type == "*/*" || type == "application/*")
    out.encoding = Encoding::kJson;
  else if (type == kYamlType)
    out.encoding = Encoding::kYaml;
  else if (type == kProtobufType)
    out.encoding = Encoding::kProtobuf;
  else
    return false;
  return true;
}

bool WantsPretty(const http::ServerRequest& request) {
  if (request.query.Has("pretty")) return request.query.GetBool("pretty");
  std::string_view agent = request.headers.Get("User-Agent");
  return agent.substr(0, 4) == "curl" || agent.substr(0, 4) == "Wget";
}

bool AcceptsGzip(const http::ServerRequest& request) {
  for (const MediaType& coding : ParseAccept(request.headers.Get("Accept-Encoding"))) {
    if (coding.type == "gzip" && coding.quality > 0) return true;
  }
  return false;
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
    if (name == "q")
      out.quality = std::strtod(std::string(value).c_str(), nullptr);
    else
      out.parameters.emplace_back(std::move(name), value);
  }
  return out;
}

std::vector<MediaType> ParseAccept(std::string_view header) {
  std::vector<MediaType> out;
  for (std::string_view clause : Split(header, ',')) {
    if (!clause.empty()) out.push_back(ParseMediaType(clause));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.quality > b.quality; });
  return out;
}

Result<Output> NegotiateOutput(const http::ServerRequest& request, bool transform) {
  Output base;
  base.pretty = WantsPretty(request);
  base.gzip = AcceptsGzip(request);
  std::vector<MediaType> clauses = ParseAccept(request.headers.Get("Accept"));
  if (clauses.empty()) return base;
  for (const MediaType& clause : clauses) {
    Output out = base;
    if (clause.quality > 0 && SetEncoding(clause.type, out) && SetTransform(clause, transform, out))
      return out;
  }
  return Error(Code::kNotAcceptable,
               std::string("only the following media types are accepted: ") + kAccepted);
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

std::string WarningHeader(std::string_view text) {
  std::string out = "299 - \"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out + '"';
}

}  // namespace keelson::apiserver
