#include "ctl/phases/phase.h"

#include <algorithm>

namespace keelson::ctl {
namespace {

bool Covers(std::string_view wish, std::string_view name) {
  return name == wish || (name.size() > wish.size() && name.starts_with(wish) && name[wish.size()] == '/');
}

}  // namespace

Result<std::vector<size_t>> SelectPhases(const std::vector<std::string_view>& names, const std::string& only,
                                         const std::vector<std::string>& skipped) {
  const auto check = [&](const std::string& wish) -> Result<> {
    if (std::any_of(names.begin(), names.end(), [&](std::string_view name) { return Covers(wish, name); })) {
      return {};
    }
    return Error(Code::kInvalid, "invalid phase name: " + wish);
  };
  if (!only.empty()) KEELSON_RETURN_IF_ERROR(check(only));
  for (const std::string& wish : skipped) KEELSON_RETURN_IF_ERROR(check(wish));
  std::vector<size_t> out;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool left_out = std::any_of(skipped.begin(), skipped.end(),
                                      [&](const std::string& wish) { return Covers(wish, names[i]); });
    if (!left_out && (only.empty() || Covers(only, names[i]))) out.push_back(i);
  }
  return out;
}

}  // namespace keelson::ctl
