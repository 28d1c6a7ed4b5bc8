#include "cni/policy/objects.h"

#include <algorithm>

namespace keelson::cni::policy {
namespace {

bool Holds(const Selector::Requirement& wanted, const Labels& labels) {
  auto found = labels.find(wanted.key);
  bool there = found != labels.end();
  auto listed = [&] {
    return std::find(wanted.values.begin(), wanted.values.end(), found->second) != wanted.values.end();
  };
  switch (wanted.op) {
    case Selector::Op::kIn:
      return there && listed();
    case Selector::Op::kNotIn:
      return !there || !listed();
    case Selector::Op::kExists:
      return there;
    case Selector::Op::kDoesNotExist:
      return !there;
    case Selector::Op::kNothing:
      break;
  }
  return false;
}

}  // namespace

bool Selector::Matches(const Labels& labels) const {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Requirement& wanted) { return Holds(wanted, labels); });
}

std::string Selector::Text() const {
  // Keys and values contain none of these separators.
  std::string out;
  for (const Requirement& wanted : requirements) {
    out += wanted.key + "?" + std::to_string(static_cast<int>(wanted.op));
    for (const std::string& value : wanted.values) out += "," + value;
    out += ";";
  }
  return out;
}

}  // namespace keelson::cni::policy
