// Inside lib/nft only: what rules compute with when they are traced.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lib/nft/trace.h"

namespace keelson::nft {

// Sixteen registers of four bytes.
class Registers {
 public:
  void Clear() { bytes_.fill(0); }
  // Empty when there are not so many bytes from register `reg` on.
  std::string_view Get(int reg, size_t size) const;
  void Put(int reg, std::string_view bytes);  // padded to whole registers

 private:
  std::array<char, 64> bytes_{};
};

// What a field of the packet is, as the kernel would load it.
std::string FieldBytes(Field field, const Packet& packet, const AddressTypeOf& address_type);

// The element that a key is in: itself, or a range of each of its parts; null: none.
const Element* FindElement(const Ruleset::SetContents& set, std::string_view key);

}  // namespace keelson::nft
