// Internal to lib/k8s: places in objects, for errors. A place points at its parent on the stack and is rendered only
// for an error.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace keelson::k8s {

class Place {
 public:
  Place() = default;  // the object itself
  Place Child(std::string_view name) const { return Place(this, name, Step::kChild, 0); }
  Place Key(std::string_view key) const { return Place(this, key, Step::kKey, 0); }
  Place Index(size_t index) const { return Place(this, {}, Step::kIndex, index); }

  bool IsRoot() const { return parent_ == nullptr; }

  // spec.list[0].name, and spec.map[key] for keys; empty for the object itself.
  std::string ToString() const {
    if (IsRoot()) return "";
    std::string out = parent_->ToString();
    switch (step_) {
      case Step::kChild:
        if (!out.empty()) out += '.';
        out += name_;
        break;
      case Step::kKey:
        out += fmt::format("[{}]", name_);
        break;
      case Step::kIndex:
        out += fmt::format("[{}]", index_);
        break;
    }
    return out;
  }

  // The form of field errors: upstream has no path to the object itself.
  std::string ToField() const {
    std::string out = ToString();
    return out.empty() ? "<nil>" : out;
  }

 private:
  enum class Step { kChild, kKey, kIndex };
  Place(const Place* parent, std::string_view name, Step step, size_t index)
      : parent_(parent), name_(name), index_(index), step_(step) {}

  const Place* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
  Step step_ = Step::kChild;
};

}  // namespace keelson::k8s
