#include "csi/local/model/ids.h"

#include <algorithm>

#include "lib/crypto/digest.h"

namespace keelson::csi::local {

namespace {

constexpr size_t kDigits = 40;

std::string_view Prefix(Kind kind) {
  switch (kind) {
    case Kind::kVolume:
      return "vol-";
    case Kind::kSnapshot:
      return "snap-";
    case Kind::kGroup:
      return "group-";
  }
  return "";
}

}  // namespace

std::string MakeId(Kind kind, std::string_view node_id, std::string_view name) {
  // A node's identity has no NUL: no two pairs give one text.
  std::string text(node_id);
  text.push_back('\0');
  text += name;
  return std::string(Prefix(kind)) + crypto::Sha256Hex(text).substr(0, kDigits);
}

bool IsId(Kind kind, std::string_view id) {
  const std::string_view prefix = Prefix(kind);
  if (id.size() != prefix.size() + kDigits || id.substr(0, prefix.size()) != prefix) return false;
  id.remove_prefix(prefix.size());
  return std::all_of(id.begin(), id.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace keelson::csi::local
