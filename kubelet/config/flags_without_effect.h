// Flags of upstream's kubelet that this one takes and that change nothing here. They are checked like others,
// and named once, with the reason, in a warning at the start (docs/kubelet.md has the table). Internal to
// this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keelson::kubelet {

struct FlagWithoutEffect {
  enum class Form { kText, kSwitch, kNumber, kDuration };
  std::string_view name;  // without dashes
  Form form;              // of its value; not looked at where it sets a field of the configuration (fields.h)
  std::string_view why;
};

std::span<const FlagWithoutEffect> FlagsWithoutEffect();
// Null for other flags.
const FlagWithoutEffect* FindFlagWithoutEffect(std::string_view name);

}  // namespace keelson::kubelet
