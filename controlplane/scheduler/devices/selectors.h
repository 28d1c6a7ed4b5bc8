// CEL selectors of requests and device classes, compiled once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "lib/k8s/validation/device/selector_expression.h"

namespace keelson::scheduler {

struct Selector {
  uint64_t id;  // unique among all selectors
  std::shared_ptr<const cel::Program> program;
  std::string error;  // not empty: the expression does not compile, and there is no program
};
using SelectorPtr = std::shared_ptr<const Selector>;

class SelectorCache {  // not thread safe: the scheduling thread owns it
 public:
  // `capacity`: so many expressions are kept at most.
  explicit SelectorCache(size_t capacity = 1000) : capacity_(capacity) {}
  SelectorPtr Get(const std::string& expression);

 private:
  const size_t capacity_;
  uint64_t last_ = 0;
  std::unordered_map<std::string, SelectorPtr> known_;
};

}  // namespace keelson::scheduler
