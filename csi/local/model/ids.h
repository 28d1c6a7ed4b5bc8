// Identities of volumes, snapshots and groups of snapshots: hashes of the node and the name that the caller chose, so
// that a repeated call finds what the first one made, and two nodes never give one identity to two things. An identity
// is a file's name; one of another form is unknown, and never reaches the file system.
#pragma once

#include <string>
#include <string_view>

namespace keelson::csi::local {

enum class Kind { kVolume, kSnapshot, kGroup };

std::string MakeId(Kind kind, std::string_view node_id, std::string_view name);
bool IsId(Kind kind, std::string_view id);

}  // namespace keelson::csi::local
