// Upstream's flags that this kubelet accepts without effect. They are checked like others; one warning at the start
// names them with the reason (docs/kubelet.md has the table). Internal to this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keelson::kubelet {

struct FlagWithoutEffect {
  enum class Form { kText, kSwitch, kNumber, kDuration };
  std::string_view name;  // without dashes
  Form form;              // of its value; ignored if the flag sets a field of the configuration (fields.h)
  std::string_view why;
};

std::span<const FlagWithoutEffect> FlagsWithoutEffect();
// Null: a flag that has an effect, or is unknown.
const FlagWithoutEffect* FindFlagWithoutEffect(std::string_view name);

}  // namespace keelson::kubelet
