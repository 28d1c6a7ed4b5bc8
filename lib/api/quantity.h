// resource.Quantity arithmetic. The canonical form is apimachinery's: 100m, 1500m, 2, 128Mi, 1e3, 5G.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/api/proto/quantity.pb.h"
#include "lib/base/error.h"

namespace keelson::api {

// A fixed-point number with a resolution of 1e-9 and a range of 128 bits. Remembers the suffix family of
// its input.
class Amount {
 public:
  enum class Format { kDecimalSI, kBinarySI, kDecimalExponent };

  Amount() = default;
  static Result<Amount> Parse(std::string_view text);  // kBadRequest, in upstream's words
  static Amount FromInt(int64_t value, Format format = Format::kDecimalSI);
  static Amount FromMilli(int64_t milli);
  static Amount FromBytes(int64_t bytes) { return FromInt(bytes, Format::kBinarySI); }
  // The amount of a stored (validated) quantity; zero when it cannot be parsed.
  static Amount Of(const resource::Quantity& quantity);

  int64_t Value() const;       // rounded up, clamped to int64
  int64_t MilliValue() const;  // rounded up, clamped to int64
  double ToDouble() const;
  bool IsZero() const { return nanos_ == 0; }
  std::string ToString() const;  // canonical
  resource::Quantity ToQuantity() const;

  Amount& operator+=(const Amount& other);
  Amount& operator-=(const Amount& other);
  std::strong_ordering operator<=>(const Amount& other) const;
  bool operator==(const Amount& other) const { return nanos_ == other.nanos_; }

 private:
  __extension__ typedef __int128 Int128;
  Int128 nanos_ = 0;
  Format format_ = Format::kDecimalSI;
};

}  // namespace keelson::api
