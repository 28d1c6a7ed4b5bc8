#include "lib/metrics/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "lib/base/media_type.h"
#include "lib/base/text.h"

namespace keelson::metrics {
namespace {

constexpr std::string_view kTotal = "_total";

// "# TYPE name rest" or "# HELP name rest".
struct Comment {
  std::string_view keyword, name, rest;
};
bool ReadComment(std::string_view line, Comment& out) {
  if (!line.starts_with("# ")) return false;
  line.remove_prefix(2);
  const size_t keyword = std::min(line.find(' '), line.size());
  out.keyword = line.substr(0, keyword);
  line.remove_prefix(std::min(keyword + 1, line.size()));
  const size_t name = std::min(line.find(' '), line.size());
  out.name = line.substr(0, name);
  out.rest = line.substr(std::min(name + 1, line.size()));
  return out.keyword == "TYPE" || out.keyword == "HELP";
}

// name{labels} value
struct Sample {
  std::string_view name, labels, value;  // labels without braces
};
bool ReadSample(std::string_view line, Sample& out) {
  const size_t name = line.find_first_of("{ ");
  if (line.starts_with('#') || name == std::string_view::npos) return false;
  out = {line.substr(0, name), {}, {}};
  size_t end = name;
  if (line[name] == '{') {
    bool quoted = false;
    for (end = name + 1; end < line.size() && (quoted || line[end] != '}'); ++end) {
      if (line[end] == '"') quoted = !quoted;
      if (line[end] == '\\') ++end;
    }
    if (end >= line.size()) return false;
    out.labels = line.substr(name + 1, end - name - 1);
    ++end;
  }
  out.value = line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
  return !out.value.empty();
}

// Calls `each` with the name and the (still escaped) value of every label.
template <typename Each>
void EachLabel(std::string_view labels, Each each) {
  for (size_t at = 0; at < labels.size();) {
    const size_t equals = labels.find("=\"", at);
    if (equals == std::string_view::npos) return;
    size_t end = equals + 2;
    while (end < labels.size() && labels[end] != '"') end += labels[end] == '\\' ? 2 : 1;
    if (end >= labels.size()) return;
    each(labels.substr(at, equals - at), labels.substr(equals + 2, end - equals - 2));
    at = end + 1;
    if (at < labels.size() && labels[at] == ',') ++at;
  }
}

// OpenMetrics requires that a float looks like one: adds ".0" to an integer.
std::string Floating(std::string_view number) {
  const bool plain = number.find_first_not_of("-0123456789") == std::string_view::npos;
  return std::string(number) + (plain ? ".0" : "");
}

std::string_view FamilyOf(std::string_view sample, std::string_view type) {
  if (type != "histogram" && type != "summary") return sample;
  for (std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (sample.ends_with(suffix)) return sample.substr(0, sample.size() - suffix.size());
  }
  return sample;
}

// The name that HELP and TYPE lines use.
std::string_view OpenName(std::string_view name, std::string_view type) {
  if (type == "counter" && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  return name;
}

std::string_view OpenType(std::string_view name, std::string_view type) {
  if (type == "untyped" || (type == "counter" && !name.ends_with(kTotal))) return "unknown";
  return type;
}

std::string QuotesEscaped(std::string_view help) {
  std::string out;
  for (char c : help) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string OpenSample(std::string_view line, const Sample& sample, std::string_view type) {
  const bool counted = (type == "histogram" || type == "summary") &&
                       (sample.name.ends_with("_bucket") || sample.name.ends_with("_count"));
  std::string head(line.substr(0, line.size() - sample.value.size()));
  if (type == "histogram" && sample.name.ends_with("_bucket")) {
    if (const size_t le = head.rfind("le=\""); le != std::string::npos) {
      const size_t end = head.find('"', le + 4);
      head.replace(le + 4, end - le - 4, Floating(head.substr(le + 4, end - le - 4)));
    }
  }
  // Prometheus' form has times in milliseconds, OpenMetrics in seconds.
  const size_t space = std::min(sample.value.find(' '), sample.value.size());
  const std::string_view value = sample.value.substr(0, space);
  std::string out = head + (counted ? std::string(value) : Floating(value));
  if (space < sample.value.size()) {
    out += fmt::format(" {}", std::strtod(std::string(sample.value.substr(space)).c_str(), nullptr) / 1000);
  }
  return out;
}

std::string Escaping(const MediaType& clause) {
  const std::string_view asked = clause.Parameter("escaping");
  for (std::string_view known : {"allow-utf-8", "dots", "values"}) {
    if (asked == known) return fmt::format("; escaping={}", known);
  }
  return "; escaping=underscores";
}

}  // namespace

std::string FormatBound(double bound) {
  const double size = std::abs(bound);
  if (bound == 0 || (size >= 1e-4 && size < 1e21 && size < 1e6)) return fmt::format("{}", bound);
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, bound, std::chars_format::scientific).ptr;
  return std::string(text, end);
}

std::vector<Description> Describe(std::string_view text) {
  std::map<std::string, Description, std::less<>> families;
  std::string_view type, family;
  for (std::string_view line : SplitWords(text, "\n")) {
    Comment comment;
    Sample sample;
    if (ReadComment(line, comment)) {
      Description& one = families[std::string(comment.name)];
      one.name = comment.name;
      (comment.keyword == "TYPE" ? one.type : one.help) = comment.rest;
      family = comment.name;
      type = one.type;
    } else if (ReadSample(line, sample)) {
      Description& one = families[std::string(FamilyOf(sample.name, type))];
      if (one.name.empty()) one.name = FamilyOf(sample.name, type);
      EachLabel(sample.labels, [&](std::string_view name, std::string_view value) {
        if (name != "le") {
          if (std::find(one.labels.begin(), one.labels.end(), name) == one.labels.end()) {
            one.labels.emplace_back(name);
          }
          return;
        }
        const double bound = std::strtod(std::string(value).c_str(), nullptr);
        if (std::isfinite(bound) && (one.bounds.empty() || one.bounds.back() < bound)) {
          one.bounds.push_back(bound);
        }
      });
    }
  }
  std::vector<Description> out;
  for (auto& [name, description] : families) out.push_back(std::move(description));
  return out;
}

std::string ToOpenMetrics(std::string_view text) {
  std::map<std::string, std::string, std::less<>> types;
  for (std::string_view line : SplitWords(text, "\n")) {
    if (Comment comment; ReadComment(line, comment) && comment.keyword == "TYPE") {
      types[std::string(comment.name)] = comment.rest;
    }
  }
  std::string out, type;
  for (std::string_view line : SplitWords(text, "\n")) {
    Comment comment;
    Sample sample;
    if (ReadComment(line, comment)) {
      const auto it = types.find(comment.name);
      type = it == types.end() ? "unknown" : it->second;
      out += fmt::format("# {} {} {}\n", comment.keyword, OpenName(comment.name, type),
                         comment.keyword == "TYPE" ? std::string(OpenType(comment.name, type))
                                                   : QuotesEscaped(comment.rest));
    } else if (ReadSample(line, sample)) {
      out += OpenSample(line, sample, type) + "\n";
    }
  }
  return out + "# EOF\n";
}

TextForm NegotiateText(std::string_view accept) {
  constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";
  for (const MediaType& clause : ParseAccept(accept)) {
    if (clause.quality <= 0) continue;
    const std::string_view version = clause.Parameter("version");
    if (clause.type == "application/openmetrics-text" &&
        (version.empty() || version == "0.0.1" || version == "1.0.0")) {
      return {true, fmt::format("application/openmetrics-text; version={}; charset=utf-8{}",
                                version == "1.0.0" ? "1.0.0" : "0.0.1", Escaping(clause))};
    }
    if (clause.type == "text/plain" && (version.empty() || version == "0.0.4")) {
      return {false, std::string(kText) + Escaping(clause)};
    }
  }
  return {false, std::string(kText) + Escaping({})};
}

}  // namespace keelson::metrics
