// Internal to lib/nft: the values that traced rules compute with.
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
  // `size` bytes from register `reg` on; empty when there are not that many.
  std::string_view Get(int reg, size_t size) const;
  void Put(int reg, std::string_view bytes);  // padded to whole registers

 private:
  std::array<char, 64> bytes_{};
};

// The value of a packet's field, in the bytes that the kernel would load.
std::string FieldBytes(Field field, const Packet& packet, const AddressTypeOf& address_type);

// The element that matches a key: an equal one, or a range of each of its parts. Null: none.
const Element* FindElement(const Ruleset::SetContents& set, std::string_view key);

}  // namespace keelson::nft
