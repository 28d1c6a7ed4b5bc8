// What a new volume begins with: the content of a claim (clone) or of a VolumeSnapshot.
#pragma once

#include <optional>
#include <string>

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

struct DataSource {
  enum class Kind { kNone, kClaim, kSnapshot, kOther };
  Kind kind = Kind::kNone;
  std::string kind_name, name;
};

// kInvalid, in external-provisioner's words: a source without a name, of another API group, in another namespace.
Result<DataSource> SourceOf(const Claim& claim);

// For kClaim and kSnapshot. Reads the source live and checks it as external-provisioner does: bound, of the same driver
// and volume mode, not larger, not being deleted. Errors: what is wrong, which time may mend.
Result<v1::VolumeContentSource> FindContent(const client::RestClient& api, const Claim& claim,
                                            const DataSource& source, const std::string& driver);

}  // namespace keelson::csi::controller
