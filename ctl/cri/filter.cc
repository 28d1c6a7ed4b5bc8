#include "ctl/cri/filter.h"

#include <re2/re2.h>

#include <algorithm>

namespace keelson::ctl {

Result<std::map<std::string, std::string>> ParseLabels(const std::vector<std::string>& labels) {
  std::map<std::string, std::string> out;
  for (const std::string& label : labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || label.find('=', equals + 1) != std::string::npos) {
      return Error(Code::kInvalid, "incorrectly specified label: " + label);
    }
    out[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return out;
}

Result<NamePattern> NamePattern::Parse(const std::string& pattern) {
  NamePattern out;
  if (pattern.empty()) return out;
  auto compiled = std::make_shared<const re2::RE2>(pattern, re2::RE2::Quiet);
  if (!compiled->ok()) {
    return Error(Code::kInvalid, "invalid regular expression \"" + pattern + "\": " + compiled->error());
  }
  out.pattern_ = std::move(compiled);
  return out;
}

bool NamePattern::Matches(std::string_view text) const {
  return !pattern_ || re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern_);
}

size_t ShownCount(size_t total, const CriFilter& filter) {
  size_t shown = filter.latest ? 1 : total;
  if (filter.last > 0) shown = static_cast<size_t>(filter.last);
  return std::min(shown, total);
}

}  // namespace keelson::ctl
