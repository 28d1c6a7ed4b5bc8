// JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and Kubernetes' strategic merge patch. They work on
// the JSON form, so a patch sees fields as users spell them; the caller decodes the result and so validates
// it.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::api {

// The merge rules of one level of a type. A protobuf descriptor implements it; a CRD's schema can too.
class TypeView {
 public:
  virtual ~TypeView() = default;
  struct Field {
    bool merge = false;        // patchStrategy merge
    bool retain_keys = false;  // patchStrategy retainKeys
    bool replace = false;      // patchStrategy replace
    bool map = false;          // any key is allowed; `type` is that of its values
    std::string_view merge_key;
    // The type of the value, or of a list's or map's items; null for scalars and free-form values.
    const TypeView* type = nullptr;
  };
  // False when the type has no such field.
  virtual bool Find(std::string_view json_name, Field& field) const = 0;
};
// Views live as long as the process. Thread safe.
const TypeView& TypeViewOf(const Descriptor* descriptor);

inline constexpr size_t kMaxJsonPatchOperations = 10'000;  // as upstream

// kBadRequest for a malformed patch; kInvalid (422) for a failed `test` or a missing path; kTooLarge for too
// many operations, or copies that grow without bound.
Result<boost::json::value> ApplyJsonPatch(boost::json::value document, const boost::json::value& patch);
// RFC 7386. Cannot fail.
boost::json::value ApplyMergePatch(boost::json::value document, const boost::json::value& patch);
// kBadRequest, kInvalid or kInternal, as upstream, for a bad patch. Supports the directives $patch (replace,
// delete, merge), $deleteFromPrimitiveList/x, $setElementOrder/x and $retainKeys.
Result<boost::json::value> ApplyStrategicMergePatch(boost::json::value document,
                                                    const boost::json::value& patch, const TypeView& type);

// Prints a decoded value as Go does, for errors: map[a:[1 2] b:x].
std::string PrintGo(const boost::json::value& value);

}  // namespace keelson::api
