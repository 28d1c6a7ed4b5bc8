// Prints resource.Quantity as Go does for hashes: the text, and how Go's parser stores it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keelson::kubelet {

// nullopt: Go stores it in another form (more than 64 bits, fractions of binary units, or less than a thousandth,
// which defaulting rounds).
std::optional<std::string> PrintGoQuantity(std::string_view text);
// An unset field.
std::optional<std::string> PrintGoZeroQuantity();

}  // namespace keelson::kubelet
