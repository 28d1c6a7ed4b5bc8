#include "lib/base/media_type.h"

#include <algorithm>
#include <cstdlib>

#include "lib/base/text.h"

namespace keelson {
namespace {

constexpr std::string_view kBlank = " \t";

std::vector<std::string_view> TrimmedParts(std::string_view text, char separator) {
  std::vector<std::string_view> out = Split(text, separator);
  for (std::string_view& part : out) part = Trim(part, kBlank);
  return out;
}

int Wildcards(const MediaType& clause) {
  if (clause.type == "*/*") return 2;
  return clause.type.size() > 2 && clause.type.compare(clause.type.size() - 2, 2, "/*") == 0 ? 1 : 0;
}

}  // namespace

std::string_view MediaType::Parameter(std::string_view name) const {
  for (const auto& parameter : parameters) {
    if (parameter.first == name) return parameter.second;
  }
  return "";
}

MediaType ParseMediaType(std::string_view text) {
  std::vector<std::string_view> parts = TrimmedParts(text, ';');
  MediaType out;
  out.type = Lower(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    auto equals = parts[i].find('=');
    if (equals == std::string_view::npos) continue;
    std::string name(Trim(parts[i].substr(0, equals), kBlank));
    std::string_view value = Trim(parts[i].substr(equals + 1), kBlank);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
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
  for (std::string_view clause : TrimmedParts(header, ',')) {
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

bool AcceptsGzip(std::string_view accept_encoding) {
  for (std::string_view text : TrimmedParts(accept_encoding, ',')) {
    const MediaType coding = ParseMediaType(text);
    if (coding.type == "gzip" && coding.quality > 0) return true;
  }
  return false;
}

}  // namespace keelson
