// Kubernetes' own types of values.
#pragma once

#include "lib/cel/values/value.h"

namespace keelson::cel {

// An opaque value around a C++ one that compares.
template <typename T, const TypeNode& kType>
class OpaqueOf : public OpaqueValue {
 public:
  explicit OpaqueOf(T content) : value(std::move(content)) {}
  Type type() const override { return &kType; }
  bool Equals(const OpaqueValue& other) const override {
    return value == static_cast<const OpaqueOf&>(other).value;
  }

  const T value;
};

}  // namespace keelson::cel
