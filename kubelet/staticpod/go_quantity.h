// resource.Quantity as Go prints it for hashes: how it was written, and what its parser made of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keelson::kubelet {

// Nullopt for what Go keeps in another form: more digits than 64 bits hold, fractions of binary units, or
// less than a thousandth, which defaulting rounds.
std::optional<std::string> PrintGoQuantity(std::string_view text);
// Of a field that nobody has set.
std::optional<std::string> PrintGoZeroQuantity();

}  // namespace keelson::kubelet
