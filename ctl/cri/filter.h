// What the listing verbs choose by.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace re2 {
class RE2;
}

namespace keelson::ctl {

// The flags of `pods` and `ps`, and of verbs that work on what these find. Empty: everything.
struct CriFilter {
  std::string id, pod, name, name_space, state, image;  // name, name_space: regular expressions (RE2)
  std::vector<std::string> labels;                      // key=value
  bool all = false, latest = false;
  int last = 0;

  bool given() const {
    return !id.empty() || !pod.empty() || !name.empty() || !name_space.empty() || !state.empty() ||
           !image.empty() || !labels.empty() || latest || last > 0;
  }
};

// kInvalid: "incorrectly specified label: ...".
Result<std::map<std::string, std::string>> ParseLabels(const std::vector<std::string>& labels);

// A regular expression that matches anywhere; an empty one always does.
class NamePattern {
 public:
  static Result<NamePattern> Parse(const std::string& pattern);  // kInvalid
  bool Matches(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> pattern_;
};

// How many of `total`, newest first, are shown.
size_t ShownCount(size_t total, const CriFilter& filter);

}  // namespace keelson::ctl
