// The messages of CSI by a short name: inside of keelson::csi, `csi::v1` would name something else.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/rpc/proto/csi.pb.h"

namespace keelson::csi::local {

namespace v1 = ::csi::v1;

using Strings = google::protobuf::Map<std::string, std::string>;

}  // namespace keelson::csi::local
